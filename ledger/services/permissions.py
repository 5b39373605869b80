"""Who may do what: the two questions that every page, call and service asks, answered from the database each time.

A right is a row of django-guardian's for one tenant or one workflow type, given to a person or to a team of that tenant; a right in a tenant
covers its workflow types. Only active people with an active membership have any. Neither a global permission nor being a superuser gives anything.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from ledger.domain.identity import Verb
from ledger.models import (
    Membership,
    Tenant,
    TenantGroupPermission,
    TenantQuerySet,
    TenantUserPermission,
    User,
    WorkflowGroupPermission,
    WorkflowType,
    WorkflowUserPermission,
)
from ledger.services.composed import composed_once


def can(user: User | UUID, verb: Verb, where: WorkflowType | Tenant) -> bool:
    """May this person do it there, as of now? What the caller has cached of the person counts for nothing."""
    return bool(_able(verb, isinstance(where, Tenant))(_id(user), where.pk))


@cache
def _able(verb: Verb, in_tenant: bool) -> Callable[[UUID, UUID], list[Any]]:
    """Whether a person may do this in a tenant, or on a workflow type: a row, or none."""

    @composed_once
    def able(user_id: UUID, where_id: UUID) -> QuerySet[Any, Any]:
        if not in_tenant:
            return visible(user_id, verb).filter(pk=where_id).values_list("pk")
        allowed = Tenant.objects.filter(pk=where_id).filter(_member(user_id, "pk"), _in_tenant(user_id, verb, "pk"))
        return allowed.values_list("pk")

    return able


def visible(user: User | UUID, verb: Verb) -> TenantQuerySet:
    """The workflow types on which this person may do it, over all tenants: narrow it with `.of(tenant)`."""
    types: TenantQuerySet = WorkflowType.objects.across_tenants()
    return types.filter(_member(user, "tenant_id"), _in_tenant(user, verb, "tenant_id") | _on_type(user, verb))


def somewhere(user: User | UUID, verb: Verb, tenant: Tenant) -> bool:
    """May this person do it in the tenant, or on any of its workflow types?"""
    on_type = Exists(visible(user, verb).filter(tenant=OuterRef("pk")))
    in_tenant = Q(_member(user, "pk")) & _in_tenant(user, verb, "pk")
    return Tenant.objects.filter(in_tenant | Q(on_type), pk=tenant.pk).exists()


def holders(verb: Verb, workflow: WorkflowType) -> QuerySet[User]:
    """The active people who may do it on a workflow type."""
    tenant_id, code = workflow.tenant_id, codename(verb, WorkflowType)
    on_type = {"content_object_id": workflow.pk, "permission__codename": code}
    in_tenant = {"content_object_id": tenant_id, "permission__codename": codename(verb, Tenant)}
    groups = {"group__user": OuterRef("pk"), "group__team__tenant_id": tenant_id}
    return User.objects.filter(
        Exists(Membership.objects.of(tenant_id).filter(user=OuterRef("pk"), active=True)),
        Exists(WorkflowUserPermission.objects.filter(**on_type, user=OuterRef("pk")))
        | Exists(WorkflowGroupPermission.objects.filter(**on_type, **groups))
        | Exists(TenantUserPermission.objects.filter(**in_tenant, user=OuterRef("pk")))
        | Exists(TenantGroupPermission.objects.filter(**in_tenant, **groups)),
        is_active=True,
    )


def member(user: User | UUID, tenant_id: UUID) -> bool:
    """Is this an active person with an active membership, as of now?"""
    return bool(_members(_id(user), tenant_id))


@composed_once
def _members(user_id: UUID, tenant_id: UUID) -> QuerySet[Any, Any]:
    return Tenant.objects.filter(pk=tenant_id).filter(_member(user_id, "pk")).values_list("pk")


def entered(user: User | UUID, slug: str) -> Tenant | None:
    """The tenant of this slug, for an active person with an active membership of it; nothing for anybody else."""
    found: Tenant | None = Tenant.objects.filter(slug=slug).filter(_member(user, "pk")).first()
    return found


def teams(user: User | UUID, tenant_id: UUID) -> list[str]:
    """The slugs of the tenant's teams that the person is in, sorted."""
    found = User.objects.filter(pk=_id(user), groups__team__tenant_id=tenant_id)
    return sorted(found.values_list("groups__team__slug", flat=True))


def codename(verb: Verb, model: type[WorkflowType | Tenant]) -> str:
    """The codename of the verb's permission row on a model."""
    return str(verb) if model is Tenant else f"{verb}_workflow"


def _id(user: User | UUID) -> UUID:
    return user.pk if isinstance(user, User) else user


def _member(user: User | UUID, tenant: str) -> Exists:
    rows = Membership.objects.across_tenants().filter(
        tenant_id=OuterRef(tenant), user_id=_id(user), active=True, user__is_active=True
    )
    return Exists(rows)


def _in_tenant(user: User | UUID, verb: Verb, tenant: str) -> Q:
    held = {"content_object_id": OuterRef(tenant), "permission__codename": codename(verb, Tenant)}
    return _held(TenantUserPermission, TenantGroupPermission, user, held, tenant)


def _on_type(user: User | UUID, verb: Verb) -> Q:
    held = {"content_object_id": OuterRef("pk"), "permission__codename": codename(verb, WorkflowType)}
    return _held(WorkflowUserPermission, WorkflowGroupPermission, user, held, "tenant_id")


def _held(people: Any, groups: Any, user: User | UUID, held: dict[str, Any], tenant: str) -> Q:
    own = people.objects.filter(**held, user_id=_id(user))
    of_team = groups.objects.filter(**held, group__user=_id(user), group__team__tenant_id=OuterRef(tenant))
    return Q(Exists(own)) | Q(Exists(of_team))
