"""The inbox's rows: one page of what waits for a person, read with the same number of queries however long it is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q

from approvals.domain.requests import Choice, RequestState
from approvals.models import ApprovalRequest, Revision, Vote
from approvals.services import inbox, standing
from ledger.domain import canonical
from ledger.domain.authority import Requirement
from ledger.domain.identity import Verb
from ledger.models import Agent, Effect, Run, Tenant, User
from ledger.services import permissions

PAGE = 50
MOST_CHECKED = 200


@dataclass(frozen=True, slots=True)
class Row:
    """One waiting request with what its line says. Who may approve it may read its arguments."""

    request: ApprovalRequest
    effect: Effect
    arguments: Any
    agent: str
    task: str
    workflow: str
    given: int
    wanted: int


@dataclass(frozen=True, slots=True)
class After:
    """Where a page begins: after this deadline and id."""

    decide_by: datetime
    id: UUID


def page_for(
    person: User, tenant: Tenant, after: After | None = None, size: int = PAGE
) -> tuple[list[Row], After | None]:
    """One page, oldest deadline first, and where the next begins (None at the end). Keyset paging: rows that leave meanwhile move nothing."""
    rows = inbox.pending_for(person, tenant).select_related("workflow")
    if after is not None:
        rows = rows.filter(Q(decide_by__gt=after.decide_by) | Q(decide_by=after.decide_by, pk__gt=after.id))
    found = list(rows.order_by("decide_by", "pk")[: size + 1])
    shown = found[:size]
    more = After(shown[-1].decide_by, shown[-1].pk) if len(found) > size else None
    return _rows(tenant, shown), more


def newer_for(person: User, tenant: Tenant, since: datetime) -> int:
    """How many requests wait for the person that were asked, or asked again, after a moment."""
    asked = Revision.objects.of(tenant).filter(request=OuterRef("pk"), number=OuterRef("revision"), opened_at__gt=since)
    return inbox.pending_for(person, tenant).filter(Exists(asked)).order_by()[:100].count()


@dataclass(frozen=True, slots=True)
class Gone:
    """How many listed requests wait for the person no longer, and whether people decided all of them."""

    count: int
    decided: bool


def gone_for(person: User, tenant: Tenant, shown: Sequence[UUID]) -> Gone:
    """What became of the requests that a page lists: at most a page of them."""
    waiting = set(inbox.pending_for(person, tenant).filter(pk__in=shown).values_list("pk", flat=True))
    gone = set(shown) - waiting
    voted = Vote.objects.of(tenant).filter(request=OuterRef("pk"), revision=OuterRef("revision"), voter=person)
    decided = ApprovalRequest.objects.of(tenant).filter(pk__in=gone, workflow__in=permissions.visible(person, Verb.SEE))
    by_people = decided.filter(Q(state__in=(RequestState.APPROVED, RequestState.DENIED)) | Exists(voted))
    return Gone(len(gone), bool(gone) and by_people.count() == len(gone))


def impossible_for(person: User, tenant: Tenant) -> list[tuple[UUID, str, list[str]]]:
    """Pending requests that too few people could approve: id, workflow and the groups that lack people, for operators and administrators."""
    types = permissions.visible(person, Verb.OPERATE) | permissions.visible(person, Verb.ADMINISTER)
    watched = {workflow.pk: workflow for workflow in types.filter(tenant=tenant)}
    rows = ApprovalRequest.objects.of(tenant).filter(state=RequestState.PENDING, workflow__in=list(watched))
    pending = list(rows.order_by("decide_by", "pk")[:MOST_CHECKED])
    revisions = _revisions(tenant, pending)
    answers: dict[tuple[Any, ...], list[str]] = {}
    told = []
    for request in pending:
        revision, workflow = revisions[request.pk], watched[request.workflow_id]
        key = (workflow.pk, bytes(revision.requirement_digest), *revision.excluded)
        if key not in answers:
            rules = Requirement.from_document(revision.requirement).rules
            answers[key] = standing.cannot_be_met(rules, {UUID(text) for text in revision.excluded}, workflow)
        if answers[key]:
            told.append((request.pk, workflow.name, answers[key]))
    return told


def _rows(tenant: Tenant, requests: Sequence[ApprovalRequest]) -> list[Row]:
    effects = Effect.objects.of(tenant).filter(pk__in=[request.subject_id for request in requests])
    by_id = {effect.pk: effect for effect in effects.select_related("target", "request")}
    runs = Run.objects.of(tenant).filter(pk__in=[request.run_id for request in requests])
    about = {run.pk: run for run in runs}
    agents = Agent.objects.of(tenant).filter(pk__in={run.agent_id for run in about.values()})
    names = dict(agents.values_list("pk", "name"))
    revisions, given = _revisions(tenant, requests), _given(tenant, requests)
    return [
        Row(
            request=request,
            effect=by_id[request.subject_id],
            arguments=_arguments(by_id[request.subject_id]),
            agent=names.get(about[request.run_id].agent_id, ""),
            task=about[request.run_id].task,
            workflow=request.workflow.name if request.workflow else "",
            given=given[request.pk],
            wanted=sum(rule.quorum for rule in Requirement.from_document(revisions[request.pk].requirement).rules),
        )
        for request in requests
    ]


def _revisions(tenant: Tenant, requests: Sequence[ApprovalRequest]) -> dict[UUID, Revision]:
    current = {request.pk: request.revision for request in requests}
    rows = Revision.objects.of(tenant).filter(request__in=list(current))
    return {row.request_id: row for row in rows if row.number == current[row.request_id]}


def _given(tenant: Tenant, requests: Sequence[ApprovalRequest]) -> dict[UUID, int]:
    current = {request.pk: request.revision for request in requests}
    given: dict[UUID, int] = defaultdict(int)
    votes = Vote.objects.of(tenant).filter(request__in=list(current), choice=Choice.APPROVE)
    for request_id, revision in votes.values_list("request_id", "revision"):
        given[request_id] += revision == current[request_id]
    return given


def _arguments(effect: Effect) -> Any:
    content = effect.request.content
    return None if content is None else canonical.parse(bytes(content))
