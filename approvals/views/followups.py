"""What came of a decision: that it was recorded and that the agent went on are two different facts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from approvals.domain.requests import RequestState
from approvals.services.cards import Card
from approvals.templatetags.console import absolute, span, visible_text
from ledger.domain.authority import GrantState
from ledger.domain.effects import EffectState

SLOW = timedelta(minutes=5)

ENDED = {
    EffectState.COMMITTED: ("committed", "Done: the target confirmed it"),
    EffectState.IN_FLIGHT: ("in_flight", "The call is out"),
    EffectState.UNKNOWN: ("unknown", "The outcome is unknown; it is being looked up"),
    EffectState.FAILED: ("failed", "The call failed"),
    EffectState.WRITTEN_OFF: ("written_off", "The outcome was written off"),
}
DROPPED = {
    GrantState.REVOKED: ("revoked", "The approval was taken back before it was used"),
    GrantState.EXPIRED: ("expired", "The approval was not used in time; it has to be asked for again"),
    GrantState.VOIDED: ("voided", "The approval no longer fits what would be done; it has to be asked for again"),
}


def progress(card: Card) -> list[dict[str, Any]]:
    """Two steps of a closed request: the decision, and what the agent made of it. Empty while it is open."""
    if card.pending:
        return []
    return [_decision(card), _agent(card)]


def _decision(card: Card) -> dict[str, Any]:
    request = card.request
    at = request.closed_at or request.decide_by
    who = ", ".join(visible_text(vote.voter.name) for vote in card.votes if vote.revision == request.revision)
    titles = {
        RequestState.APPROVED: f"Decision recorded: approved by {who}",
        RequestState.DENIED: f"Decision recorded: denied by {who}",
        RequestState.WITHDRAWN: f"Withdrawn before a decision: {request.cause.replace('_', ' ')}",
    }
    title = titles.get(RequestState(card.state), "Expired: nobody decided in time, nothing was sent")
    return {"at": at, "state": card.state, "title": title}


def _agent(card: Card) -> dict[str, Any]:
    effect, run = card.effect, f"run {card.head.status}"
    if card.state != RequestState.APPROVED:
        return {
            "at": card.head.moved_at,
            "state": str(card.head.status),
            "title": "What the agent does now",
            "text": run,
        }
    if effect.state in ENDED:
        state, title = ENDED[EffectState(effect.state)]
        reference = f"reference {visible_text(effect.reference)}, " if effect.reference else ""
        return {"at": effect.settled_at or card.now, "state": state, "title": title, "text": reference + run}
    if card.grant is not None and card.grant.state in DROPPED:
        state, title = DROPPED[GrantState(card.grant.state)]
        return {"at": card.grant.closed_at or card.now, "state": state, "title": title, "text": run}
    return _waiting(card, run)


def _waiting(card: Card, run: str) -> dict[str, Any]:
    since = card.now - (card.request.closed_at or card.now)
    until = f"may be used until {absolute(card.grant.use_by)}; " if card.grant else ""
    if since > SLOW:
        title = f"The agent has not taken it up for {span(since.total_seconds())}"
        return {"at": card.now, "state": "late", "title": title, "text": until + run}
    return {"at": card.now, "state": "queued", "title": "The agent has not resumed yet", "text": until + run}
