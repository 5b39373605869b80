"""Handoffs: the list, one of them, taking it, giving it back, and closing it with what happens next."""

from __future__ import annotations

from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from approvals.labels import closed
from approvals.services import handoff_pages
from approvals.services.newer import against
from approvals.views import newer
from approvals.views.access import TenantRequest, act_on, caller, need, onward, tenant_page
from approvals.views.errors import at_field
from ledger.domain.errors import LedgerError
from ledger.domain.handoffs import Outcome
from ledger.domain.identity import Verb
from ledger.models import Handoff
from ledger.services import handoffs as services


@require_safe
@tenant_page
def handoffs(request: TenantRequest) -> HttpResponse:
    """Open handoffs; with `show=others` those that only others may take, with `show=closed` closed ones."""
    query, shows = request.GET, _shows(request)
    found = handoff_pages.handoffs(
        request.person, request.tenant, shows, query.get("before", ""), query.get("grave", "")
    )
    kept = {"show": shows} if shows != "open" else {}
    following = {**kept, "before": found.page.next, "grave": found.grave}
    context = {
        "list": found,
        "newer_url": newer.url(
            request, "handoffs_newer", kept, shown=[row.id for row in found.rows], total=found.page.total
        ),
        "next_url": f"?{urlencode(following)}" if found.page.next else "",
        "first_url": "" if found.page.first else f"?{urlencode(kept)}",
    }
    return render(request, "handoffs/handoffs.html", context)


@require_safe
@tenant_page
def handoffs_newer(request: TenantRequest) -> HttpResponse:
    """204 while this list is as the page has it, otherwise the bar that offers it."""
    shows = _shows(request)
    moved = against(handoff_pages.listed(request.person, request.tenant, shows), *newer.shown(request))
    href = reverse("handoffs", args=[request.tenant.slug])
    return newer.answer(request, moved, href if shows == "open" else f"{href}?show={shows}", gone="closed")


def _shows(request: TenantRequest) -> str:
    asked = request.GET.get("show", "")
    return asked if asked in {"closed", "others"} else "open"


@require_safe
@tenant_page
def handoff(request: TenantRequest, handoff_id: UUID) -> HttpResponse:
    """One handoff."""
    page = handoff_pages.handoff(request.person, request.tenant, handoff_id)
    return render(request, "handoffs/handoff.html", {"page": page})


@tenant_page
@act_on(handoff)
def handoff_own(request: TenantRequest, handoff_id: UUID) -> HttpResponse:
    """Take it: from here on it is this person's."""
    _operated(request, handoff_id)
    services.own(caller(request), handoff_id)
    messages.success(request, "It is yours now. Others see your name on it.")
    return onward(request, _address(request, handoff_id))


@tenant_page
@act_on(handoff)
def handoff_give_back(request: TenantRequest, handoff_id: UUID) -> HttpResponse:
    """Put it back for anybody: one's own, or that of somebody who isn't there."""
    _operated(request, handoff_id)
    services.give_back(caller(request), handoff_id)
    messages.success(request, "It is nobody’s now. Whoever operates this workflow finds it in the list.")
    return onward(request, _address(request, handoff_id))


@tenant_page
@act_on(handoff)
def handoff_close(request: TenantRequest, handoff_id: UUID) -> HttpResponse:
    """Close it with an outcome and a reason. What is missing comes back with the form as it was typed."""
    _operated(request, handoff_id)
    typed = {name: request.POST.get(name, "").strip() for name in ("outcome", "reason")}
    page = handoff_pages.handoff(request.person, request.tenant, handoff_id)
    if not page.is_open:
        raise LedgerError("wrong-state", "this handoff is over", "Somebody closed it, or nobody needs it any more.")
    errors = {}
    if typed["outcome"] not in {choice.value for choice in page.outcomes}:
        errors["outcome"] = "Choose what happens next."
    if not typed["reason"]:
        errors["reason"] = "Say why, for whoever reads the record."
    try:
        if not errors:
            services.close(caller(request), handoff_id, Outcome(typed["outcome"]), typed["reason"])
    except LedgerError as error:
        errors = at_field(error, typed="reason")
    if errors:
        return render(request, "handoffs/handoff.html", {"page": page, "typed": typed, "errors": errors}, status=422)
    messages.success(request, closed(typed["outcome"], blocks=page.blocks).said)
    return onward(request, f"{_address(request, handoff_id)}?closed=1")


def _operated(request: TenantRequest, handoff_id: UUID) -> None:
    """Only for somebody who may operate the run's workflow. Raises Http404 or LedgerError `forbidden`."""
    found: Handoff | None = (
        Handoff.objects.of(request.tenant).filter(pk=handoff_id).select_related("run__workflow").first()
    )
    if found is None:
        raise Http404
    need(request, Verb.OPERATE, found.run.workflow)


def _address(request: TenantRequest, handoff_id: UUID) -> str:
    return reverse("handoff", args=[request.tenant.slug, handoff_id])
