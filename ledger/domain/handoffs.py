"""Handoffs: opened by the engine, owned and closed by people. No clock, no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING
from uuid import UUID

from ledger.domain.drafts import Draft
from ledger.domain.machines import Machine

if TYPE_CHECKING:
    from ledger.domain.views import RunView

CONTRADICTED = "effect-contradicted"
"""A run ended on an outcome that may be wrong: somebody has to know, even when the right one is found by itself."""
UNRECONCILED = "deadline:unreconciled"
"""The run waited for outcomes until its deadline; it goes on once none is unknown."""
ESCALATES_AFTER = timedelta(hours=4)


class HandoffState(StrEnum):
    OPEN = "open"
    ACCEPTED = "accepted"
    CLOSED = "closed"
    WITHDRAWN = "withdrawn"


OPEN_HANDOFFS = (HandoffState.OPEN, HandoffState.ACCEPTED)
"""Nobody has said yet what happens next."""


class Outcome(StrEnum):
    WAKE = "wake"
    CANCEL = "cancel"
    FAIL = "fail"


MACHINE: Machine[HandoffState] = Machine(
    "handoff",
    {
        HandoffState.OPEN: {
            "accept": (HandoffState.ACCEPTED,),
            "close": (HandoffState.CLOSED,),
            "withdraw": (HandoffState.WITHDRAWN,),
        },
        HandoffState.ACCEPTED: {"close": (HandoffState.CLOSED,), "give_back": (HandoffState.OPEN,)},
        HandoffState.CLOSED: {},
        HandoffState.WITHDRAWN: {},
    },
)


class Severity(StrEnum):
    """How grave it is that nobody acts. Whatever comes to a person today stands still, or may be wrong."""

    HIGH = "high"


@dataclass(frozen=True, slots=True)
class HandoffRow:
    id: UUID
    run_id: UUID
    effect_id: UUID | None
    state: HandoffState
    reason: str
    blocks_run: bool
    owner_id: UUID | None
    opened_at: datetime
    due_at: datetime
    escalated_at: datetime | None = None
    """When nobody had closed it in its time; it stays so."""


def escalate(draft: Draft, handoff: HandoffRow) -> bool:
    """Nobody closed it by its due time, whether or not somebody has taken it: it stands first from here on, and is never closed by that. False when
    that isn't so, or was said before."""
    if handoff.state not in OPEN_HANDOFFS or handoff.escalated_at is not None or draft.at < handoff.due_at:
        return False
    draft.move(
        "handoff",
        handoff.id,
        {"state": handoff.state, "escalated_at": None},
        escalated_at=draft.at,
    )
    return True


def open_handoff(
    draft: Draft,
    view: RunView,
    reason: str,
    *,
    effect_id: UUID | None = None,
    decision_id: UUID | None = None,
    blocks_run: bool = True,
) -> UUID:
    """Give the run (or one effect of it) to a person. A run that already has an open handoff keeps the one it has, and so does an effect: where the
    run is to stand still for it, that one blocks it from here on."""
    if blocks_run and view.handoff is not None:
        return view.handoff.id
    known = view.handoff_on(effect_id)
    if known is not None:
        if blocks_run:
            found = {"state": known.state, "blocks_run": False}
            draft.move("handoff", known.id, found, blocks_run=True, reason=reason, decision_id=decision_id)
        return known.id
    handoff_id = draft.mint()
    draft.insert(
        "handoff",
        id=handoff_id,
        run_id=view.run.id,
        effect_id=effect_id,
        decision_id=decision_id,
        state=HandoffState.OPEN,
        reason=reason,
        severity=Severity.HIGH,
        blocks_run=blocks_run,
        owner_id=None,
        opened_at=draft.at,
        due_at=draft.at + ESCALATES_AFTER,
    )
    return handoff_id


def withdraw(draft: Draft, handoff: HandoffRow) -> bool:
    """Nobody needs to take it any more. False for one that a person has taken: they close it."""
    if handoff.state is not HandoffState.OPEN:
        return False
    state = MACHINE.step(handoff.state, "withdraw")
    draft.move("handoff", handoff.id, {"state": handoff.state}, state=state, closed_at=draft.at)
    return True
