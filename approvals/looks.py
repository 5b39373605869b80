"""Look at a request's target again, because a person asked or an open card grew old: outside of every transaction, then recorded on the run."""

from __future__ import annotations

from datetime import timedelta

from approvals.services.cards import Card
from ledger.domain import effects as rules
from ledger.domain.change import Change
from ledger.domain.effects import SeenVersion
from ledger.domain.views import RunView
from ledger.engine.observe import seen_version
from ledger.models import User
from ledger.services import targets, writer
from ledger.services.contracts import writes
from ledger.services.drafts import run_draft
from ledger.services.views import run_view

JUST_NOW = timedelta(seconds=2)


@writes(
    moves="Inserts an observation of the request's target.",
    twice="A look of the last two seconds counts; later one more observation.",
    dies="Before the record nothing was written.",
)
def look_again(card: Card, person: User | None) -> bool:
    """Ask the target for the card's resource and record what was seen, as the person who pressed for it; with None as the open card itself, since
    reading is nobody's act. False when it could not be seen; a look of just now counts.

    Network, at most as long as the target's limit for a call.
    """
    if not (card.pending and card.reads and card.effect.resource):
        return False
    if card.newest is not None and card.now - card.newest.at < JUST_NOW:
        return True
    target = targets.of_tenant(card.request.tenant_id).get(card.effect.target.name)
    seen = seen_version(target, card.effect.resource) if target is not None else None
    if seen is None:
        return False
    _record(card, f"person:{person.pk}" if person is not None else "system:card", seen)
    return True


def _record(card: Card, actor: str, seen: SeenVersion) -> None:
    def rule(view: RunView) -> tuple[Change, None]:
        draft = run_draft(view, actor, "target.look")
        rules.observe(draft, view, seen)
        return draft.change(), None

    writer.settle(lambda: run_view(card.effect.run_id, card.request.tenant_id), rule)
