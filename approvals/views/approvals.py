"""The approval card: read it, decide on exactly what was read, and see what came of it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from approvals.domain.decisions import EntryPoint
from approvals.domain.requests import Choice
from approvals.forms import Decision
from approvals.looks import look_again
from approvals.services import cards, decisions
from approvals.services.decisions import DecisionAnswer
from approvals.views import counts, errors
from approvals.views.access import TenantRequest, tenant_page
from approvals.views.cards import context
from ledger.domain.errors import LedgerError
from ledger.services import facts

FIELD_ERRORS = frozenset({"invalid", "bad-text"})


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


@require_POST
@tenant_page
def approval_look(request: TenantRequest, request_id: UUID) -> HttpResponse:
    """Look at the target again. For htmx only the target's part comes back, with the receipt of what is shown now: nothing typed is touched."""
    seen = look_again(request.person, cards.card_for(request.person, request.tenant, request_id))
    if errors.is_htmx(request):
        return render(request, "approvals/_looked.html", _card(request, request_id, unseen=not seen))
    if not seen:
        messages.warning(request, "The target could not be seen just now; what is shown is the last known state.")
    return redirect("approval", request.tenant.slug, request_id)


@require_POST
@tenant_page
def approval_decide(request: TenantRequest, request_id: UUID) -> HttpResponse:
    """Count the person's vote on exactly the card they read, or say why not, with their text kept."""
    cards.seen_request(request.person, request.tenant, request_id)
    form = Decision.read(request.POST, request_id, request.person.pk)
    if form.seen is None:
        reason = "the form did not say which version of the request you read"
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
    return _done(request, answer)


def _card(request: TenantRequest, request_id: UUID, **more: Any) -> dict[str, Any]:
    card = cards.card_for(request.person, request.tenant, request_id)
    return {**context(card, request.tenant, request.person), **more}


def _explained(request: TenantRequest, request_id: UUID, form: Decision, error: LedgerError) -> HttpResponse:
    if error.code in FIELD_ERRORS:
        said = f"{error.reason[:1].upper()}{error.reason[1:]}. {error.remedy}"
        return _answered(request, _card(request, request_id, typed=form.reason, field_error=said), 422)
    title = errors.TITLES.get(error.status, errors.OTHERWISE)
    said = f"{error.reason[:1].upper()}{error.reason[1:]}. {error.remedy}"
    return _refused(request, request_id, form, error.status, f"{title}.", said)


def _refused(
    request: TenantRequest, request_id: UUID, form: Decision, status: int, title: str, said: str
) -> HttpResponse:
    shown = _card(request, request_id, typed=form.reason, refusal={"title": title, "text": said})
    return _answered(request, shown, status)


def _answered(request: TenantRequest, shown: dict[str, Any], status: int) -> HttpResponse:
    template = "approvals/_card.html" if errors.is_htmx(request) else "approval.html"
    return render(request, template, shown, status=status)


def _done(request: TenantRequest, answer: DecisionAnswer) -> HttpResponse:
    said = _outcome(answer)
    if not errors.is_htmx(request):
        messages.success(request, said)
        return redirect("approval", request.tenant.slug, answer.request_id)
    badges = counts.badges(request)
    return render(
        request,
        "approvals/_decided.html",
        _card(request, answer.request_id, said=said, badge=badges.get("inbox", ""), fresh=True),
    )


def _outcome(answer: DecisionAnswer) -> str:
    """What is true now, and no more than that: that the agent went on is another fact."""
    if answer.choice is Choice.DENY:
        return "Denied. The decision is recorded; the agent gets your reason."
    if answer.missing:
        lacking = ", ".join(f"{count} of {group}" for group, count in answer.missing.items())
        return f"Your approval is recorded. Still needed: {lacking}."
    return "Approved. The decision is recorded; the agent has yet to resume."
