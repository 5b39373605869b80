"""History: what happened in the tenant, for people who may audit it."""

from __future__ import annotations

from dataclasses import asdict
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from approvals.services import history_pages
from approvals.services.history_pages import Filter
from approvals.views import newer
from approvals.views.access import TenantRequest, tenant_page

SEARCH = {"since": "from"}
"""A search's own name where the question whether anything is newer needs it."""


@require_safe
@tenant_page
def history(request: TenantRequest) -> HttpResponse:
    """A page of entries, newest first."""
    asked = Filter.read(request.GET.dict())
    found = history_pages.history(request.person, request.tenant, asked)
    kept = _kept(asked)
    renamed = {SEARCH.get(name, name): text for name, text in kept.items()}
    context = {
        "history": found,
        "newer_url": newer.url(request, "history_newer", renamed, since=found.lines[0].item.at if found.lines else None)
        if not asked.before
        else "",
        "narrowed": bool(kept),
        "next_url": f"?{urlencode({**kept, 'before': found.next})}" if found.next else "",
        "first_url": f"?{urlencode(kept)}" if asked.before else "",
    }
    return render(request, "history/history.html", context)


@require_safe
@tenant_page
def history_newer(request: TenantRequest) -> HttpResponse:
    """204 while nothing of this search came after `since`, otherwise the bar that offers it."""
    query = request.GET.dict()
    asked = Filter.read({**query, **{name: query.get(other, "") for name, other in SEARCH.items()}})
    at = newer.since(request)
    href = f"{reverse('history', args=[request.tenant.slug])}?{urlencode(_kept(asked))}"
    return newer.answer(request, history_pages.moved(request.person, request.tenant, asked, at), href)


def _kept(asked: Filter) -> dict[str, str]:
    return {name: value for name, value in asdict(asked).items() if value and name != "before"}
