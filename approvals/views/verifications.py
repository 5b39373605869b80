"""Verification: asking for a check of a run or of the whole tenant, and watching it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from approvals.services import run_pages, verification_pages
from approvals.views.access import TenantRequest, act_on, caller, tenant_page
from approvals.views.errors import is_htmx
from approvals.views.history import history
from approvals.views.runs import run
from ledger.domain.errors import LedgerError
from ledger.domain.identity import Verb
from ledger.services import permissions, verifications

AT_ONCE = 300
"""Entries of a run that are checked within the request; a longer chain is checked in the background."""
PLACES = frozenset({"verified", "verified-top"})
"""Where pages show a check: each place has its own, so that one check may stand on a page twice."""


@tenant_page
@act_on(run)
def run_verify(request: TenantRequest, run_id: UUID) -> HttpResponse:
    """Have a run's chain, rows and bodies recomputed: a short one at once, a long one in the background."""
    length = run_pages.length(request.person, request.tenant, run_id)
    check_id = verifications.ask(caller(request), run_id)
    if length <= AT_ONCE:
        verifications.advance(check_id)
    return _begun(request, check_id)


@tenant_page
@act_on(history)
def history_verify(request: TenantRequest) -> HttpResponse:
    """Have everything of the tenant recomputed, in the background."""
    if not verification_pages.may_check(request.person, request.tenant):
        raise LedgerError(
            "forbidden",
            "only who may audit the whole tenant has all of it verified",
            "Each run that you may see can be verified on its page.",
        )
    return _begun(request, verifications.ask(caller(request)))


@require_safe
@tenant_page
def verification(request: TenantRequest, check_id: UUID) -> HttpResponse:
    """One check as a page: reload it to see how far it is."""
    return render(request, "verifications/verification.html", _context(request, check_id))


@require_safe
@tenant_page
def verification_newer(request: TenantRequest, check_id: UUID) -> HttpResponse:
    """204 while the check is as far as the page has it (`since`), otherwise the check."""
    context = _context(request, check_id, request.GET.get("at", ""))
    if request.GET.get("since") == context["check"].token:
        return HttpResponse(status=204)
    return render(request, "verifications/_check.html", context)


def _begun(request: TenantRequest, check_id: UUID) -> HttpResponse:
    if is_htmx(request):
        context = _context(request, check_id, request.headers.get("HX-Target", ""))
        return render(request, "verifications/_check.html", context)
    return redirect("verification", request.tenant.slug, check_id)


def _context(request: TenantRequest, check_id: UUID, place: str = "") -> dict[str, Any]:
    check = verification_pages.check(request.person, request.tenant, check_id)
    context = {"check": check, "place": place if place in PLACES else "page"}
    if context["place"] == "verified" and check.of_run is None:
        context["faulty"], context["more_faulty"] = verification_pages.faulty(request.tenant)
    if check.faults:
        context["administers"] = permissions.can(request.person, Verb.ADMINISTER, request.tenant)
    return context
