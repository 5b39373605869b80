"""Runs: the list with its filters, one run with everything about it, and the verification of its record."""

from __future__ import annotations

from urllib.parse import urlencode
from uuid import UUID

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from approvals.labels import FROM_WHEN, HEALTH
from approvals.services import run_lists, run_pages
from approvals.services.run_lists import Filter
from approvals.services.run_pages import Where
from approvals.views import errors, newer
from approvals.views.access import TenantRequest, tenant_page
from approvals.views.addresses import tidied
from ledger.domain.errors import LedgerError
from ledger.domain.runs import Status
from ledger.services.search import LOOKED_THROUGH

PARTS = {"standing": "runs/_standing.html", "side": "runs/_side.html"}


@require_safe
@tenant_page
def runs(request: TenantRequest) -> HttpResponse:
    """Runs that the person may see, last moved first."""
    if shorter := tidied(request):
        return shorter
    query = request.GET.dict()
    wrong: dict[str, str] = {}
    try:
        found = run_lists.runs(request.person, request.tenant, Filter.read(query))
    except LedgerError as error:
        wrong = errors.at_field(error)
        found = run_lists.unasked(request.person, request.tenant, Filter.typed(query))
    kept = found.asked.kept
    context = {
        "list": found,
        "newer_url": newer.url(request, "runs_newer", kept, since=found.rows[0].moved_at if found.rows else None)
        if found.page.first and not wrong
        else "",
        "wrong": wrong,
        "statuses": [str(status) for status in Status],
        "healths": [(str(code), FROM_WHEN.get(code, words)) for code, (_, words) in HEALTH.items()],
        "looked_through": f"{LOOKED_THROUGH:,}",
        "next_url": f"?{urlencode({**kept, 'before': found.page.next})}" if found.page.next else "",
        "first_url": "" if found.page.first else f"?{urlencode(kept)}",
    }
    return render(request, "runs/runs.html", context, status=422 if wrong else 200)


@require_safe
@tenant_page
def runs_newer(request: TenantRequest) -> HttpResponse:
    """204 while none of these runs has moved `since`, otherwise the bar that offers them."""
    asked = Filter.read(request.GET.dict())
    at = newer.since(request)
    href = f"{reverse('runs', args=[request.tenant.slug])}?{urlencode(asked.kept)}"
    return newer.answer(request, run_lists.moved(request.person, request.tenant, asked, at), href, new="moved")


@require_safe
@tenant_page
def run(request: TenantRequest, run_id: UUID) -> HttpResponse:
    """One run. `before` pages its timeline, `wakes` and `checkpoints` page those."""
    asked = request.GET
    where = Where(
        timeline=_sequence(asked.get("before", "")),
        checkpoints=_sequence(asked.get("checkpoints", "")),
        wakes=asked.get("wakes", ""),
    )
    page = run_pages.run(request.person, request.tenant, run_id, where)
    return render(request, "runs/run.html", {"run": page, "paged": where.timeline is not None})


@require_safe
@tenant_page
def run_newer(request: TenantRequest, run_id: UUID, part: str) -> HttpResponse:
    """204 while the record is as long as it was `since`, otherwise the part of the page as it is now."""
    if part not in PARTS:
        raise Http404
    since = _sequence(request.GET.get("since", ""))
    if run_pages.length(request.person, request.tenant, run_id) == since:
        return HttpResponse(status=204)
    loaded = _sequence(request.GET.get("loaded", ""))
    page = run_pages.run(request.person, request.tenant, run_id)
    return render(request, PARTS[part], {"run": page, "loaded": since if loaded is None else loaded})


def _sequence(text: str) -> int | None:
    if not text:
        return None
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise LedgerError("invalid", "this page of the timeline can't be found", "Start from its first page.")
    return int(text)
