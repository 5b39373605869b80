"""Refusals as people see them: one page or, for htmx, one banner; what somebody typed is never lost."""

from __future__ import annotations

import re
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from ledger.domain.errors import LedgerError
from ledger.services import permissions

TITLES = {
    403: "You may not do this",
    404: "Nothing here that you can see",
    409: "Not done: it was decided or moved in the meantime",
    410: "Not done: its time is over",
    412: "Not done: it changed while you looked",
    422: "Not saved: something is missing",
    428: "Not done: the form was incomplete",
}
OTHERWISE = "Not done"
FIELD_ERRORS = frozenset({"invalid", "bad-text"})
MOVED = frozenset({409, 410, 412})
"""After these, what was acted on is shown as it is now."""
UNREADABLE = "This address can’t be read"
"""Of an address that asks for what can't be: nothing was sent, so nothing was refused."""
IN_TENANT = re.compile(r"/t/([-\w]+)/")
NOT_TYPED = frozenset({"csrfmiddlewaretoken", "password", "next", "receipt", "digest", "revision", "decision"})


def is_htmx(request: HttpRequest) -> bool:
    """Does htmx, or a live poll, ask for a piece of a page?"""
    return bool(request.headers.get("HX-Request"))


def kept_text(request: HttpRequest) -> dict[str, str]:
    """What somebody typed into the form that was refused, by field."""
    return {
        name: text for name, text in request.POST.items() if name not in NOT_TYPED and isinstance(text, str) and text
    }


def refused(request: HttpRequest, error: LedgerError) -> HttpResponse:
    """The page of a refusal, with its code, reason and remedy; for htmx a banner, the form left as it is."""
    status = error.status
    reading = status == 422 and request.method in {"GET", "HEAD"}
    context: dict[str, Any] = {
        "title": UNREADABLE if reading else TITLES.get(status, OTHERWISE),
        "reading": reading,
        "status": status,
        "code": error.code,
        "reason": error.reason,
        "remedy": error.remedy,
        "kept": kept_text(request),
        "as_it_is": getattr(request, "acted_on", "") if status in MOVED else "",
    }
    if is_htmx(request):
        return banner(request, "partials/_refusal.html", status, context)
    return render(request, "refusal_framed.html" if placed(request) else "refusal.html", context, status=status)


def at_field(error: LedgerError, typed: str = "") -> dict[str, str]:
    """What is wrong with a field of a form, by the field's name: the one that the error names, or where it names none the one that was `typed`.

    Raises the error again where it is about no field.
    """
    field = error.facts.get("field", typed)
    if error.code not in FIELD_ERRORS or not field:
        raise error
    return {str(field): f"{error.reason[:1].upper()}{error.reason[1:]}. {error.remedy}"}


def not_found(request: HttpRequest) -> HttpResponse:
    """The same answer for what isn't there and for what isn't theirs to see."""
    if is_htmx(request):
        context = {"title": TITLES[404], "reason": "It may be gone, or your rights changed.", "remedy": ""}
        return banner(request, "partials/_refusal.html", 404, context)
    return render(request, "404_framed.html" if placed(request) else "404.html", status=404)


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's hook for an address that no page has."""
    return not_found(request)


def placed(request: HttpRequest) -> bool:
    """Is this about a tenant whose member asks? Then the page keeps its frame: navigation, search, account."""
    if getattr(request, "tenant", None) is not None:
        return True
    named = IN_TENANT.match(request.path_info)
    if named is None or not request.user.is_authenticated:
        return False
    tenant = permissions.entered(request.user.pk, named[1])
    if tenant is None:
        return False
    request.tenant, request.person = tenant, request.user  # type: ignore[attr-defined]
    return True


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """The token was old: say so, with what was typed; for htmx the form stays, with an offer to send it once more."""
    if is_htmx(request):
        return banner(request, "partials/_csrf_banner.html", 403, {})
    return render(request, "403_csrf.html", {"kept": kept_text(request)}, status=403)


def banner(request: HttpRequest, template: str, status: int, context: dict[str, Any]) -> HttpResponse:
    """A fragment that goes into the page's banner, whatever the form's own target was."""
    answer = render(request, template, context, status=status)
    answer["HX-Retarget"] = "#banner"
    answer["HX-Reswap"] = "innerHTML"
    answer["HX-Reselect"] = "unset"
    return answer
