"""Reconcile: outcomes nobody knows, one of them with all that was asked and answered, asking again, and a person's verdict."""

from __future__ import annotations

from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from approvals import receipts
from approvals.services import reconcile_pages, verdicts
from approvals.services.newer import against
from approvals.services.reconcile_pages import EffectPage
from approvals.services.since import since
from approvals.views import errors as refusals
from approvals.views import newer
from approvals.views.access import TenantRequest, act_on, caller, need, onward, tenant_page
from ledger.domain.effects import EffectState, Read, check_read
from ledger.domain.errors import LedgerError
from ledger.domain.explain import at
from ledger.domain.identity import Verb
from ledger.engine import reconcile as engine
from ledger.models import Effect
from ledger.services import effects, permissions

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
    return _page(request, effect_id)


def _page(request: TenantRequest, effect_id: UUID, status: int = 200, **more: object) -> HttpResponse:
    """The page, with a receipt of what is read on it. What the receipt says is read first: what comes in between is refused, never taken for read."""
    try:
        read = effects.read_now(effect_id)
    except LedgerError:
        raise Http404 from None  # As what isn't this person's to see is answered below.
    shown = {
        "page": reconcile_pages.effect(request.person, request.tenant, effect_id),
        "attempt": read.attempt,
        "receipt": receipts.seal_effect(read, effect_id, request.person.pk),
    }
    return render(request, "reconcile/effect.html", {**shown, **more}, status=status)


@tenant_page
@act_on(effect)
def effect_ask(request: TenantRequest, effect_id: UUID) -> HttpResponse:
    """Ask the target now, as this person; the answer is recorded with all that follows from it."""
    asked = _operated(request, effect_id)
    read = _read(request, effect_id)
    if read is None:
        return _unread(request, effect_id)
    try:
        answer = engine.reconcile(effect_id, caller(request).actor, read)
    except LedgerError as error:
        return _changed(request, asked, read, error)
    messages.info(request, reconcile_pages.heard(request.tenant, effect_id, answer))
    return onward(request, _address(request, effect_id))


@tenant_page
@act_on(effect)
def effect_verdict(request: TenantRequest, effect_id: UUID) -> HttpResponse:
    """Settle by hand, with evidence, what was read. What is missing or happened meanwhile comes back with the form as it was typed."""
    judged = _operated(request, effect_id)
    typed = {name: request.POST.get(name, "").strip() for name in ("verdict", "evidence", "reference")}
    read = _read(request, effect_id)
    if read is None:
        return _unread(request, effect_id, typed=typed)
    try:
        check_read(read, effects.read_now(effect_id))
        errors = _missing(reconcile_pages.effect(request.person, request.tenant, effect_id), typed)
        if errors:
            return _page(request, effect_id, status=422, typed=typed, errors=errors)
        _say(request, effect_id, typed, read)
    except LedgerError as error:
        if error.code == "reference-taken":
            taken = {"reference": f"{error.reason[:1].upper()}{error.reason[1:]}. {error.remedy}"}
            return _page(request, effect_id, status=error.status, typed=typed, errors=taken)
        if error.code in refusals.FIELD_ERRORS:
            wrong = refusals.at_field(error, typed="evidence")
            return _page(request, effect_id, status=error.status, typed=typed, errors=wrong)
        return _changed(request, judged, read, error, typed=typed)
    now = Effect.objects.of(request.tenant).select_related("target").get(pk=effect_id)
    messages.success(request, verdicts.judged(now, typed["verdict"]))
    return onward(request, f"{_address(request, effect_id)}?settled=1")


def _say(request: TenantRequest, effect_id: UUID, typed: dict[str, str], read: Read) -> None:
    """Record the word of this person: what happened, or that its reference is another."""
    if typed["verdict"] == verdicts.REFERENCE:
        effects.correct(caller(request), effect_id, typed["evidence"], typed["reference"], read=read)
        return
    outcome, cause = OUTCOMES[typed["verdict"]]
    effects.verdict(caller(request), effect_id, outcome, cause, typed["evidence"], typed["reference"], read=read)


def _read(request: TenantRequest, effect_id: UUID) -> Read | None:
    return receipts.read_effect(request.POST.get("receipt", ""), effect_id, request.person.pk)


def _unread(request: TenantRequest, effect_id: UUID, **more: object) -> HttpResponse:
    """A form that doesn't say what was read: nothing is done on it."""
    said = "The form did not say what you had read of this call. Read it as it is now, and send it again."
    return _page(request, effect_id, 428, refusal={"title": f"{refusals.TITLES[428]}.", "text": said}, **more)


def _changed(request: TenantRequest, found: Effect, read: Read, error: LedgerError, **more: object) -> HttpResponse:
    """The page as it is now, with what happened since it was read. Raises any other error again."""
    if error.code != "changed":
        raise error
    refusal = {"title": f"{refusals.TITLES[error.status]}.", "text": error.remedy}
    may_see = permissions.can(request.person, Verb.SEE_PAYLOADS, found.run.workflow)
    told = since(found, read, may_see=may_see)
    return _page(request, found.pk, error.status, refusal=refusal, since=told, **more)


def _operated(request: TenantRequest, effect_id: UUID) -> Effect:
    """The effect, for somebody who may operate its workflow. Raises Http404 or LedgerError `forbidden`."""
    found: Effect | None = (
        Effect.objects.of(request.tenant).filter(pk=effect_id).select_related("run__workflow").first()
    )
    if found is None:
        raise Http404
    need(request, Verb.OPERATE, found.run.workflow)
    return found


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
