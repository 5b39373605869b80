"""A card's target in words: how it was when it was asked, what it showed when it was decided on, and what was seen later."""

from __future__ import annotations

from typing import Any

from approvals.domain.requests import RequestState
from approvals.services import sightings
from approvals.services.cards import Card
from approvals.services.sightings import Seen
from approvals.templatetags.console import exact, span, visible_text
from approvals.views import sources
from approvals.views.documents import diff
from ledger.models import Tenant

DECIDED = frozenset({RequestState.APPROVED, RequestState.DENIED})


def context(card: Card, tenant: Tenant) -> dict[str, Any]:
    """The target's state as observed when it was proposed, against the look that is decided on; beside it what was seen later."""
    before, shown = card.proposed, card.shown
    told = {"title": _title(card), "href": sources.sighting(shown, tenant), "later": later(card)}
    if before is None or shown is None:
        said = "Nobody has looked at the target: its state is not known."
        if not card.pending:
            said = "Nobody had looked at the target by then: its state was not known."
        unknown = {"said": said, "moved": False, "known": False, "at": None, "version": "", "rows": [], "since": ""}
        return {**unknown, **told, "steady": ""}
    moved = sightings.moved(card.effect, before, shown)
    rows = diff(before, shown) if card.reads else []
    since = "asked again" if card.revision.number > 1 else "proposed"
    changed = any(row["changed"] for row in rows)
    return {
        **told,
        "steady": _steady(card, since, same=before.version == shown.version),
        "changed": changed,
        "said": _said(card, before, shown),
        "moved": moved,
        "known": True,
        "at": shown.at,
        "version": visible_text(shown.version),
        "rows": rows,
        "since": since,
        "drifted": before.version == shown.version and changed,
    }


def _title(card: Card) -> str:
    if card.pending:
        return "The target now"
    return "The target as it was decided on" if card.state in DECIDED else "The target when it ended"


def seen_as(card: Card) -> str:
    """What stands above a column of what the target showed."""
    if card.pending:
        return "As last seen"
    return "As decided on" if card.state in DECIDED else "When it ended"


def later(card: Card) -> dict[str, Any] | None:
    """Looks after the decision: how often, what the last one showed, and field by field where that differs. None where there was none."""
    if not card.later:
        return None
    newest, shown = card.later[0], card.shown
    often = len(card.later)
    more = " or more" if often == sightings.MOST_LATER else ""
    looked = "once after that, on" if often == 1 else f"{often} times{more} after that, the last time on"
    rows = diff(shown, newest) if card.reads and shown else []
    moved = shown is not None and sightings.moved(card.effect, shown, newest)
    return {
        "said": f"Looked at {looked} {exact(newest.at)}: version {visible_text(newest.version)}.",
        "moved": moved,
        "rows": rows if any(row["changed"] for row in rows) else [],
        "at": f"On {exact(newest.at)}",
    }


def _steady(card: Card, since: str, *, same: bool) -> str:
    if not same:
        return f"What matters of it {'is' if card.pending else 'was'} as it was when {since}"
    return f"Unchanged since it was {since}" if card.pending else f"As it was when {since}"


def _said(card: Card, before: Seen, newest: Seen) -> str:
    """What moved, by the names of the fields that matter where the target says which do."""
    if before.version == newest.version:
        if card.over_at is None:
            return f"Last seen {span((card.now - newest.at).total_seconds())} ago."
        return f"Last seen {span((card.over_at - newest.at).total_seconds())} before."
    then = f"It was version {visible_text(before.version)} then."
    if not card.effect.target.material:
        return then
    fields = sightings.fields_moved(card.effect, before, newest)
    which = ", ".join(visible_text(pointer.removeprefix("/")) for pointer in fields or card.effect.target.material)
    return f"{then} {'Moved' if fields else 'Not moved'} of what matters: {which}."
