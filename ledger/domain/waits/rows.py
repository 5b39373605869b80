"""Wait sets and their members: states, outcomes, rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from ledger.domain.machines import Machine


class SetMode(StrEnum):
    ANY = "any"
    ALL = "all"


class SetState(StrEnum):
    OPEN = "open"
    SATISFIED = "satisfied"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"


class MemberKind(StrEnum):
    TIMER = "timer"
    APPROVAL = "approval"
    EVENT = "event"
    EFFECT = "effect"


class MemberState(StrEnum):
    OPEN = "open"
    MET = "met"
    CLOSED = "closed"


class OnDeadline(StrEnum):
    WAKE = "wake"
    CANCEL = "cancel"
    FAIL = "fail"
    HAND_OFF = "hand_off"


class Inaction(StrEnum):
    """What comes of it when nobody does anything: the deadline's action, a timer that is enough to go on (`FIRE`), or
    one after which the engine asks a target again (`ASK`)."""

    WAKE = "wake"
    CANCEL = "cancel"
    FAIL = "fail"
    HAND_OFF = "hand_off"
    FIRE = "fire"
    ASK = "ask"


class Outcome(StrEnum):
    """What a member came to. An effect's member takes the effect's state."""

    DUE = "due"
    RECEIVED = "received"
    APPROVED = "approved"
    NOT_NEEDED = "not_needed"
    DENIED = "denied"
    DENIED_BY_POLICY = "denied_by_policy"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"


DEAD = frozenset({Outcome.DENIED, Outcome.DENIED_BY_POLICY, Outcome.EXPIRED, Outcome.WITHDRAWN})
"""Outcomes after which a member can no longer be met: they close its set at once."""


class Internal(StrEnum):
    """The engine's own waits."""

    RETRY_LATER = "retry_later"
    RECONCILE = "reconcile"
    ASK_AGAIN = "ask_again"


SET: Machine[SetState] = Machine(
    "wait",
    {
        SetState.OPEN: {
            "satisfy": (SetState.SATISFIED,),
            "expire": (SetState.EXPIRED,),
            "cancel": (SetState.CANCELLED,),
            "supersede": (SetState.SUPERSEDED,),
        },
        SetState.SATISFIED: {},
        SetState.EXPIRED: {},
        SetState.CANCELLED: {},
        SetState.SUPERSEDED: {},
    },
)

MEMBER: Machine[MemberState] = Machine(
    "wait member",
    {
        MemberState.OPEN: {"meet": (MemberState.MET,), "close": (MemberState.CLOSED,)},
        MemberState.MET: {},
        MemberState.CLOSED: {},
    },
)

EVENT_KEPT_DAYS = 7


@dataclass(frozen=True, slots=True)
class SetRow:
    id: UUID
    run_id: UUID
    instance_id: UUID
    mode: SetMode
    state: SetState
    internal: str
    cause: str
    deadline: datetime
    on_deadline: OnDeadline
    due_at: datetime
    opened_at: datetime
    closed_at: datetime | None


@dataclass(frozen=True, slots=True)
class MemberRow:
    id: UUID
    wait_id: UUID
    ordinal: int
    kind: MemberKind
    state: MemberState
    outcome: str
    due_at: datetime | None
    effect_id: UUID | None
    event_source: str
    event_type: str
    event_subject: str
    since: datetime | None
    event_id: UUID | None
    met_at: datetime | None
    not_from: Sequence[str] = ()
    """The ids of the agents whose events never meet it."""

    def columns(self) -> dict[str, Any]:
        """Its values by column. `dataclasses.asdict` copies every value deeply, which takes longer than to write the row."""
        return {name: getattr(self, name) for name in self.__slots__}
