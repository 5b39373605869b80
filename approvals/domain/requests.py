"""Approval requests, revisions and votes: states and rows. No clock, no I/O."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol
from uuid import UUID

from ledger.domain import waits
from ledger.domain.authority import Requirement
from ledger.domain.drafts import Draft
from ledger.domain.effects import EffectRow
from ledger.domain.machines import Machine
from ledger.domain.views import RunView

EFFECT = "effect"
"""The kind of subject that is an agent's effect."""


class RequestState(StrEnum):
    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"


class Choice(StrEnum):
    APPROVE = "approve"
    DENY = "deny"


MACHINE: Machine[RequestState] = Machine(
    "request",
    {
        RequestState.PENDING: {
            "approve": (RequestState.PENDING, RequestState.APPROVED),
            "deny": (RequestState.PENDING, RequestState.DENIED),
            "expire": (RequestState.EXPIRED,),
            "withdraw": (RequestState.WITHDRAWN,),
            "revise": (RequestState.PENDING,),
        },
        RequestState.APPROVED: {"revise": (RequestState.PENDING,)},
        RequestState.DENIED: {},
        RequestState.EXPIRED: {},
        RequestState.WITHDRAWN: {},
    },
)


@dataclass(frozen=True, slots=True)
class RequestRow:
    """A request as rules read it. `digest` is the subject's, of the current revision."""

    id: UUID
    run_id: UUID
    subject_kind: str
    subject_id: UUID
    state: RequestState
    cause: str
    revision: int
    digest: bytes
    decide_by: datetime
    opened_at: datetime
    closed_at: datetime | None


@dataclass(frozen=True, slots=True)
class RevisionRow:
    """One asking. `excluded` are ids of people as text; `use_by` is in seconds from approval."""

    id: UUID
    request_id: UUID
    number: int
    subject_digest: bytes
    requirement: dict[str, Any]
    requirement_digest: bytes
    excluded: list[str]
    observation_id: UUID | None
    reason: str
    decide_by: datetime
    opened_at: datetime

    @property
    def needs(self) -> Requirement:
        return Requirement.from_document(self.requirement)


@dataclass(frozen=True, slots=True)
class VoteRow:
    id: UUID
    request_id: UUID
    revision: int
    voter_id: UUID
    choice: Choice
    entry_point: str
    voted_at: datetime


@dataclass(frozen=True, slots=True)
class Asking:
    """What is asked, of whom, and by when at the latest (`wait_until`)."""

    run_id: UUID
    workflow_id: UUID
    effect: EffectRow
    needs: Requirement
    excluded: frozenset[UUID]
    wait_until: datetime
    reason: str

    def closes(self, now: datetime) -> datetime:
        """Decide-by: the rules' shortest window, and never after the wait's deadline."""
        return min(self.wait_until, now + self.needs.decide_by)


def open_request(draft: Draft, ask: Asking) -> UUID:
    """A new request with its first revision."""
    request_id = draft.mint()
    draft.insert(
        "approval_request",
        id=request_id,
        run_id=ask.run_id,
        workflow_id=ask.workflow_id,
        subject_kind=EFFECT,
        subject_id=ask.effect.id,
        state=RequestState.PENDING,
        revision=1,
        digest=ask.effect.subject_digest,
        decide_by=ask.closes(draft.at),
        opened_at=draft.at,
    )
    _revision(draft, ask, request_id, 1, None)
    return request_id


def revise(draft: Draft, ask: Asking, request: RequestRow, before: RevisionRow | None) -> None:
    """Ask again: every column of the request is of the new revision, and no vote of the one before counts for it."""
    state = MACHINE.step(request.state, "revise")
    draft.move(
        "approval_request",
        request.id,
        {"state": request.state, "revision": request.revision},
        state=state,
        cause="",
        revision=request.revision + 1,
        digest=ask.effect.subject_digest,
        decide_by=ask.closes(draft.at),
        closed_at=None,
    )
    _revision(draft, ask, request.id, request.revision + 1, before)


def reask(draft: Draft, view: RunView, ask: Asking, request: RequestRow, before: RevisionRow) -> None:
    """`revise` while the run waits for the answer: the wait knows until when it can come."""
    revise(draft, ask, request, before)
    waits.decide_by(draft, view, ask.effect.id, ask.closes(draft.at))


def _revision(draft: Draft, ask: Asking, request_id: UUID, number: int, before: RevisionRow | None) -> None:
    draft.insert(
        "revision",
        id=draft.mint(),
        run_id=ask.run_id,
        request_id=request_id,
        number=number,
        subject_digest=ask.effect.subject_digest,
        requirement=ask.needs.document(),
        requirement_digest=ask.needs.digest(),
        excluded=sorted(str(person) for person in ask.excluded),
        observation_id=ask.effect.observation_id,
        previous_observation_id=before.observation_id if before else None,
        reason=ask.reason,
        decide_by=ask.closes(draft.at),
        use_by=int(ask.needs.use_by.total_seconds()),
        opened_at=draft.at,
    )


def close(draft: Draft, request: RequestRow, event: str, cause: str = "", to: RequestState | None = None) -> None:
    """End a pending request. Raises LedgerError `wrong-state`."""
    state = MACHINE.step(request.state, event, to)
    draft.move(
        "approval_request",
        request.id,
        {"state": request.state, "revision": request.revision},
        state=state,
        cause=cause,
        closed_at=draft.at,
    )


CARRIED = "carried"
"""Entry point of a vote that was taken over from the revision before, about the same subject."""


class Cast(Protocol):
    """A vote as it was cast."""

    voter_id: UUID
    choice: str
    reason_body_id: UUID | None
    reason_commitment: bytes | memoryview[int] | None
    receipt_digest: bytes | memoryview[int]
    renderer: str
    voted_at: datetime


def carry(draft: Draft, request: RequestRow, vote: Cast, groups: list[str]) -> None:
    """The same vote, on the revision that follows the request's present one."""
    draft.insert(
        "vote",
        id=draft.mint(),
        run_id=draft.stream.id,
        request_id=request.id,
        revision=request.revision + 1,
        voter_id=vote.voter_id,
        choice=Choice(vote.choice),
        reason_body_id=vote.reason_body_id,
        reason_commitment=None if vote.reason_commitment is None else bytes(vote.reason_commitment),
        receipt_digest=bytes(vote.receipt_digest),
        renderer=vote.renderer,
        groups=groups,
        entry_point=CARRIED,
        voted_at=vote.voted_at,
    )


def rows_of(view: RunView) -> list[RequestRow]:
    """The run's requests that a verb may touch, from the view's extras."""
    names = {item.name for item in fields(RequestRow)}
    return [
        RequestRow(**{**{name: row[name] for name in names}, "state": RequestState(row["state"])})
        for row in view.extras["requests"]
    ]


def withdraw(draft: Draft, view: RunView, effect_ids: frozenset[UUID] | None, cause: str) -> None:
    """Withdraw the pending requests of these effects (None: of the whole run)."""
    for request in rows_of(view):
        if request.state is RequestState.PENDING and (effect_ids is None or request.subject_id in effect_ids):
            close(draft, request, "withdraw", cause)
