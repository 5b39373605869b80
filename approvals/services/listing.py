"""Requests as lines of the inbox, read with the same number of queries however many they are, and those that nobody can approve."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from approvals.domain.requests import Choice, RequestState
from approvals.models import ApprovalRequest, Revision, Vote
from approvals.services import standing
from ledger.domain import canonical
from ledger.domain.authority import Requirement
from ledger.domain.identity import Verb
from ledger.models import Agent, Effect, Run, Tenant, User
from ledger.services import permissions

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


def rows(tenant: Tenant, requests: Sequence[ApprovalRequest]) -> list[Row]:
    """Requests as lines of the inbox, in the same order."""
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
