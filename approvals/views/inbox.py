"""The inbox: what waits for this person, the oldest deadline first."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from approvals.views.access import TenantRequest, tenant_page


@require_safe
@tenant_page
def inbox(request: TenantRequest) -> HttpResponse:
    return render(request, "inbox.html", {})


@require_safe
@tenant_page
def inbox_newer(request: TenantRequest) -> HttpResponse:
    return HttpResponse(status=204)
