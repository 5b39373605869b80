"""What the agent and its principal asked in the last day, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.urls import reverse

from approvals.domain.requests import RequestState
from approvals.renderers import Asked, words_for
from approvals.services.cards import Card
from approvals.services.lately import LOOKED_THROUGH, Line
from approvals.templatetags.console import visible_text
from ledger.domain.authority import GrantState
from ledger.models import Tenant

STATES: Mapping[str, str] = {
    RequestState.PENDING: "waiting",
    RequestState.APPROVED: "approved",
    GrantState.VOIDED: "approved, then void",
    GrantState.REVOKED: "approved, then taken back",
    RequestState.DENIED: "denied",
    RequestState.EXPIRED: "expired",
    RequestState.WITHDRAWN: "withdrawn",
}


def context(card: Card, tenant: Tenant) -> dict[str, Any]:
    """How much was asked, by state, and the newest of it as rows of `partials/_timeline.html`."""
    told = card.lately
    total = sum(told.counts.values())
    listed = ", ".join(f"{told.counts[state]} {word}" for state, word in STATES.items() if told.counts.get(state))
    return {
        "whose": _whose(card),
        "said": f"{total:,} other request{'s' if total != 1 else ''}{'' if card.pending else ', as they stand now'}: {listed}."
        if total
        else "Nothing else was asked.",
        "partial": f"Only the newest {LOOKED_THROUGH:,} requests were looked through." if told.partial else "",
        "items": [_item(line, card, tenant) for line in told.lines],
        "more": max(0, total - len(told.lines)),
    }


def _whose(card: Card) -> str:
    names = [visible_text(each.name) for each in (card.agent, card.acts_for) if each is not None]
    return " or for ".join(names)


def _item(line: Line, card: Card, tenant: Tenant) -> dict[str, Any]:
    effect = line.effect
    title = words_for(Asked(effect.tool, effect.target.name, effect.resource, line.arguments)).headline
    return {
        "at": line.at,
        "state": "open" if line.state == RequestState.PENDING else line.state,
        "title": visible_text(title),
        "text": STATES[line.state] + ("" if line.own else f", by another agent for {_principal(card)}"),
        "href": reverse("approval", args=[tenant.slug, line.request_id]),
    }


def _principal(card: Card) -> str:
    return visible_text(card.acts_for.name) if card.acts_for else "the same person"
