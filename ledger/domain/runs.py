"""Runs: five live states and three final ones, the fence, leases, clearances. No clock, no I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING
from uuid import UUID

from ledger.domain.drafts import Draft
from ledger.domain.errors import LedgerError
from ledger.domain.machines import Machine

if TYPE_CHECKING:
    from ledger.domain.views import RunView


class Status(StrEnum):
    RUNNING = "running"
    WAITING = "waiting"
    WAKING = "waking"
    READY = "ready"
    BLOCKED = "blocked"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Intent(StrEnum):
    NONE = "none"
    CANCEL = "cancel"
    FAIL = "fail"


class ClearanceState(StrEnum):
    LIVE = "live"
    USED = "used"
    STALE = "stale"
    CLOSED = "closed"


class Directive(StrEnum):
    """What a heartbeat tells the holder."""

    GO_ON = "go_on"
    STOP_AFTER_CALL = "stop_after_call"
    STOP = "stop"


R, W, K, Y, B = Status.RUNNING, Status.WAITING, Status.WAKING, Status.READY, Status.BLOCKED
ENDED = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED})
LIVE = frozenset(Status) - ENDED

MACHINE: Machine[Status] = Machine(
    "run",
    {
        R: {
            "go_on": (R, K),
            "give_back": (K,),
            "wait": (W, K),
            "complete": (Status.COMPLETED,),
            "fail": (Status.FAILED,),
            "release": (K, B),
            "lapse": (K, B),
            "permit_refused": (K, B),
            "cancel": (K, R),
            "contradiction": (B,),
        },
        W: {
            "wait_closed": (K,),
            "cancel": (K,),
            "effect_settled": (K, W),
            "contradiction": (B,),
            "give_up": (B,),
        },
        K: {
            "decide": (Y, W, B, K, Status.CANCELLED, Status.FAILED),
            "cancel": (K,),
            "contradiction": (B,),
            "give_up": (B,),
            "effect_settled": (K,),
        },
        Y: {
            "claim": (R, K),
            "not_claimed": (K, B),
            "cancel": (K,),
            "effect_settled": (K,),
            "contradiction": (B,),
            "give_up": (B,),
        },
        B: {
            "handoff_closed": (K, Status.CANCELLED, Status.FAILED),
            "cancel": (B,),
            "effect_settled": (B, K),
            "contradiction": (B,),
            "give_up": (B,),
        },
        Status.COMPLETED: {},
        Status.FAILED: {},
        Status.CANCELLED: {},
    },
)

CLAIMS_BEFORE_POISONED = 3
"""A run whose lease lapses after this many claims without a commit kills its workers: it is blocked."""
RELEASES_BEFORE_STUCK = 10
"""A run that is given back, or refused its permit, after this many claims without a commit gets nowhere: it is blocked."""


def comes_round_after(claims: int) -> timedelta:
    """How long a run waits for its wake after so many claims without a commit: 0, 1, 3, 7 … seconds."""
    return timedelta(seconds=2 ** max(0, claims - 1) - 1)


@dataclass(frozen=True, slots=True)
class Fence:
    """(restore epoch, counter): compared for equality; changes whenever ownership begins or ends."""

    epoch: int
    count: int

    def __str__(self) -> str:
        return f"{self.epoch}.{self.count}"

    @classmethod
    def parse(cls, text: object) -> Fence:
        """Read `epoch.counter`. Raises LedgerError `invalid`."""
        if isinstance(text, str):
            epoch, dot, count = text.partition(".")
            if dot and epoch.isdecimal() and count.isdecimal() and max(len(epoch), len(count)) <= 9:
                return cls(int(epoch), int(count))
        raise LedgerError(
            "invalid",
            "the fence is not of the form 'epoch.counter'",
            "Send the fence exactly as the claim answered it.",
        )

    def next(self) -> Fence:
        return Fence(self.epoch, self.count + 1)


@dataclass(frozen=True, slots=True)
class Head:
    """A run's head as read: what its machine, its fence and its chain are at."""

    run_id: UUID
    tenant_id: UUID
    workflow_id: UUID
    status: Status
    intent: Intent
    head_seq: int
    head_digest: bytes
    fence_epoch: int
    fence_count: int
    checkpoint_seq: int
    checkpoint_digest: bytes
    transition: str
    instance_id: UUID
    version: str
    clearance_id: UUID | None
    claims_since_commit: int
    asks: int
    moved_at: datetime
    ended_at: datetime | None
    salt: bytes | None

    @property
    def fence(self) -> Fence:
        return Fence(self.fence_epoch, self.fence_count)


@dataclass(frozen=True, slots=True)
class LeaseRow:
    run_id: UUID
    worker_id: UUID
    key_id: UUID
    fence_epoch: int
    fence_count: int
    version: str
    seconds: int
    active: bool
    claimed_at: datetime
    expires_at: datetime
    agents: Sequence[str] = ()
    """The ids of the agents that have held the run, each once, in the order of their first claims."""


