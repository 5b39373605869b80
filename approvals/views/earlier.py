"""What was decided before about the same thing and why that no longer holds, in words: on top of a card, and in its state."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from approvals.domain.requests import CARRIED, Choice, RequestState
from approvals.renderers import Asked, Words, words_for
from approvals.services import sightings
from approvals.services.cards import Card
from approvals.services.earlier import Earlier, called
from approvals.templatetags.console import absolute, visible_text
from approvals.views import documents
from ledger.domain.authority import GrantState
from ledger.domain.effects import EffectState, WithdrawCause
from ledger.domain.phrases import GRANTS

TARGET_CHANGED = "target-changed"
LEAVE = {code: GRANTS[code] for code in ("expired", "target-changed", "votes-lost", "request-missing")}
"""What a wake found wrong with leave that no comparison of two askings shows."""


def pill(card: Card) -> dict[str, str]:
    """The request's state as a badge. An approval that is void, taken back or ran out is not shown as one that holds."""
    if card.stance == "":
        return {"state": "open", "label": "Waiting for you"}
    if card.state != RequestState.APPROVED or card.grant is None:
        return {"state": card.state, "label": ""}
    ended = {
        GrantState.REVOKED: "Approved, then taken back",
        GrantState.EXPIRED: "Approved, then not used in time",
        GrantState.VOIDED: f"Approved, then void: {what_moved(card)}",
    }
    label = ended.get(GrantState(card.grant.state), "")
    return {"state": str(card.grant.state) if label else card.state, "label": label}


def what_moved(card: Card) -> str:
    """Why leave for the card's effect went void, as far as the record shows it."""
    if card.grant is not None and card.grant.cause == "left_behind":
        return "the agent went on without this call"
    before, now, ended = card.proposed, card.newest, card.head.ended_at
    if ended is not None and card.grant is not None and card.grant.closed_at == ended:
        return "the run ended"
    if card.effect.cause == WithdrawCause.BY_AGENT:
        return "the agent did without it"
    if before is not None and now is not None and sightings.moved(card.effect, before, now):
        return f"{thing(card.effect.resource)} changed"
    return "the agent planned anew"


def thing(resource: str) -> str:
    """A resource in a sentence: "orders/1001" is "the order"; a name without a kind stays itself."""
    kind, slash, _ = resource.partition("/")
    known = {"order": "the order", "orders": "the order", "invoice": "the invoice", "invoices": "the invoice"}
    return known.get(kind, visible_text(resource)) if slash else visible_text(resource)


def context(card: Card) -> dict[str, Any] | None:
    """What came before this asking: what was decided, why it no longer holds, and what differs now. None for a first asking."""
    before = card.earlier
    if before is None:
        return None
    title = words_for(Asked(before.effect.tool, before.effect.target.name, before.effect.resource, before.arguments))
    return {
        "said": _decided(before),
        "why": _why(card, before),
        "headline": visible_text(title.headline) if before.effect.pk != card.effect.pk else "",
        "reason": _reason(before) if card.reads else "",
        "request": before.request.pk if before.request.pk != card.request.pk else None,
        "rows": _rows(card, before) if card.reads else [],
        "columns": ("When it was approved" if before.state == RequestState.APPROVED else "Before", "Now"),
    }


def _rows(card: Card, before: Earlier) -> list[dict[str, Any]]:
    """What differs of the target and of what would be sent."""
    seen = documents.diff(before.seen, card.proposed) if before.seen and card.proposed else []
    sent = documents.compare(before.arguments, card.arguments) if before.arguments else []
    rows = [*seen, *({**row, "field": f"to be sent: {row['field']}"} for row in sent)]
    return [row for row in rows if row["changed"]]


def _decided(before: Earlier) -> str:
    choice = Choice.DENY if before.state == RequestState.DENIED else Choice.APPROVE
    votes = [vote for vote in before.votes if vote.choice == choice]
    by = f" by {', '.join(visible_text(vote.voter.name) for vote in votes)}" if votes else ""
    at = f" on {absolute(votes[-1].voted_at)}" if votes else ""
    told = {
        RequestState.APPROVED: f"It was approved{by}{at}.",
        RequestState.DENIED: f"It was denied{by}{at}.",
        RequestState.EXPIRED: f"It expired on {absolute(before.request.decide_by)}: nobody decided in time.",
        RequestState.WITHDRAWN: "It was withdrawn before a decision.",
    }
    if before.state in told:
        return told[RequestState(before.state)]
    return f"It had the approval{by}{at}, and was not decided yet." if votes else "It was not decided yet."


