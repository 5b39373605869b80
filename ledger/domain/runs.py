"""Runs: five live states and three final ones, the fence, leases, clearances. No clock, no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from ledger.domain.errors import LedgerError
from ledger.domain.machines import Machine


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
            "release": (K,),
            "lapse": (K, B),
            "permit_refused": (K,),
            "cancel": (K, R),
            "contradiction": (B,),
        },
        W: {"wait_closed": (K,), "cancel": (K,), "effect_settled": (K, W), "contradiction": (B,), "give_up": (B,)},
        K: {"decide": (Y, W, B, K, Status.CANCELLED, Status.FAILED), "cancel": (K,), "contradiction": (B,), "give_up": (B,), "effect_settled": (K,)},
        Y: {
            "claim": (R, K),
            "not_claimed": (K, B),
            "cancel": (K,),
            "effect_settled": (K,),
            "contradiction": (B,),
            "give_up": (B,),
        },
        B: {"handoff_closed": (K, Status.CANCELLED, Status.FAILED), "cancel": (B,), "effect_settled": (B, K), "contradiction": (B,), "give_up": (B,)},
        Status.COMPLETED: {},
        Status.FAILED: {},
        Status.CANCELLED: {},
    },
)

CLAIMS_BEFORE_POISONED = 3


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
            if dot and epoch.isdecimal() and count.isdecimal() and len(text) < 30:
                return cls(int(epoch), int(count))
        raise LedgerError("invalid", "the fence is not of the form 'epoch.counter'", "Send the fence exactly as the claim answered it.")

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
    seconds: int
    active: bool
    claimed_at: datetime
    expires_at: datetime


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


def check_fence(head: Head, fence: Fence) -> None:
    """Refuse a writer that isn't the holder: it needs the right fence and a running run. Raises LedgerError."""
    if head.fence != fence:
        raise LedgerError(
            "stale-fence",
            f"the run's fence is {head.fence}; yours is {fence}: another owner has taken over, or your lease lapsed",
            "Stop working on this run. Report what your call did with settle; it is kept as evidence.",
            fence=str(head.fence),
        )
    if head.status is not Status.RUNNING:
        raise LedgerError(
            "wrong-state", f"the run is {head.status}, not running", "Claim it before you write to it.", state=str(head.status)
        )


def directive(head: Head, fence: Fence, lease: LeaseRow | None) -> tuple[Directive, str]:
    """What a heartbeat answers for one run, and why. Pure."""
    if head.fence != fence or lease is None or not lease.active:
        return Directive.STOP, "taken_over" if head.status not in ENDED else "ended"
    if head.status is not Status.RUNNING:
        return Directive.STOP, "not_running"
    if head.intent is not Intent.NONE:
        return Directive.STOP_AFTER_CALL, f"intent_{head.intent}"
    return Directive.GO_ON, ""
