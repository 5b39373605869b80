"""Effects: identity, the machine, permits, settles and what may be believed of a look-up. No clock, no I/O."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from ledger.domain.machines import Machine


class EffectState(StrEnum):
    PROPOSED = "proposed"
    IN_FLIGHT = "in_flight"
    COMMITTED = "committed"
    FAILED = "failed"
    UNKNOWN = "unknown"
    WITHDRAWN = "withdrawn"
    WRITTEN_OFF = "written_off"


class FailCause(StrEnum):
    NOT_DISPATCHED = "not_dispatched"
    THROTTLED = "throttled"
    CONFIRMED_ABSENT = "confirmed_absent"
    REJECTED = "rejected"


RETRYABLE = frozenset({FailCause.NOT_DISPATCHED, FailCause.THROTTLED, FailCause.CONFIRMED_ABSENT})


class WithdrawCause(StrEnum):
    BY_AGENT = "by_agent"
    DENIED = "denied"
    EXPIRED = "expired"
    SUPERSEDED = "superseded"
    CANCELLED = "cancelled"


class ReportKind(StrEnum):
    SETTLE = "settle"
    LATE = "late"
    LOOKUP = "lookup"
    REPLAY = "replay"
    LAPSE = "lapse"
    VERDICT = "verdict"


class LookAnswer(StrEnum):
    """What a target can say of a key."""

    APPLIED = "applied"
    REFUSED = "refused"
    IN_PROGRESS = "in_progress"
    ABSENT = "absent"
    DIFFERS = "differs"
    CANNOT_TELL = "cannot_tell"


class Settled(StrEnum):
    """What a worker can report of its call."""

    COMMITTED = "committed"
    FAILED = "failed"
    UNKNOWN = "unknown"
    ACCEPTED = "accepted"


P, I, C, F, U = (
    EffectState.PROPOSED,
    EffectState.IN_FLIGHT,
    EffectState.COMMITTED,
    EffectState.FAILED,
    EffectState.UNKNOWN,
)
WD, WO = EffectState.WITHDRAWN, EffectState.WRITTEN_OFF

MACHINE: Machine[EffectState] = Machine(
    "effect",
    {
        P: {"permit": (I,), "withdraw": (WD,)},
        I: {"settle": (C, F, U, I), "lapse": (U,), "look": (C, F, U, I)},
        U: {"look": (C, F, U), "receipt": (C,), "verdict": (C, F, WO)},
        F: {"permit": (I,), "contradiction": (U,)},
        C: {},
        WD: {},
        WO: {},
    },
)

OPEN = frozenset({I, U})
"""States in which an effect may have happened without the ledger knowing: a run with one can't end."""


def effect_key(tenant: UUID, lineage: UUID, instance: UUID, name: str) -> str:
    """The key under which the target knows the effect: derived, so that every retry, worker and version arrives at the same one.

    SHA-256 over tenant, lineage root run, transition instance and the explicit name; 'ra_' and 40 hex digits.
    """
    text = f"effect-key/1\x00{tenant}\x00{lineage}\x00{instance}\x00{name}"
    return "ra_" + hashlib.sha256(text.encode()).hexdigest()[:40]


@dataclass(frozen=True, slots=True)
class EffectRow:
    """An effect as rules read it."""

    id: UUID
    run_id: UUID
    lineage_id: UUID
    opened_instance_id: UUID
    instance_id: UUID
    name: str
    key: str
    call_key: str | None
    tool: str
    tool_digest: str
    target_id: UUID
    resource: str
    request_id: UUID
    request_commitment: bytes
    observation_id: UUID | None
    observed_version: str
    subject_digest: bytes
    state: EffectState
    cause: str
    disputed: bool
    accepted: bool
    attempt: int
    accounted_count: int
    reference: str
    result_id: UUID | None
    due_at: datetime | None
    looks: int
    first_permit_at: datetime | None
    answer_by: datetime | None
    proposed_at: datetime
    settled_at: datetime | None


@dataclass(frozen=True, slots=True)
class TargetRow:
    """A target's guarantees as rules read them; times in seconds."""

    id: UUID
    name: str
    kind: str
    base_url: str
    private: bool
    keyed: bool
    first_result_replayed: bool
    key_retention: int
    visibility_delay: int
    freshness: int
    call_limit: int
    lookup: dict[str, object] | None
    observe: dict[str, object] | None
    material: list[str]
