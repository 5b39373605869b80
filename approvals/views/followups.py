"""What came of a decision: that it was recorded and that the agent went on are two different facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.urls import reverse

from approvals.domain.requests import RequestState
from approvals.labels import withdrawn
from approvals.services.cards import SLOW, Card
from approvals.templatetags.console import absolute, span, visible_text
from approvals.views.earlier import what_moved
from ledger.domain.authority import GrantState
from ledger.domain.effects import EffectState
from ledger.domain.runs import Status
from ledger.models import Tenant

ENDED = {
    EffectState.COMMITTED: ("committed", "Done: recorded as carried out"),
    EffectState.IN_FLIGHT: ("in_flight", "The agent resumed; the call is out"),
    EffectState.UNKNOWN: ("unknown", "The outcome is unknown; nothing is sent again until it is known"),
    EffectState.FAILED: ("failed", "The call failed"),
    EffectState.WRITTEN_OFF: ("written_off", "The outcome was written off"),
}
DROPPED = {
    GrantState.REVOKED: ("revoked", "The approval was taken back before it was used"),
    GrantState.EXPIRED: ("expired", "The approval was not used in time; it has to be asked for again"),
}
DOES: Mapping[str, str] = {
    Status.RUNNING: "its workflow goes on",
    Status.WAITING: "its workflow waits for something else",
    Status.WAKING: "its workflow is being checked before it goes on",
    Status.READY: "its workflow is about to go on",
    Status.BLOCKED: "its workflow is in the hands of people",
    Status.COMPLETED: "its workflow completed",
    Status.FAILED: "its workflow ended as failed",
    Status.CANCELLED: "its workflow was cancelled",
}
ENDS = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED})


def progress(card: Card, tenant: Tenant) -> list[dict[str, Any]]:
    """The steps of a closed request: the decision, what the agent made of it, and what it asked then. Empty while it is open."""
    if card.pending:
        return []
    steps = [_decision(card), _approved(card) if card.state == RequestState.APPROVED else _refused(card)]
    later = card.asked_again
    if later is not None:
        steps.append(
            {
                "at": later.opened_at,
                "state": "ask_again",
                "title": "The agent asked again",
                "href": reverse("approval", args=[tenant.slug, later.pk]),
            }
        )
    return steps


def _decision(card: Card) -> dict[str, Any]:
    request = card.request
    at = request.closed_at or request.decide_by
    who = ", ".join(visible_text(vote.voter.name) for vote in card.votes if vote.revision == request.revision)
    titles = {
        RequestState.APPROVED: f"Decision recorded: approved by {who}",
        RequestState.DENIED: f"Decision recorded: denied by {who}",
        RequestState.WITHDRAWN: f"Withdrawn before a decision: {withdrawn(request.cause)}",
    }
    title = titles.get(RequestState(card.state), "Expired: nobody decided in time, nothing was sent")
    return {"at": at, "state": card.state, "title": title}


def _refused(card: Card) -> dict[str, Any]:
    """Of a request that was not approved: whether the agent has been told, and what its workflow did then."""
    status = Status(card.head.status)
    does = DOES[status]
    if card.told_at is not None:
        title = f"The agent was told; {does}"
        return {"at": max(card.told_at, card.head.moved_at), "state": str(status), "title": title, "text": _at(card)}
    if status in ENDS:
        return {
            "at": card.head.moved_at,
            "state": str(status),
            "title": f"{does[:1].upper()}{does[1:]}",
            "text": _at(card),
        }
    title = (
        "The agent has not been told yet" if status is not Status.WAITING else "The agent is told when its wait ends"
    )
    return {"at": card.head.moved_at, "state": "queued", "title": title, "text": f"run {status}"}


def _at(card: Card) -> str:
    if card.head.status in ENDS:
        return "nothing was sent for this request"
    return f"run {card.head.status}, at “{visible_text(card.head.transition)}”; nothing was sent for this request"


def _approved(card: Card) -> dict[str, Any]:
    effect, run = card.effect, f"run {card.head.status}"
    if effect.state in ENDED:
        state, title = ENDED[EffectState(effect.state)]
        reference = f"reference {visible_text(effect.reference)}, " if effect.reference else ""
        return {"at": effect.settled_at or card.now, "state": state, "title": title, "text": reference + run}
    if card.grant is not None and card.grant.cause == "withdrawn":
        title = "Not used: the agent did without this call, and nothing was sent"
        return {"at": card.grant.closed_at or card.now, "state": "withdrawn", "title": title, "text": run}
    if card.grant is not None and card.grant.state == GrantState.VOIDED:
        title = f"Void before it was used: {what_moved(card)}; nothing was sent"
        return {"at": card.grant.closed_at or card.now, "state": "voided", "title": title, "text": run}
    if card.grant is not None and card.grant.state in DROPPED:
        state, title = DROPPED[GrantState(card.grant.state)]
        return {"at": card.grant.closed_at or card.now, "state": state, "title": title, "text": run}
    if card.told_at is not None:
        return {"at": card.told_at, "state": "running", "title": "The agent resumed; no call is out yet", "text": run}
    return _waiting(card, run)


def _waiting(card: Card, run: str) -> dict[str, Any]:
    since = card.now - (card.request.closed_at or card.now)
    until = f"may be used until {absolute(card.grant.use_by)}; " if card.grant else ""
    if since > SLOW:
        title = f"The agent has not taken it up for {span(since.total_seconds())}"
        return {"at": card.now, "state": "late", "title": title, "text": until + run}
    return {"at": card.now, "state": "queued", "title": "The agent has not resumed yet", "text": until + run}
