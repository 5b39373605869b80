"""What the agent of a request, and the person for whom it acts, asked in the last day: whether this one is one of many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Exists, F, OuterRef, Q, Subquery

from approvals.domain.requests import RequestState
from approvals.models import ApprovalRequest
from approvals.services import sightings
from ledger.domain import canonical
from ledger.domain.authority import GrantState
from ledger.domain.identity import Verb
from ledger.models import Effect, Grant, Run, User
from ledger.services import permissions

DAY = timedelta(hours=24)
LOOKED_THROUGH = 1_000
SHOWN = 8
OVER = frozenset({GrantState.VOIDED, GrantState.REVOKED, GrantState.EXPIRED})


@dataclass(frozen=True, slots=True)
class Line:
    """One other request. `arguments` is None for who may not see them; `state` is as people should read it."""

    request_id: UUID
    effect: Effect
    arguments: Any
    state: str
    at: datetime
    own: bool
    """By the same agent; otherwise by another one for the same person."""


@dataclass(frozen=True, slots=True)
class Lately:
    """The newest such requests, and how many there are of each state. `partial` says that more was asked than is looked through."""

    lines: Sequence[Line]
    counts: Mapping[str, int]
    partial: bool


def of(request: ApprovalRequest, run: Run, person: User, now: datetime, until: datetime) -> Lately:
    """Other requests of the day before `until` that this person may see, among the newest thousand of it, as they stand `now`. Two statements."""
    tenant = request.tenant_id
    day = ApprovalRequest.objects.of(tenant).filter(opened_at__gt=until - DAY, opened_at__lte=until)
    newest_first = day.order_by("-opened_at", "-pk").values("pk")
    seen, approved, read = (permissions.visible(person, verb) for verb in (Verb.SEE, Verb.APPROVE, Verb.SEE_PAYLOADS))
    reads = Exists(approved.filter(pk=OuterRef("workflow_id"))) | Exists(read.filter(pk=OuterRef("workflow_id")))
    leave = Grant.objects.of(tenant).filter(request_id=OuterRef("pk"))
    rows = ApprovalRequest.objects.of(tenant).filter(
        _whose(run), pk__in=newest_first[:LOOKED_THROUGH], workflow__in=seen.values("pk")
    )
    found = list(
        rows.exclude(pk=request.pk)
        .annotate(agent=F("run__agent_id"), reads=reads, partial=Exists(newest_first[LOOKED_THROUGH:]))
        .annotate(leave=Subquery(leave.order_by("-approved_at").values("state")[:1]))
        .order_by("-opened_at", "-pk")
        .values("pk", "state", "decide_by", "opened_at", "subject_id", "agent", "reads", "partial", "leave")
    )
    shown = found[:SHOWN]
    effects = Effect.objects.of(tenant).filter(pk__in=[row["subject_id"] for row in shown])
    by_id = {effect.pk: effect for effect in effects.select_related("target", "request")} if shown else {}
    return Lately(
        lines=[
            Line(
                request_id=row["pk"],
                effect=by_id[row["subject_id"]],
                arguments=_arguments(by_id[row["subject_id"]]) if row["reads"] else None,
                state=_state(row, now),
                at=row["opened_at"],
                own=row["agent"] == run.agent_id,
            )
            for row in shown
        ],
        counts=Counter(_state(row, now) for row in found),
        partial=found[0]["partial"] if found else newest_first[LOOKED_THROUGH:].exists(),
    )


def _whose(run: Run) -> Q:
    """By the same agent or for the same person; a person's own run is theirs."""
    whose = Q(pk__in=[])
    if run.agent_id is not None:
        whose |= Q(run__agent_id=run.agent_id)
    if run.on_behalf_of_id is not None:
        whose |= Q(run__on_behalf_of_id=run.on_behalf_of_id)
    return whose


def _state(row: Mapping[str, Any], now: datetime) -> str:
    """What was approved and is no leave any more isn't shown as approved."""
    if row["state"] == RequestState.APPROVED and row["leave"] in OVER:
        return str(row["leave"])
    late = row["state"] == RequestState.PENDING and row["decide_by"] <= now
    return str(RequestState.EXPIRED if late else row["state"])


def _arguments(effect: Effect) -> Any:
    raw = sightings.content_of(effect.request)
    return canonical.parse(raw) if raw else None