@dataclass(frozen=True, slots=True)
class ClearanceRow:
    id: UUID
    decision_id: UUID | None
    transition: str
    instance_id: UUID
    versions: list[str]
    targets: list[str]
    tools: list[str]
    valid_until: datetime
    ready_by: datetime
    state: ClearanceState
    opened_at: datetime


def check_fence(head: Head, fence: Fence) -> None:
    """Refuse a writer that isn't the holder: it needs the right fence and a running run. Raises LedgerError.

    The present fence is told to nobody but by a claim: a stale worker that heard it would be one again.
    """
    if head.fence != fence:
        raise LedgerError(
            "stale-fence",
            f"{fence} isn't the run's fence any more: another owner has taken over, or your lease lapsed",
            "Stop working on this run. Report what your call did with settle; it is kept as evidence.",
        )
    if head.status is not Status.RUNNING:
        raise LedgerError(
            "wrong-state",
            f"the run is {head.status}, not running",
            "Claim it before you write to it.",
            state=str(head.status),
        )


def check_holder(view: RunView, agent_id: UUID | None) -> None:
    """Refuse an agent that isn't the one that claimed the run last, whatever fence it names: fences stand in journals. Before the fence is looked
    at, so that the answer tells nobody whether they guessed it. Raises LedgerError `forbidden`."""
    if agent_id is None or view.holder_agent_id not in (None, agent_id):
        raise LedgerError("forbidden", "another agent holds this run", "Work under a fence of your own claim.")


def to_status(draft: Draft, view: RunView, event: str, to: Status | None = None) -> Status:
    """Move the run's status by its machine and note when. Raises LedgerError `wrong-state`."""
    status = MACHINE.step(draft.heads("status", view.head.status), event, to)
    draft.head(status=status, moved_at=draft.at)
    if status in ENDED:
        draft.head(ended_at=draft.at)
    return status


def end_ownership(draft: Draft, view: RunView) -> Fence:
    """Nobody owns the run from here on: the fence changes, the lease is over, the clearance is closed. Answers the new fence."""
    fence = view.head.fence.next()
    draft.head(fence_epoch=fence.epoch, fence_count=fence.count)
    if view.lease is not None and view.lease.active:
        draft.move("lease", view.run.id, {"active": True, "fence_count": view.lease.fence_count}, active=False)
    close_clearance(draft, view, ClearanceState.CLOSED)
    return fence


def close_clearance(draft: Draft, view: RunView, state: ClearanceState) -> None:
    """Nobody may go on under the run's present clearance any more."""
    draft.head(clearance_id=None)
    if view.clearance is not None and view.clearance.state is ClearanceState.LIVE:
        draft.move("clearance", view.clearance.id, {"state": ClearanceState.LIVE}, state=state)


@dataclass(frozen=True, slots=True)
class Cleared:
    """What a clearance is for: the next transition, its instance, the versions that may do it, and what they may touch."""

    transition: str
    instance_id: UUID
    versions: tuple[str, ...]
    targets: tuple[str, ...]
    tools: tuple[str, ...]


CLEARANCE_GOOD_FOR = timedelta(minutes=5)
READY_BY_AFTER = timedelta(hours=1)


def clear(draft: Draft, run_id: UUID, cleared: Cleared, state: ClearanceState, decision_id: UUID | None = None) -> UUID:
    """Write a clearance and make it the run's: `live` until somebody claims under it, `used` while its holder works."""
    clearance_id = draft.mint()
    draft.insert(
        "clearance",
        id=clearance_id,
        run_id=run_id,
        decision_id=decision_id,
        transition=cleared.transition,
        instance_id=cleared.instance_id,
        versions=list(cleared.versions),
        targets=list(cleared.targets),
        tools=list(cleared.tools),
        valid_until=draft.at + CLEARANCE_GOOD_FOR,
        ready_by=draft.at + READY_BY_AFTER,
        state=state,
        opened_at=draft.at,
    )
    draft.head(clearance_id=clearance_id)
    return clearance_id


def open_instance(draft: Draft, run_id: UUID, transition: str, seq: int) -> UUID:
    """Open a transition: from here on the effects it proposes have identities of their own. `seq` is the checkpoint that names it."""
    instance_id = draft.mint()
    draft.insert(
        "transition_instance",
        id=instance_id,
        run_id=run_id,
        transition=transition,
        opened_seq=seq,
        opened_at=draft.at,
        left_at=None,
    )
    draft.head(transition=transition, instance_id=instance_id)
    return instance_id


def leave_instance(draft: Draft, view: RunView) -> None:
    """The present transition is over."""
    draft.move("transition_instance", view.head.instance_id, {"left_at": None}, left_at=draft.at)
