"""Effects: states, causes, the machine, identity, and rows as rules read them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from ledger.domain.canonical import digest
from ledger.domain.drafts import Draft
from ledger.domain.journal import committed
from ledger.domain.machines import Machine
from ledger.domain.runs import Fence


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


DONE = OPEN | {C, WO}
"""States of what has happened, may have, or is closed: nothing of it may be done a second time."""


def effect_key(tenant: UUID, lineage: UUID, instance: UUID, name: str) -> str:
    """The key under which the target knows the effect: derived, so that every retry, worker and version arrives at the same one.

    SHA-256 over tenant, lineage root run, transition instance and the explicit name; 'ra_' and 40 hex digits.
    """
    text = f"effect-key/1\x00{tenant}\x00{lineage}\x00{instance}\x00{name}"
    return "ra_" + hashlib.sha256(text.encode()).hexdigest()[:40]


@dataclass(frozen=True, slots=True)
class EffectRow:
    """An effect as rules read it. `disputed` while accounts of it contradict each other; `held` is what a person found of one recorded as done.

    `carried_from` and `carried_to` are the transitions that proposed and called what a replan carried along: until a holder who has accounted
    for it leaves the second again, the name is taken in every instance on the way.
    """

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
    held: str
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
    trace: UUID | None = None
    carried_from: str = ""
    carried_to: str = ""

    @property
    def done(self) -> bool:
        """Was it called, and not refused: has it happened, or may it have?"""
        return self.state in DONE or self.disputed


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
    guaranteed_at: datetime
    """Since when it has what leave rests on (`targets.APPROVED_ON`)."""

    @property
    def remembers_for(self) -> timedelta:
        """How long after the first permit the target is trusted to know a key: its retention, less a tenth."""
        return timedelta(seconds=self.key_retention) * 0.9


@dataclass(frozen=True, slots=True)
class PermitRow:
    """Leave for one attempt, as rules read it."""

    id: UUID
    effect_id: UUID
    attempt: int
    fence_epoch: int
    fence_count: int
    precondition: str
    send_by: datetime
    answer_by: datetime

    @property
    def fence(self) -> Fence:
        return Fence(self.fence_epoch, self.fence_count)


@dataclass(frozen=True, slots=True)
class ReportRow:
    """What somebody said of an attempt, as rules read it."""

    id: UUID
    effect_id: UUID
    ordinal: int
    attempt: int
    kind: ReportKind
    answer: str
    cause: str
    reference: str
    evidence_id: UUID | None
    evidence_commitment: bytes | None
    counted: bool
    actor: str
    fence_epoch: int | None
    fence_count: int | None
    reported_at: datetime

    @property
    def fence(self) -> Fence | None:
        """The fence that its reporter named; None where no worker spoke."""
        if self.fence_epoch is None or self.fence_count is None:
            return None
        return Fence(self.fence_epoch, self.fence_count)


@dataclass(frozen=True, slots=True)
class Subject:
    """What leave for an effect is bound to: all of it, and nothing that changes while the effect stays the same."""

    tool: str
    tool_digest: str
    target: str
    target_id: UUID
    resource: str
    observed_version: str
    request_commitment: bytes
    key: str


def subject_digest(subject: Subject, salt: bytes | None) -> bytes:
    """SHA-256 over every field of a subject, its texts as the journal has them: commitments under the salt of the run's stream. 32 bytes."""
    return digest(
        "effect-subject/2",
        {
            "tool": subject.tool,
            "tool_digest": committed(subject.tool_digest, salt),
            "target": subject.target,
            "target_id": subject.target_id,
            "resource": committed(subject.resource, salt),
            "observed_version": committed(subject.observed_version, salt),
            "request": subject.request_commitment,
            "key": subject.key,
        },
    )


def subject_of(effect: EffectRow, target: TargetRow) -> Subject:
    """The subject of a recorded effect."""
    return Subject(
        tool=effect.tool,
        tool_digest=effect.tool_digest,
        target=target.name,
        target_id=target.id,
        resource=effect.resource,
        observed_version=effect.observed_version,
        request_commitment=bytes(effect.request_commitment),
        key=effect.key,
    )


def move(draft: Draft, effect: EffectRow, **values: Any) -> EffectRow:
    """Move an effect's row and answer it as it will be."""
    draft.move("effect", effect.id, {"state": effect.state}, **values)
    return replace(effect, **values)


@dataclass(frozen=True, slots=True)
class Said:
    """A report about to be written: `evidence` is the id and the commitment of its body."""

    kind: ReportKind
    answer: str
    attempt: int
    cause: str = ""
    reference: str = ""
    evidence: tuple[UUID, bytes] | None = None
    fence: Fence | None = None


def report(draft: Draft, effect: EffectRow, said: Said, *, counted: bool) -> None:
    """Write down what was said of an attempt. Its ordinal is the sequence of the entry that it is written with."""
    draft.insert(
        "effect_report",
        id=draft.mint(),
        run_id=effect.run_id,
        effect_id=effect.id,
        ordinal=draft.expect_seq + 1,
        attempt=said.attempt,
        kind=said.kind,
        answer=said.answer,
        cause=said.cause,
        reference=said.reference,
        evidence_id=said.evidence[0] if said.evidence else None,
        evidence_commitment=said.evidence[1] if said.evidence else None,
        counted=counted,
        actor=draft.actor,
        fence_epoch=said.fence.epoch if said.fence else None,
        fence_count=said.fence.count if said.fence else None,
        reported_at=draft.at,
    )


def names(effects: Sequence[EffectRow]) -> list[str]:
    """Their names in order, for facts of refusals."""
    return sorted(effect.name for effect in effects)
