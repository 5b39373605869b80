"""The approval card: read it, decide on exactly what was read, and see what came of it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from approvals.domain.decisions import EntryPoint
from approvals.domain.requests import Choice
from approvals.forms import Decision
from approvals.looks import look_again
from approvals.services import cards, decisions
from approvals.services.decisions import DecisionAnswer
from approvals.services.standing import team_names
from approvals.services.votes import withdraw_vote
from approvals.views import counts, errors
from approvals.views.access import TenantRequest, act_on, tenant_page
from approvals.views.cards import approvals_of, context
from ledger.domain.errors import LedgerError
from ledger.models import Tenant
from ledger.services import facts
from ledger.services.authority import revoke_grant


@require_safe
@tenant_page
def approval(request: TenantRequest, request_id: UUID) -> HttpResponse:
    """The card as a page. Whatever the address carries, reading decides nothing."""
    return render(request, "approval.html", _card(request, request_id))


@require_safe
@tenant_page
def approval_newer(request: TenantRequest, request_id: UUID) -> HttpResponse:
    """204 while the card is as the page has it (`since`), otherwise the card."""
    found = cards.seen_request(request.person, request.tenant, request_id)
    if request.GET.get("since") == cards.token(found, facts.read().now):
        return HttpResponse(status=204)
    return render(request, "approvals/_card.html", _card(request, request_id))


@tenant_page
@act_on(approval)
def approval_look(request: TenantRequest, request_id: UUID) -> HttpResponse:
    """Look at the target again: as the person if they `pressed` for it, else, since they opened an old look, in nobody's name.

    For htmx only the target's part comes back, with the receipt of what is shown now: nothing typed is touched.
    """
    card = cards.card_for(request.person, request.tenant, request_id)
    seen = look_again(card, request.person if "pressed" in request.POST else None)
    if errors.is_htmx(request):
        return render(request, "approvals/_looked.html", _card(request, request_id, unseen=not seen))
    if not seen:
        messages.warning(request, "The target could not be seen just now; what is shown is the last known state.")
    return redirect("approval", request.tenant.slug, request_id)


@tenant_page
@act_on(approval)
def approval_decide(request: TenantRequest, request_id: UUID) -> HttpResponse:
    """Count the person's vote on exactly the card they read, or say why not, with their text kept."""
    cards.seen_request(request.person, request.tenant, request_id)
    form = Decision.read(request.POST, request_id, request.person.pk)
    if form.seen is None:
        reason = "The form did not say which version of the request you read"
        return _refused(
            request, request_id, form, 428, "Not done.", f"{reason}. Read it as it is now, and decide again."
        )
    revision, digest, receipt = form.seen
    try:
        answer = decisions.decide(
            request.person, request_id, form.choice, form.reason, digest, revision, EntryPoint.PAGE, receipt
        )
    except LedgerError as error:
        if error.code == "not-found":
            raise
        return _explained(request, request_id, form, error)
    return _done(request, answer, form.reason)


@tenant_page
@act_on(approval)
def approval_withdraw(request: TenantRequest, request_id: UUID) -> HttpResponse:
    """Take one's own approval back before the quorum; the others' votes are carried into the new revision."""
    cards.seen_request(request.person, request.tenant, request_id)
    revision = request.POST.get("revision", "")
    try:
        withdraw_vote(request.person, request_id, int(revision) if revision.isascii() and revision.isdigit() else 0)
    except LedgerError as error:
        return _taken(request, request_id, error)
    return _back(request, request_id, "Your approval was taken back. The request is asked again, without it.")


@tenant_page
@act_on(approval)
def approval_revoke(request: TenantRequest, request_id: UUID) -> HttpResponse:
    """Take leave back that was given and not used."""
    card = cards.card_for(request.person, request.tenant, request_id)
    if card.grant is None:
        raise Http404
    try:
        answer = revoke_grant(request.person, card.grant.pk)
    except LedgerError as error:
        return _taken(request, request_id, error)
    said = (
        "The call is out already; further attempts are stopped."
        if answer.used
        else "The approval was taken back before it was used; nothing is sent on it. The agent may ask again."
    )
    return _back(request, request_id, said)


