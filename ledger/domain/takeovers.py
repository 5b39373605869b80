"""Handoffs in people's hands: owned, given back, closed with what happens next. No clock, no I/O."""

from __future__ import annotations

from uuid import UUID

from ledger.domain import effects, runs, wakes
from ledger.domain.canonical import Body
from ledger.domain.drafts import Draft
from ledger.domain.handoffs import MACHINE, HandoffRow, HandoffState, Outcome
from ledger.domain.runs import Intent, Status
from ledger.domain.views import RunView


def own(draft: Draft, handoff: HandoffRow, person: UUID) -> bool:
    """Take a handoff. False when it is this person's already. Raises LedgerError `wrong-state`."""
    if handoff.state is HandoffState.ACCEPTED and handoff.owner_id == person:
        return False
    state = MACHINE.step(handoff.state, "accept")
    draft.move("handoff", handoff.id, {"state": handoff.state}, state=state, owner_id=person)
    return True


def give_back(draft: Draft, handoff: HandoffRow) -> bool:
    """Nobody's again. Raises LedgerError `wrong-state`."""
    state = MACHINE.step(handoff.state, "give_back")
    draft.move("handoff", handoff.id, {"state": handoff.state}, state=state, owner_id=None)
    return True


def close(draft: Draft, view: RunView, handoff: HandoffRow, outcome: Outcome, note: Body) -> None:
    """Close a handoff with what happens next. One that blocks its run wakes it, with the intent when it is to end.

    Refused while a call of the run (or the one that it is about) may have happened unseen, or is disputed.

    Raises LedgerError `effects-open`, `wrong-state`.
    """
    state = MACHINE.step(handoff.state, "close")
    effects.check_closed(view, None if handoff.blocks_run else handoff.effect_id)
    draft.body(note)
    draft.move(
        "handoff",
        handoff.id,
        {"state": handoff.state},
        state=state,
        outcome=outcome,
        note_id=note.id,
        note_commitment=note.commitment,
        closed_at=draft.at,
    )
    if not handoff.blocks_run or view.head.status is not Status.BLOCKED:
        return
    # A person has looked: what was counted towards giving up starts again.
    draft.head(asks=0, claims_since_commit=0)
    if outcome is not Outcome.WAKE:
        draft.head(intent=Intent.CANCEL if outcome is Outcome.CANCEL else Intent.FAIL)
    runs.to_status(draft, view, "handoff_closed", Status.WAKING)
    wakes.queue(draft, view, f"handoff_{outcome}")
