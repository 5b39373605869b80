"""What follows for the run when an effect's outcome becomes known, is contradicted, or can't be found. No clock, no I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledger.domain import handoffs, waits, wakes
from ledger.domain.drafts import Draft
from ledger.domain.effects.base import EffectRow, EffectState, move
from ledger.domain.runs import ENDED, Status, end_ownership, to_status
from ledger.domain.waits.closing import Withdraw
from ledger.domain.waits.rows import SetState
from ledger.domain.wakes import WakeState

if TYPE_CHECKING:
    from ledger.domain.views import RunView


def settled(
    draft: Draft, view: RunView, effect: EffectRow, withdraw: Withdraw | None = None, *, by_person: bool = False
) -> None:
    """An effect left `unknown`, an accepted one came to its end, or a dispute did: whoever waits for it goes on, and its handoff is withdrawn.

    A dispute that goes on keeps its handoff, and the run blocked over it.
    That a run ended on a wrong outcome stays with a person, unless a person said so (`by_person`).
    """
    if effect.disputed and view.head.status is Status.BLOCKED:
        return
    waits.meet(draft, view, effect_id=effect.id, outcome=str(effect.state), withdraw=withdraw)
    handoff = view.handoff_on(effect.id)
    if handoff is None or effect.disputed:
        return
    wrong = handoff.reason == handoffs.CONTRADICTED and effect.state is EffectState.COMMITTED
    if by_person or not wrong:
        handoffs.withdraw(draft, handoff)


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
    elif view.head.status in ENDED:
        handoffs.open_handoff(draft, view, handoffs.CONTRADICTED, effect_id=effect.id, blocks_run=False)


def dispute(draft: Draft, view: RunView, effect: EffectRow) -> EffectRow | None:
    """A recorded outcome is contradicted: it stays, is marked, and a person is asked once."""
    if effect.disputed:
        return None
    moved = move(draft, effect, disputed=True)
    contradicted(draft, view, moved)
    return moved


def to_person(draft: Draft, view: RunView, effect: EffectRow, reason: str, event: str) -> bool:
    """Hand the effect to a person and block the run where it can be blocked.

    A running run isn't taken from its holder, and an ended one stays: there the handoff is on the effect alone. Answers whether the run is blocked.
    """
    status = view.head.status
    if status in ENDED or status is Status.RUNNING:
        handoffs.open_handoff(draft, view, reason, effect_id=effect.id, blocks_run=False)
        return False
    if status is Status.BLOCKED:
        return True
    if status is Status.WAITING:
        waits.close(draft, view, SetState.SUPERSEDED, reason)
    if view.wake is not None:
        draft.move("wake", view.wake.id, {"state": view.wake.state}, state=WakeState.DROPPED)
    end_ownership(draft, view)
    to_status(draft, view, event, Status.BLOCKED)
    handoffs.open_handoff(draft, view, reason, effect_id=effect.id)
    return True
