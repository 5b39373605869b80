"""History: what happened in the tenant, for people who may audit it."""

from __future__ import annotations

from dataclasses import asdict
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from approvals.services import history_pages
from approvals.services.history_pages import Filter
from approvals.views.access import TenantRequest, tenant_page


@require_safe
@tenant_page
def history(request: TenantRequest) -> HttpResponse:
    """A page of entries, newest first."""
    asked = Filter.read(request.GET.dict())
    found = history_pages.history(request.person, request.tenant, asked)
    kept = {name: value for name, value in asdict(asked).items() if value and name != "before"}
    context = {
        "history": found,
        "narrowed": bool(kept),
        "next_url": f"?{urlencode({**kept, 'before': found.next})}" if found.next else "",
        "first_url": f"?{urlencode(kept)}" if asked.before else "",
    }
    return render(request, "history/history.html", context)
