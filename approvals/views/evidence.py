"""Evidence on a card, in words: what resumeapp found out by itself, apart from what the agent and others claim."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.urls import reverse

from approvals.services import evidence
from approvals.services.cards import Card
from approvals.services.evidence import Called
from approvals.services.sightings import Seen
from approvals.templatetags.console import exact, visible_text, words
from approvals.views import documents, sources
from ledger.domain.effects import ReportKind
from ledger.models import Tenant

MOST_FIELDS = 12
SAID: Mapping[str, str] = {
    ReportKind.SETTLE: "as its worker reported",
    ReportKind.LATE: "as its worker reported late",
    ReportKind.VERDICT: "as a person recorded by hand",
}


def context(card: Card, tenant: Tenant) -> dict[str, Any]:
    """Rows of `partials/_kv.html`: `verified`, `claimed` of the calls and the state from which the agent asked, and what became known `later`."""
    found = evidence.calls(card)
    sure = [call for call in found.known if call.confirmed is not None]
    told = [call for call in found.known if call.confirmed is None]
    seen = [_seen(card, tenant, card.shown)] if card.shown is not None else []
    return {
        "verified": [*seen, *(_call(call, tenant) for call in sure)],
        "claimed": [*(_call(call, tenant) for call in told), *_state(card.agent_state)],
        "later": [*(_seen(card, tenant, look) for look in card.later), *(_since(call, tenant) for call in found.later)],
        "checkpoint": card.checkpoint,
        "href": sources.run(card, tenant, "checkpoints"),
    }


def _seen(card: Card, tenant: Tenant, seen: Seen) -> dict[str, Any]:
    return {
        "label": visible_text(" ".join(filter(None, [card.effect.target.name, card.effect.resource]))),
        "value": f"version {visible_text(seen.version)}",
        "href": sources.sighting(seen, tenant),
        "note": f"read at the target by resumeapp on {exact(seen.at)}",
    }


def _call(call: Called, tenant: Tenant) -> dict[str, Any]:
    effect = call.effect
    reference = f", reference {visible_text(call.reference)}" if call.reference else ""
    target = visible_text(effect.target.name)
    sure = f"{target} said so when asked on {exact(call.confirmed)}" if call.confirmed else ""
    note = sure or SAID.get(call.said, "as was reported")
    return {
        "label": f"Call “{visible_text(effect.name)}”",
        "value": f"{words(call.state)} at {target}{reference}",
        "href": reverse("effect", args=[tenant.slug, effect.pk]),
        "note": f"disputed; {note}" if call.disputed else note,
    }


def _since(call: Called, tenant: Tenant) -> dict[str, Any]:
    """What is known of a call by now that wasn't, or was otherwise, when it was decided."""
    row = _call(call, tenant)
    return row if call.confirmed or call.at is None else {**row, "note": f"{row['note']} on {exact(call.at)}"}


def _state(state: Any) -> list[dict[str, Any]]:
    if not isinstance(state, dict):
        return []
    rows = documents.compare(None, dict(list(state.items())[:MOST_FIELDS]))
    fields = [{"label": row["field"], "value": row["after"] or '""'} for row in rows]
    more = len(state) - MOST_FIELDS
    return [*fields, *([{"label": "…", "value": f"{more} more, all on the run’s page"}] if more > 0 else [])]