def _why(card: Card, before: Earlier) -> str:
    """Why the earlier answer is no leave now; before all else, that its call was made."""
    grant = before.grant
    if repeats(card):
        return _done(before)
    if before.state == RequestState.DENIED:
        return "The agent was told, and asks anew."
    if grant is not None and grant.state == GrantState.REVOKED:
        by = f" by {before.taken_back_by}" if before.taken_back_by else ""
        return f"That approval was taken back{by} on {absolute(grant.closed_at)}; the agent asks again."
    if card.revision.reason == "vote_withdrawn" and before.request.pk == card.request.pk:
        carried = any(vote.entry_point == CARRIED and vote.revision == card.request.revision for vote in card.votes)
        others = "; other approvals were carried over" if carried else ""
        return f"{before.taken_back_by or 'An approver'} took their approval back{others}."
    if grant is not None and grant.state == GrantState.EXPIRED:
        return f"That approval was not used until {absolute(grant.use_by)}."
    return f"{'That approval no longer holds' if grant else 'It is asked again'}: {'; '.join(_reasons(card, before))}."


def repeats(card: Card) -> bool:
    """Was another call about the same thing made already, or may it have been? Of a decided card: by then."""
    before = card.earlier
    if before is None or before.effect.pk == card.effect.pk or not called(before.effect):
        return False
    first = before.effect.first_permit_at
    return card.over_at is None or first is None or first <= card.over_at


def graver(card: Card, asked: Words) -> Words:
    """The words of a call that may be made a second time: at high risk, whatever it is."""
    if not card.reads or not repeats(card) or asked.risk == "high":
        return asked
    return replace(asked, risk="high", risk_label="High risk: may be a second one")


def _done(before: Earlier) -> str:
    effect = before.effect
    if effect.state != EffectState.COMMITTED or effect.disputed or effect.held == EffectState.FAILED:
        return "Its call was made, and its outcome isn’t settled: this may be a second one."
    reference = f", reference {visible_text(effect.reference)}" if effect.reference else ""
    return f"It was carried out on {absolute(effect.settled_at)}{reference}: this would be a second one."


def _reasons(card: Card, before: Earlier) -> list[str]:
    broke = card.broke.get(card.revision.number, "") if before.request.pk == card.request.pk else ""
    told = [void(card, broke, before.revision.opened_at)] if broke in LEAVE else []
    if not told and before.effect.target_id == card.effect.target_id and set_up_since(card, before.revision.opened_at):
        told = [void(card, TARGET_CHANGED, before.revision.opened_at)]
    if before.seen is not None and card.proposed is not None and before.seen.version != card.proposed.version:
        told.append(f"{thing(card.effect.resource)} changed since")
    if bytes(before.revision.requirement_digest) != bytes(card.revision.requirement_digest):
        told.append("the policy now requires something else")
    if before.arguments is not None and card.arguments is not None and before.arguments != card.arguments:
        told.append("what would be sent is not the same")
    if before.request.pk == card.request.pk:
        return told or ["it has to be given anew"]
    return told or ["the agent planned anew, and leave is for one plan only"]


def set_up_since(card: Card, at: datetime) -> bool:
    """Has the card's target been set up otherwise since, in what leave for it rests on?"""
    return card.effect.target.guaranteed_at > at


def void(card: Card, why: str, at: datetime) -> str:
    """Why leave of that time no longer holds: of a target that is set up otherwise since also from where to where it went, where it did."""
    target = card.effect.target
    if why != TARGET_CHANGED or not target.former_url or not set_up_since(card, at):
        return LEAVE[why]
    name, former, present = (visible_text(text) for text in (target.name, target.former_url, target.base_url))
    return f"{LEAVE[why]} ({name} was at {former} and is at {present} now)"


def _reason(before: Earlier) -> str:
    bodies = [vote.reason_body for vote in before.votes if vote.reason_body is not None]
    texts = [sightings.content_of(body) for body in bodies]
    return "\n".join(visible_text(text.decode()) for text in texts if text)
