"""Which rights a person has in a tenant, and from where: told one by one, for who gives or takes one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ledger.domain.identity import Verb
from ledger.models import (
    Tenant,
    TenantGroupPermission,
    TenantUserPermission,
    User,
    WorkflowGroupPermission,
    WorkflowType,
    WorkflowUserPermission,
)
from ledger.services.permissions import codename


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """One right: in the whole tenant where `workflow` is '', the person's own where `team` is ''."""

    verb: str
    workflow: str
    team: str


def of(user: User, tenant: Tenant) -> tuple[Right, ...]:
    """The rights that this person and their teams were given there, sorted. They count only while the person and the membership are active."""
    return tuple(sorted(_of(user, tenant)))


def _of(user: User, tenant: Tenant) -> Iterator[Right]:
    verbs = {codename(verb, model): str(verb) for verb in Verb for model in (Tenant, WorkflowType)}
    theirs = {"group__user": user, "group__team__tenant": tenant}
    whole, one = {"content_object": tenant}, {"content_object__tenant": tenant}
    for rows, workflow, team in (
        (TenantUserPermission.objects.filter(**whole, user=user), "", ""),
        (TenantGroupPermission.objects.filter(**whole, **theirs), "", "group__team__slug"),
        (WorkflowUserPermission.objects.filter(**one, user=user), "content_object__name", ""),
        (WorkflowGroupPermission.objects.filter(**one, **theirs), "content_object__name", "group__team__slug"),
    ):
        columns = ["permission__codename", *filter(None, (workflow, team))]
        for code, *names in rows.values_list(*columns):
            named = dict(zip(columns[1:], names, strict=True))
            yield Right(verbs[code], named.get(workflow, ""), named.get(team, ""))
