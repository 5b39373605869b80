"""What follows for the run when an effect's outcome becomes known, is contradicted, or can't be found. No clock, no I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledger.domain import waits, wakes
from ledger.domain.drafts import Draft
from ledger.domain.effects.base import EffectRow
from ledger.domain.handoffs import open_handoff
from ledger.domain.runs import ENDED, Status, end_ownership, to_status
from ledger.domain.waits.closing import Withdraw
from ledger.domain.waits.rows import SetState
from ledger.domain.wakes import WakeState

if TYPE_CHECKING:
    from ledger.domain.views import RunView


def settled(draft: Draft, view: RunView, effect: EffectRow, withdraw: Withdraw | None = None) -> None:
    """An effect left `unknown`, or an accepted one came to its end: whoever waits for it goes on."""
    waits.meet(draft, view, effect_id=effect.id, outcome=str(effect.state), withdraw=withdraw)


def contradicted(draft: Draft, view: RunView, effect: EffectRow, *, blocks: bool = True) -> None:
    """Evidence contradicts a recorded outcome. A committed effect's goes to a person; a failed one's to the target first (`blocks` is False)."""
    if blocks:
        to_person(draft, view, effect, "effect-disputed", "contradiction")
    elif view.head.status is Status.WAKING:
        wakes.queue(draft, view, "effect_unknown")
    elif view.head.status is Status.READY:
        end_ownership(draft, view)
        to_status(draft, view, "effect_settled", Status.WAKING)
        wakes.queue(draft, view, "effect_unknown")


def to_person(draft: Draft, view: RunView, effect: EffectRow, reason: str, event: str) -> bool:
    """Hand the effect to a person and block the run where it can be blocked.

    A running run isn't taken from its holder, and an ended one stays: there the handoff is on the effect alone. Answers whether the run is blocked.
    """
    status = view.head.status
    if status in ENDED or status is Status.RUNNING:
        open_handoff(draft, view, reason, effect_id=effect.id, blocks_run=False)
        return False
    if status is Status.BLOCKED:
        return True
    if status is Status.WAITING:
        waits.close(draft, view, SetState.SUPERSEDED, reason)
    if view.wake is not None:
        draft.move("wake", view.wake.id, {"state": view.wake.state}, state=WakeState.DROPPED)
    end_ownership(draft, view)
    to_status(draft, view, event, Status.BLOCKED)
    open_handoff(draft, view, reason, effect_id=effect.id)
    return True