def _taken(request: TenantRequest, request_id: UUID, error: LedgerError) -> HttpResponse:
    """The card as it is now, with why nothing could be taken back."""
    if error.code == "not-found":
        raise error
    title = errors.TITLES.get(error.status, errors.OTHERWISE)
    return _refused(request, request_id, Decision("", "", None), error.status, f"{title}.", _sentence(error))


def _back(request: TenantRequest, request_id: UUID, said: str) -> HttpResponse:
    if not errors.is_htmx(request):
        messages.success(request, said)
        return redirect("approval", request.tenant.slug, request_id)
    badge = counts.badges(request).get("inbox", "")
    return render(request, "approvals/_decided.html", _card(request, request_id, said=said, badge=badge))


def _sentence(error: LedgerError) -> str:
    return f"{error.reason[:1].upper()}{error.reason[1:]}. {error.remedy}"


def _card(request: TenantRequest, request_id: UUID, **more: Any) -> dict[str, Any]:
    card = cards.card_for(request.person, request.tenant, request_id)
    return {**context(card, request.tenant, request.person), **more}


def _explained(request: TenantRequest, request_id: UUID, form: Decision, error: LedgerError) -> HttpResponse:
    if error.code in errors.FIELD_ERRORS:
        return _answered(request, _card(request, request_id, typed=form.reason, field_error=_sentence(error)), 422)
    title = errors.TITLES.get(error.status, errors.OTHERWISE)
    return _refused(request, request_id, form, error.status, f"{title}.", _sentence(error))


def _refused(
    request: TenantRequest, request_id: UUID, form: Decision, status: int, title: str, said: str
) -> HttpResponse:
    shown = _card(request, request_id, typed=form.reason, refusal={"title": title, "text": said})
    return _answered(request, shown, status)


def _answered(request: TenantRequest, shown: dict[str, Any], status: int) -> HttpResponse:
    template = "approvals/_card.html" if errors.is_htmx(request) else "approval.html"
    return render(request, template, shown, status=status)


def _done(request: TenantRequest, answer: DecisionAnswer, typed: str) -> HttpResponse:
    said = _outcome(request.tenant, answer)
    unsent = _unsent(request, answer.request_id, typed) if answer.repeated else ""
    if not unsent:
        return _back(request, answer.request_id, said)
    said = f"You had decided already, with another text. {said}"
    badge = counts.badges(request).get("inbox", "")
    shown = _card(request, answer.request_id, said=said, typed=unsent, badge=badge)
    return render(request, "approvals/_decided.html" if errors.is_htmx(request) else "approval.html", shown)


def _unsent(request: TenantRequest, request_id: UUID, typed: str) -> str:
    """What a vote that was counted before doesn't hold of what was typed now, as from a second tab: nobody's text is lost without a word."""
    vote = cards.card_for(request.person, request.tenant, request_id).voted
    body = vote.reason_body.content if vote is not None and vote.reason_body else None
    kept = bytes(body).decode() if body is not None else ""
    return typed if typed.strip() != kept.strip() else ""


def _outcome(tenant: Tenant, answer: DecisionAnswer) -> str:
    """What is true from now on, and no more than that: that the agent went on is another fact, which the card tells as of now."""
    if answer.choice is Choice.DENY:
        return "Denied. The decision is recorded; the agent gets your reason."
    if answer.missing:
        names = team_names(tenant.pk, answer.missing)
        lacking = " and ".join(approvals_of(count, group, names) for group, count in answer.missing.items())
        return f"Your approval is recorded. Still needed: {lacking}."
    return "Approved. The decision is recorded; how far the agent is with it stands below."
