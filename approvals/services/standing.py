"""Where people stand towards a request, read afresh: who may see it, who may decide it, and whether enough of them are left."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from approvals.domain.quorum import Groups, missing
from ledger.domain.authority import Rule
from ledger.domain.identity import Verb
from ledger.models import TeamProfile, User, WorkflowType
from ledger.services import permissions
from ledger.services.composed import composed_once


def groups_of(people: Collection[UUID], workflow_id: UUID, tenant_id: UUID) -> dict[UUID, Groups]:
    """Of these people, those who may approve on the workflow type as of now, each with the teams they are in. At most one read."""
    if not people:
        return {}
    return _by_person(_approvers(workflow_id, tenant_id, *people), tenant_id)


@composed_once
def _approvers(workflow_id: UUID, tenant_id: UUID, *people: UUID) -> QuerySet[Any, Any]:
    workflow = WorkflowType(pk=workflow_id, tenant_id=tenant_id)
    return _with_teams(permissions.holders(Verb.APPROVE, workflow).filter(pk__in=people))


def eligible(rules: Sequence[Rule], excluded: Collection[UUID], workflow: WorkflowType) -> dict[UUID, Groups]:
    """Everybody whose vote could count for one of the rules, as of now, each with their teams."""
    tenant_id = workflow.tenant_id
    groups = {rule.group for rule in rules}
    holders = permissions.holders(Verb.APPROVE, workflow).exclude(pk__in=excluded)
    in_teams = holders.filter(groups__team__tenant_id=tenant_id, groups__team__slug__in=groups)
    return _by_person(_with_teams(holders.filter(pk__in=in_teams.values("pk"))), tenant_id)


def cannot_be_met(rules: Sequence[Rule], excluded: Collection[UUID], workflow: WorkflowType) -> list[str]:
    """The groups of the rules that nobody, or too few people, could meet if all who are left approved. Empty when it can be approved."""
    lacking = missing(rules, eligible(rules, excluded, workflow))
    return [rule.group for rule, count in zip(rules, lacking, strict=True) if count]


def team_names(tenant_id: UUID, slugs: Collection[str]) -> dict[str, str]:
    """The names of these teams, by slug; without those that the tenant doesn't have."""
    rows = TeamProfile.objects.of(tenant_id).filter(slug__in=slugs)
    return dict(rows.values_list("slug", "name"))


def _with_teams(people: QuerySet[User]) -> QuerySet[Any, Any]:
    return people.values_list("pk", "groups__team__tenant_id", "groups__team__slug")


def _by_person(rows: Iterable[tuple[UUID, UUID | None, str]], tenant_id: UUID) -> dict[UUID, Groups]:
    teams: dict[UUID, set[str]] = {}
    for person, of, slug in rows:
        own = teams.setdefault(person, set())
        if of == tenant_id:
            own.add(slug)
    return {person: frozenset(slugs) for person, slugs in teams.items()}
