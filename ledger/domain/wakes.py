"""Wakes: checks, the decision, what each decision opens. Pure, total, deterministic."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from ledger.domain.machines import Machine

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
        WakeState.CHECKING: {"decide": (WakeState.DECIDED,), "requeue": (WakeState.QUEUED,), "drop": (WakeState.DROPPED,)},
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
