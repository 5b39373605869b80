"""Headers of every page: nothing is kept by a cache, and a fragment is never taken for a page."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers


def unstored(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Answers carry `Cache-Control: no-store` and `Vary: HX-Request`; static files are served before this."""

    def answered(request: HttpRequest) -> HttpResponse:
        answer = get_response(request)
        answer.headers.setdefault("Cache-Control", "no-store")
        patch_vary_headers(answer, ["HX-Request"])
        return answer

    return answered
