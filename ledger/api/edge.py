"""What holds for every answer under /api/: problems for unknown routes too, no caching, the trace echoed and kept, no oversized reading."""

from __future__ import annotations

import re
from collections.abc import Callable
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponse, UnreadablePostError
from django.http.response import HttpResponseBase

from ledger.api import problems
from ledger.domain.errors import LedgerError

PREFIX = "/api/"
POURED_AWAY = 64 * 1024 * 1024
"""Bytes of an oversized body that are read and dropped; who announces more sees the connection close."""
_CHUNK = 64 * 1024
TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


class ApiEdge:
    """Middleware of the API's addresses; others pass untouched."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not request.path_info.startswith(PREFIX):
            return self.get_response(request)
        response = self._refusal(request) or self.get_response(request)
        response = _as_problem(request, response)
        response["Cache-Control"] = "no-store"
        if trace := traceparent(request):
            response["traceparent"] = trace
        return response

    def _refusal(self, request: HttpRequest) -> HttpResponse | None:
        """By its announced length, before anything is kept of the body."""
        limit: int = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        announced = request.META.get("CONTENT_LENGTH") or "0"
        if announced.isdecimal() and int(announced) > limit:
            _pour_away(request, int(announced))
            return problems.problem(problems.too_large(limit))
        return None


def _pour_away(request: HttpRequest, announced: int) -> None:
    """Most clients read the answer only after they have sent everything: a connection closed before shows them no answer at all."""
    left = min(announced, POURED_AWAY)
    while left > 0:
        try:
            got = len(request.read(min(left, _CHUNK)))
        except UnreadablePostError:
            return
        if not got:
            return
        left -= got


def traceparent(request: HttpRequest) -> str:
    """The caller's W3C trace context, or '' where none or a malformed one came."""
    text: str = request.headers.get("traceparent", "")
    return text if TRACEPARENT.fullmatch(text) else ""


def trace(request: HttpRequest) -> UUID | None:
    """The trace id of the caller's W3C trace context, which has the size of a UUID; None where none came, or a malformed one."""
    context = traceparent(request)
    return UUID(hex=context.split("-")[1]) if context else None


def _as_problem(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Pages of the framework become problems; answers of the views are problems already."""
    if response.status_code < 400 or response.get("Content-Type", "").startswith(problems.MEDIA):
        return response
    if response.status_code == 405:
        allowed = response.get("Allow", "")
        made = problems.problem(
            LedgerError(
                "method-not-allowed",
                f"this address doesn't take {request.method}",
                f"It takes {allowed}.",
                allow=allowed,
            )
        )
        made["Allow"] = allowed
        return made
    return problems.problem(_FRAMEWORK.get(response.status_code, _FRAMEWORK[500]))


_FRAMEWORK = {
    400: LedgerError("invalid", "the request's head isn't usable", "Check its host name and headers."),
    403: LedgerError("forbidden", "this isn't allowed here", "Check how you are signed in."),
    404: LedgerError("not-found", "there is nothing at this address", "Check the path against /api/v1/docs."),
    500: LedgerError("internal", "something unexpected happened here", "Ask again with the same Idempotency-Key."),
}
