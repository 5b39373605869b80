"""Wakes: one pass over the facts from being asked for to its decision. No clock, no I/O."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from uuid import UUID

from ledger.domain.drafts import Draft
from ledger.domain.journal import committed
from ledger.domain.machines import Machine

if TYPE_CHECKING:
    from ledger.domain.views import RunView

RULE_VERSION = "wake/1"


class WakeState(StrEnum):
    QUEUED = "queued"
    CHECKING = "checking"
    DECIDED = "decided"
    DROPPED = "dropped"


class Answer(StrEnum):
    PASS = "pass"
    CHANGED = "changed"
    FAIL = "fail"
    CANNOT_TELL = "cannot_tell"


class DecisionKind(StrEnum):
    RESUME = "resume"
    COMPENSATE = "compensate"
    REPLAN = "replan"
    RETRY_LATER = "retry_later"
    ASK_AGAIN = "ask_again"
    RECONCILE = "reconcile"
    MIGRATE = "migrate"
    ROUTE_OLD = "route_old"
    CANCEL = "cancel"
    EXPIRE = "expire"
    FINISH = "finish"
    HAND_OFF = "hand_off"


MACHINE: Machine[WakeState] = Machine(
    "wake",
    {
        WakeState.QUEUED: {"begin": (WakeState.CHECKING,), "drop": (WakeState.DROPPED,)},
        WakeState.CHECKING: {
            "decide": (WakeState.DECIDED,),
            "requeue": (WakeState.QUEUED,),
            "drop": (WakeState.DROPPED,),
        },
        WakeState.DECIDED: {},
        WakeState.DROPPED: {},
    },
)


@dataclass(frozen=True, slots=True)
class Check:
    """One check's answer: with its reason, and what was recorded against what is observed."""

    name: str
    answer: Answer
    reason: str
    recorded: str = ""
    observed: str = ""
    subject: str = ""

    @property
    def code(self) -> str:
        """The check with its reason, as decisions and handoffs name it."""
        return f"{self.name}:{self.reason}"


@dataclass(frozen=True, slots=True)
class Unseen:
    """A target that couldn't be asked about a resource when the run was checked last, and why, as a code."""

    target: str
    resource: str
    reason: str


def kept(check: Check) -> Check:
    """A check as the record keeps it: so much of each text as its column takes."""
    return replace(
        check,
        subject=check.subject[:200],
        reason=check.reason[:40],
        recorded=check.recorded[:300],
        observed=check.observed[:300],
    )


def hashed(check: Check, salt: bytes | None) -> list[str | None]:
    """A check as the digest of its decision's facts covers it: with its texts as entries have them."""
    row = kept(check)
    texts = (committed(text, salt) for text in (row.recorded, row.observed, row.subject))
    return [row.name, str(row.answer), row.reason, *texts]


@dataclass(frozen=True, slots=True)
class WakeRow:
    id: UUID
    run_id: UUID
    state: WakeState
    reasons: list[Any]
    due_at: datetime
    until: datetime | None
    attempt: int
    opened_at: datetime
    overtaken: int = 0


def queue(draft: Draft, view: RunView, reason: str, due_at: datetime | None = None) -> None:
    """Ask for a wake of the run. An open wake has its due time pulled forward and the reason joined; there is one open wake a run."""
    due = due_at or draft.at
    wake = view.wake
    if wake is None:
        draft.insert(
            "wake",
            id=draft.mint(),
            run_id=view.run.id,
            state=WakeState.QUEUED,
            reasons=[reason],
            due_at=due,
            attempt=0,
            opened_at=draft.at,
        )
        return
    reasons = wake.reasons if reason in wake.reasons else [*wake.reasons, reason]
    if wake.state is WakeState.CHECKING:
        # A deciding fact moved under the checker: it must look again.
        draft.move(
            "wake", wake.id, {"state": wake.state}, state=WakeState.QUEUED, reasons=reasons, due_at=due, until=None
        )
    else:
        draft.move("wake", wake.id, {"state": wake.state}, reasons=reasons, due_at=min(due, wake.due_at))


ATTEMPTS = 3
OVERTAKEN = 10
"""So often a check may be overtaken by what happens elsewhere in its tenant before that counts as an attempt."""


def begin(draft: Draft, wake: WakeRow, within: timedelta) -> WakeRow:
    """Take a due wake, or one whose checker is taken for dead: it has so long. The attempt counts before the work."""
    taken = replace(wake, state=WakeState.CHECKING, attempt=wake.attempt + 1, until=draft.at + within)
    draft.move(
        "wake",
        wake.id,
        {"state": wake.state, "attempt": wake.attempt},
        state=taken.state,
        attempt=taken.attempt,
        until=taken.until,
    )
    return taken


PUT_OFF = timedelta(minutes=15)
"""Longer than any wake is put off and than any checker has: a time beyond it was written by a clock that has gone back since."""


def hurry(draft: Draft, wake: WakeRow) -> bool:
    """Make due now what a clock that has gone back left for much later. False for a wake that comes round soon enough by itself."""
    late = wake.until if wake.state is WakeState.CHECKING else wake.due_at
    if late is None or late <= draft.at + PUT_OFF:
        return False
    if wake.state is WakeState.CHECKING:
        requeue(draft, wake, "clock")
    else:
        draft.move("wake", wake.id, {"state": wake.state}, due_at=draft.at)
    return True


def overtaken(draft: Draft, wake: WakeRow) -> None:
    """Something moved in the tenant under the checker: it must look again, after as many seconds as that happened before. No attempt of its own."""
    if wake.overtaken >= OVERTAKEN:
        requeue(draft, wake, "moved")
        return
    reasons = wake.reasons if "moved" in wake.reasons else [*wake.reasons, "moved"]
    draft.move(
        "wake",
        wake.id,
        {"state": wake.state, "attempt": wake.attempt},
        state=MACHINE.step(wake.state, "requeue"),
        attempt=wake.attempt - 1,
        overtaken=wake.overtaken + 1,
        due_at=draft.at + timedelta(seconds=wake.overtaken),
        until=None,
        reasons=reasons,
    )


def requeue(draft: Draft, wake: WakeRow, reason: str) -> None:
    """A deciding fact moved under the checker: it must look again, at once."""
    state = MACHINE.step(wake.state, "requeue")
    reasons = wake.reasons if reason in wake.reasons else [*wake.reasons, reason]
    draft.move("wake", wake.id, {"state": wake.state}, state=state, due_at=draft.at, until=None, reasons=reasons)


def drop(draft: Draft, wake: WakeRow) -> None:
    """The run no longer wants to be woken."""
    state = MACHINE.step(wake.state, "drop")
    draft.move("wake", wake.id, {"state": wake.state}, state=state, until=None, closed_at=draft.at)
