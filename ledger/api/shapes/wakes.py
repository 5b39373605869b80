"""Wakes and their decisions."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from pydantic import BaseModel

from ledger.models import Decision, Wake, WakeCheck


class WakeJSON(BaseModel):
    id: UUID
    state: str
    reasons: list[Any]
    due_at: str
    attempt: int
    opened_at: str
    closed_at: str | None
    decision: UUID | None


class WakePage(BaseModel):
    wakes: list[WakeJSON]
    next: str


class CheckJSON(BaseModel):
    """One check: what was recorded against what is observed."""

    name: str
    subject: str
    answer: str
    reason: str
    recorded: str
    observed: str


class DecisionJSON(BaseModel):
    id: UUID
    wake: UUID
    decision: str
    reasons: list[Any]
    rule_version: str
    facts_digest: str
    transition: str
    instance: UUID
    decided_at: str
    checks: list[CheckJSON]


class DecisionPage(BaseModel):
    decisions: list[DecisionJSON]
    next: str


def wake_json(row: Wake) -> dict[str, Any]:
    """A `WakeJSON`."""
    return {
        "id": row.pk,
        "state": row.state,
        "reasons": row.reasons,
        "due_at": row.due_at,
        "attempt": row.attempt,
        "opened_at": row.opened_at,
        "closed_at": row.closed_at,
        "decision": row.decision_id,
    }


def decision_json(row: Decision, checks: list[WakeCheck]) -> dict[str, Any]:
    """A `DecisionJSON`."""
    return {
        "id": row.pk,
        "wake": row.wake_id,
        "decision": row.decision,
        "reasons": row.reasons,
        "rule_version": row.rule_version,
        "facts_digest": row.facts_digest,
        "transition": row.transition,
        "instance": row.instance_id,
        "decided_at": row.decided_at,
        "checks": [
            {
                "name": check.name,
                "subject": check.subject,
                "answer": check.answer,
                "reason": check.reason,
                "recorded": check.recorded,
                "observed": check.observed,
            }
            for check in checks
        ],
    }
