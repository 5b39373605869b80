"""Reconcile: outcomes nobody knows, one of them with all that was asked and answered, asking again, and a person's verdict."""

from __future__ import annotations

from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from approvals.services import reconcile_pages, verdicts
from approvals.services.newer import against
from approvals.services.reconcile_pages import EffectPage
from approvals.views import newer
from approvals.views.access import TenantRequest, caller, need, onward, tenant_page
from ledger.domain.effects import EffectState
from ledger.domain.errors import LedgerError
from ledger.domain.explain import at
from ledger.domain.identity import Verb
from ledger.engine import reconcile as engine
from ledger.models import Effect
from ledger.services import effects

OUTCOMES = {
    "committed": (EffectState.COMMITTED, ""),
    "confirmed_absent": (EffectState.FAILED, "confirmed_absent"),
    "rejected": (EffectState.FAILED, "rejected"),
}


@require_safe
@tenant_page
def reconcile(request: TenantRequest) -> HttpResponse:
    """The queue of what this person may find out, oldest first."""
    queue = reconcile_pages.queue(request.person, request.tenant, request.GET.get("before", ""))
    page = queue.page
    context = {
        "queue": queue,
        "newer_url": newer.url(request, "reconcile_newer", {}, shown=[row.id for row in queue.rows], total=page.total),
        "elsewhere_text": f"{queue.elsewhere} with an unknown outcome in workflows that you may see and not operate. "
        "Only who operates a workflow settles its calls.",
        "next_url": f"?{urlencode({'before': page.next})}" if page.next else "",
        "first_url": "" if page.first else "?",
    }
    return render(request, "reconcile/reconcile.html", context)


@require_safe
@tenant_page
def reconcile_newer(request: TenantRequest) -> HttpResponse:
    """204 while the queue is as the page has it, otherwise the bar that offers it."""
    rows = reconcile_pages.waiting_for(request.person, request.tenant)
    moved = against(rows, *newer.shown(request))
    return newer.answer(request, moved, reverse("reconcile", args=[request.tenant.slug]), gone="settled")


@require_safe
@tenant_page
def effect(request: TenantRequest, effect_id: UUID) -> HttpResponse:
    """One effect."""
    return _page(request, reconcile_pages.effect(request.person, request.tenant, effect_id))


def _page(request: TenantRequest, page: EffectPage, status: int = 200, **typed: object) -> HttpResponse:
    return render(request, "reconcile/effect.html", {"page": page, **typed}, status=status)


@require_POST
@tenant_page
def effect_ask(request: TenantRequest, effect_id: UUID) -> HttpResponse:
    """Ask the target now, as this person; the answer is recorded with all that follows from it."""
    _operated(request, effect_id)
    answer = engine.reconcile(effect_id, actor=caller(request).actor)
    messages.info(request, reconcile_pages.heard(request.tenant, effect_id, answer))
    return onward(request, _address(request, effect_id))


@require_POST
@tenant_page
def effect_verdict(request: TenantRequest, effect_id: UUID) -> HttpResponse:
    """Settle by hand, with evidence. What is missing comes back with the form as it was typed."""
    _operated(request, effect_id)
    typed = {name: request.POST.get(name, "").strip() for name in ("verdict", "evidence", "reference")}
    page = reconcile_pages.effect(request.person, request.tenant, effect_id)
    errors = _missing(page, typed)
    if errors:
        return _page(request, page, status=422, typed=typed, errors=errors)
    outcome, cause = OUTCOMES[typed["verdict"]]
    effects.verdict(caller(request), effect_id, outcome, cause, typed["evidence"], typed["reference"])
    now = Effect.objects.of(request.tenant).select_related("target").get(pk=effect_id)
    messages.success(request, verdicts.judged(now, typed["verdict"]))
    return onward(request, f"{_address(request, effect_id)}?settled=1")


def _operated(request: TenantRequest, effect_id: UUID) -> None:
    """Only for somebody who may operate the workflow of the effect's run. Raises Http404 or LedgerError `forbidden`."""
    found: Effect | None = (
        Effect.objects.of(request.tenant).filter(pk=effect_id).select_related("run__workflow").first()
    )
    if found is None:
        raise Http404
    need(request, Verb.OPERATE, found.run.workflow)


def _missing(page: EffectPage, typed: dict[str, str]) -> dict[str, str]:
    """What the form lacks, by field."""
    errors = {}
    chosen = next((choice for choice in page.choices if choice.value == typed["verdict"]), None)
    if not page.choices:
        raise LedgerError("wrong-state", page.why_no_choice, "Read it again: it may have been settled meanwhile.")
    if chosen is None:
        errors["verdict"] = "Choose what happened."
    elif chosen.possible_from is not None:
        errors["verdict"] = (
            f"Nobody can know yet that it was not done: the call may still arrive until {at(chosen.possible_from)}. "
            "What you typed is kept; look once more then, and say what you found."
        )
    elif chosen.needs_reference and not typed["reference"]:
        errors["reference"] = "Give the target’s own reference for it: it is what proves that it was done."
    if not typed["evidence"]:
        errors["evidence"] = "Say where you looked and what you found: a statement line, the provider’s page, a ticket."
    return errors


def _address(request: TenantRequest, effect_id: UUID) -> str:
    return reverse("effect", args=[request.tenant.slug, effect_id])
