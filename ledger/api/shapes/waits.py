"""Waits and their members."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field

from ledger.api.parsing import Exact, Name, Number, Time
from ledger.domain.errors import LedgerError
from ledger.domain.waits import MAX_MEMBERS, MemberKind, MemberSpec, OnDeadline, SetMode, WaitSpec
from ledger.models import WaitMember, WaitSet

TEN_YEARS = 10 * 366 * 86_400
Seconds = Annotated[Number, Field(ge=0, le=TEN_YEARS)]
Attribute = Annotated[str, Field(max_length=200)]


class ApprovalBody(Exact):
    """A person's leave for an effect of the same commit or transition."""

    kind: Literal["approval"]
    effect: Name


class EventMemberBody(Exact):
    """An event of this type, and of this source and subject where they are given; newer than `since` or the transition's opening."""

    kind: Literal["event"]
    type: str = Field(min_length=1, max_length=200)
    source: Attribute = ""
    subject: Attribute = ""
    since: Time | None = None


class TimerBody(Exact):
    """A time: exactly one of `at` and `after_seconds`."""

    kind: Literal["timer"]
    at: Time | None = None
    after_seconds: Seconds | None = None


class EffectMemberBody(Exact):
    """An effect's outcome."""

    kind: Literal["effect"]
    effect: Name


MemberBody = Annotated[ApprovalBody | EventMemberBody | TimerBody | EffectMemberBody, Field(discriminator="kind")]


class WaitBody(Exact):
    """What to wait for; exactly one of `deadline` and `deadline_seconds`. Silence never approves: at the deadline `on_deadline` happens."""

    mode: Literal["any", "all"]
    members: list[MemberBody] = Field(min_length=1, max_length=MAX_MEMBERS)
    deadline: Time | None = None
    deadline_seconds: Seconds | None = None
    on_deadline: Literal["wake", "cancel", "fail", "hand_off"]

    def spec(self) -> WaitSpec:
        """The same as a value of the domain. Raises LedgerError `invalid`."""
        return WaitSpec(
            mode=SetMode(self.mode),
            members=tuple(_member(member) for member in self.members),
            deadline=_moment("deadline", self.deadline, self.deadline_seconds),
            on_deadline=OnDeadline(self.on_deadline),
        )


def _member(member: ApprovalBody | EventMemberBody | TimerBody | EffectMemberBody) -> MemberSpec:
    kind = MemberKind(member.kind)
    if isinstance(member, TimerBody):
        return MemberSpec(kind, at=_moment("a timer", member.at, member.after_seconds))
    if isinstance(member, EventMemberBody):
        return MemberSpec(kind, source=member.source, type=member.type, subject=member.subject, since=member.since)
    return MemberSpec(kind, effect=member.effect)


def _moment(what: str, at: datetime | None, seconds: int | None) -> datetime | timedelta:
    if at is not None and seconds is None:
        return at
    if at is not None or seconds is None:
        raise LedgerError(
            "invalid", f"{what} needs a time or a number of seconds, and not both", "Send exactly one of the two."
        )
    return timedelta(seconds=seconds)


class MemberJSON(BaseModel):
    kind: str
    state: str
    outcome: str
    effect: UUID | None = None
    due_at: str | None = None
    type: str = ""
    source: str = ""
    subject: str = ""
    met_at: str | None = None
    reason: str | None = Field(default=None, description="Of a denied approval: what whoever denied it said.")


class WaitJSON(BaseModel):
    id: UUID
    mode: str
    state: str
    cause: str
    internal: str
    deadline: str
    on_deadline: str
    opened_at: str
    closed_at: str | None
    members: list[MemberJSON]


class WaitPage(BaseModel):
    waits: list[WaitJSON]
    next: str


def wait_json(row: WaitSet, members: list[WaitMember], reasons: Mapping[UUID, str]) -> dict[str, Any]:
    """A `WaitJSON`; `reasons` are what people said of the effects that they denied."""
    return {
        "id": row.pk,
        "mode": row.mode,
        "state": row.state,
        "cause": row.cause,
        "internal": row.internal,
        "deadline": row.deadline,
        "on_deadline": row.on_deadline,
        "opened_at": row.opened_at,
        "closed_at": row.closed_at,
        "members": [_member_json(member, reasons) for member in members],
    }


def _member_json(row: WaitMember, reasons: Mapping[UUID, str]) -> dict[str, Any]:
    return {
        "kind": row.kind,
        "state": row.state,
        "outcome": row.outcome,
        "effect": row.effect_id,
        "due_at": row.due_at,
        "type": row.event_type,
        "source": row.event_source,
        "subject": row.event_subject,
        "met_at": row.met_at,
        "reason": reasons.get(row.effect_id) if row.effect_id else None,
    }
