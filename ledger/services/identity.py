"""People, tenants, memberships, teams, permissions, agents, keys. Every act appends an entry to the tenant's stream in the same transaction."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth.models import Group, Permission
from django.db import transaction

from ledger.domain.change import Kind, Stream
from ledger.domain.drafts import Draft
from ledger.domain.errors import LedgerError, Moved
from ledger.domain.identity import Caller, Emit, Verb, check_emits, check_scopes, check_workflows
from ledger.models import (
    Agent,
    ApiKey,
    Membership,
    TeamProfile,
    Tenant,
    TenantGroupPermission,
    TenantUserPermission,
    User,
    WorkflowGroupPermission,
    WorkflowType,
    WorkflowUserPermission,
)
from ledger.services import administration, facts, locks, writer
from ledger.services.contracts import ANOTHER, NO_ENTRY, REFUSED, writes
from ledger.services.ids import minter, new_salt
from ledger.services.permissions import codename


@writes(moves="Inserts a tenant and opens its stream.", twice="The slug is taken: `invalid`.")
def open_tenant(slug: str, name: str, actor: str = administration.COMMAND_LINE) -> Tenant:
    """A new tenant with the head of its stream. Raises LedgerError `invalid` when the slug is taken."""
    with transaction.atomic():
        if Tenant.objects.filter(slug=slug).exists():
            raise LedgerError("invalid", f"there is already a tenant {slug!r}", "Choose another slug.")
        tenant = Tenant.objects.create(slug=slug, name=name)
        now = facts.read().now
        draft = Draft(
            stream=Stream(Kind.TENANT, tenant.pk, tenant.pk, new_salt()),
            expect_seq=0,
            at=now,
            actor=actor,
            verb="tenant.open",
            mint=minter(now),
        )
        draft.head(tenant_id=tenant.pk)
        draft.note("tenant", tenant.pk, open=True)
        writer.apply(draft.change())
    return tenant


@writes(moves="Inserts a person and their membership.", twice="The address is taken: `invalid`.")
def add_person(caller: Caller, email: str, name: str, password: str | None = None) -> User:
    """A new person, member of the caller's tenant; without a password nobody can sign in yet."""
    with administration.act(caller, "person.add") as draft:
        user = User.objects.create_user(email, password, name=name)
        _join(draft, user)
    return user


@writes(moves="Membership inactive or missing → active.", twice=NO_ENTRY)
def join(caller: Caller, user: User) -> None:
    """Make a person a member of the caller's tenant; nothing happens to one who is."""
    with administration.act(caller, "membership.join") as draft:
        _join(draft, user)


def _join(draft: Draft, user: User) -> None:
    membership, _ = Membership.objects.of(draft.stream.tenant).get_or_create(
        tenant_id=draft.stream.tenant, user=user, defaults={"active": False}
    )
    if not membership.active:
        Membership.objects.of(draft.stream.tenant).filter(pk=membership.pk).update(active=True)
        draft.note("membership", membership.pk, user_id=user.pk, active=True)


@writes(moves="Membership active → inactive; the person leaves the tenant's teams.", twice=NO_ENTRY)
def leave(caller: Caller, user: User) -> None:
    """End a membership and take the person out of the tenant's teams."""
    with administration.act(caller, "membership.leave") as draft:
        found = Membership.objects.of(caller.tenant_id).filter(user=user, active=True).first()
        if found is None:
            return
        Membership.objects.of(caller.tenant_id).filter(pk=found.pk).update(active=False)
        draft.note("membership", found.pk, user_id=user.pk, active=False)
        for team in TeamProfile.objects.of(caller.tenant_id).filter(group__user=user):
            team.group.user_set.remove(user)
            draft.note("team", team.pk, user_id=user.pk, member=False)


@writes(
    moves="Person active → inactive, with an entry in each of their tenants.",
    twice="Stays so, with one more entry in each.",
)
def deactivate_person(caller: Caller, user: User) -> None:
    """Nobody signs in, decides or works as this person any more, in any tenant; each tenant they belong to gets its entry."""
    _set_active(caller, user, False)


@writes(
    moves="Person inactive → active, with an entry in each of their tenants.",
    twice="Stays so, with one more entry in each.",
)
def reactivate_person(caller: Caller, user: User) -> None:
    """Take a deactivation back."""
    _set_active(caller, user, True)


def _set_active(caller: Caller, user: User, active: bool) -> None:
    """The caller administers one of the person's tenants. A tenant that they join meanwhile is seen at the next try: each has its entry."""
    for _ in range(writer.TRIES):
        try:
            with transaction.atomic():
                _set_active_once(caller, user, active)
        except Moved:
            continue
        user.is_active = active
        return
    raise LedgerError("busy", "the person kept joining tenants under this call", "Ask again.")


def _set_active_once(caller: Caller, user: User, active: bool) -> None:
    """Locks are taken in the order of the tenants' ids, then the person's, whom nobody can make a member from then on. Raises Moved where somebody
    did so before."""
    memberships = Membership.objects.across_tenants().filter(user=user).order_by("tenant_id")
    tenants = list(memberships.values_list("tenant_id", flat=True))
    if caller.tenant_id not in tenants:
        raise LedgerError("not-found", "this person is no member here", "Name a member of this tenant.")
    for tenant_id in tenants:
        locks.tenant_head(tenant_id)
    locks.person(user.pk)
    if list(memberships.values_list("tenant_id", flat=True)) != tenants:
        raise Moved
    administration.check(caller)
    User.objects.filter(pk=user.pk).update(is_active=active)
    verb = "person.reactivate" if active else "person.deactivate"
    for tenant_id in tenants:
        _person_entry(tenant_id, caller.actor, verb, user, active)


def _person_entry(tenant_id: UUID, actor: str, verb: str, user: User, active: bool) -> None:
    draft = administration.draft_of(Caller(tenant_id=tenant_id, actor=actor), verb)
    draft.note("user", user.pk, active=active)
    writer.apply(draft.change())


@writes(moves="Inserts a team with its group.", twice="The slug is taken: `invalid`.")
def add_team(caller: Caller, slug: str, name: str) -> TeamProfile:
    """A team: an auth group named `<tenant>:<slug>`, reached only through its profile. Raises LedgerError `invalid` when the slug is taken."""
    with administration.act(caller, "team.add") as draft:
        tenant = Tenant.objects.get(pk=caller.tenant_id)
        if TeamProfile.objects.of(tenant).filter(slug=slug).exists():
            raise LedgerError("invalid", f"there is already a team {slug!r} here", "Choose another slug.")
        group = Group.objects.create(name=f"{tenant.slug}:{slug}")
        team = TeamProfile.objects.create(tenant=tenant, name=name, slug=slug, group=group)
        draft.note("team", team.pk, added=True)
    return team


@writes(moves="A person into a team.", twice=NO_ENTRY)
def add_to_team(caller: Caller, team: TeamProfile, user: User) -> None:
    """Put an active member of the tenant into one of its teams."""
    with administration.act(caller, "team.join") as draft:
        _of_this_tenant(caller, team.tenant_id)
        if not Membership.objects.of(caller.tenant_id).filter(user=user, active=True).exists():
            raise LedgerError("invalid", "this person is no active member here", "Make them a member first.")
        if not team.group.user_set.filter(pk=user.pk).exists():
            team.group.user_set.add(user)
            draft.note("team", team.pk, user_id=user.pk, member=True)


@writes(moves="A person out of a team.", twice=NO_ENTRY)
def remove_from_team(caller: Caller, team: TeamProfile, user: User) -> None:
    """Take a person out of a team; what rested on their vote is looked at again when it is used."""
    with administration.act(caller, "team.leave") as draft:
        _of_this_tenant(caller, team.tenant_id)
        if team.group.user_set.filter(pk=user.pk).exists():
            team.group.user_set.remove(user)
            draft.note("team", team.pk, user_id=user.pk, member=False)


@writes(moves="Inserts a right of a person or a team.", twice=NO_ENTRY)
def grant_permission(caller: Caller, to: User | TeamProfile, verb: Verb, on: WorkflowType | Tenant) -> None:
    """Give a person or a team the right to a verb on a workflow type or in the whole tenant."""
    with administration.act(caller, "permission.grant") as draft:
        rows, held = _permission(caller, to, verb, on)
        if not rows.objects.filter(**held).exists():
            rows.objects.create(**held)
            _note_permission(draft, to, verb, on, True)


@writes(moves="Deletes a right of a person or a team.", twice=NO_ENTRY)
def withdraw_permission(caller: Caller, to: User | TeamProfile, verb: Verb, on: WorkflowType | Tenant) -> None:
    """Take a right back."""
    with administration.act(caller, "permission.withdraw") as draft:
        rows, held = _permission(caller, to, verb, on)
        if rows.objects.filter(**held).exists():
            rows.objects.filter(**held).delete()
            _note_permission(draft, to, verb, on, False)


def _permission(
    caller: Caller, to: User | TeamProfile, verb: Verb, on: WorkflowType | Tenant
) -> tuple[Any, dict[str, object]]:
    _of_this_tenant(caller, on.pk if isinstance(on, Tenant) else on.tenant_id)
    label = "tenant" if isinstance(on, Tenant) else "workflowtype"
    permission = Permission.objects.get(
        content_type__app_label="ledger", content_type__model=label, codename=codename(verb, type(on))
    )
    held: dict[str, object] = {"permission": permission, "content_object": on}
    if isinstance(to, User):
        return (TenantUserPermission if isinstance(on, Tenant) else WorkflowUserPermission), {**held, "user": to}
    _of_this_tenant(caller, to.tenant_id)
    return (TenantGroupPermission if isinstance(on, Tenant) else WorkflowGroupPermission), {**held, "group": to.group}


def _note_permission(
    draft: Draft, to: User | TeamProfile, verb: Verb, on: WorkflowType | Tenant, granted: bool
) -> None:
    table = "tenant" if isinstance(on, Tenant) else "workflow_type"
    holder = {"user_id": to.pk} if isinstance(to, User) else {"team_id": to.pk}
    draft.note(table, on.pk, verb=verb, granted=granted, **holder)


@writes(moves="Inserts an agent.", twice="The name is taken: `invalid`.")
def add_agent(caller: Caller, name: str, owner: User) -> UUID:
    """A new agent with the person who answers for it. Answers its id."""
    with administration.act(caller, "agent.add") as draft:
        if not Membership.objects.of(caller.tenant_id).filter(user=owner, active=True).exists():
            raise LedgerError("invalid", "the owner is no active member here", "Choose an active member.")
        agent_id = draft.mint()
        draft.insert("agent", id=agent_id, name=name, owner_id=owner.pk, active=True, created_at=draft.at)
    return agent_id


@writes(moves="Agent active → inactive.", twice=NO_ENTRY)
def deactivate_agent(caller: Caller, agent_id: UUID) -> None:
    """From now on none of the agent's keys is taken."""
    with administration.act(caller, "agent.deactivate") as draft:
        _set_agent(draft, caller, agent_id, active=False)


@writes(moves="Agent inactive → active.", twice=NO_ENTRY)
def reactivate_agent(caller: Caller, agent_id: UUID) -> None:
    """Take a deactivation back: its keys that are neither revoked nor expired are taken again, and its runs may go on."""
    with administration.act(caller, "agent.reactivate") as draft:
        _set_agent(draft, caller, agent_id, active=True)


def _set_agent(draft: Draft, caller: Caller, agent_id: UUID, *, active: bool) -> None:
    agent = Agent.objects.of(caller.tenant_id).filter(pk=agent_id).first()
    if agent is None:
        raise LedgerError("not-found", "there is no such agent here", "Check the id.")
    if agent.active is not active:
        draft.move("agent", agent_id, {"active": agent.active}, active=active)


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A new key. `secret` is the whole bearer token; it is shown this once and kept nowhere."""

    id: UUID
    prefix: str
    secret: str

    def __repr__(self) -> str:
        return f"IssuedKey({self.prefix})"


@writes(moves="Inserts a key.", twice=ANOTHER, dies="A key exists whose secret nobody has seen: revoke it.")
def issue_key(
    caller: Caller,
    label: str,
    scopes: Iterable[str],
    *,
    workflows: Iterable[str],
    emits: Sequence[Emit] = (),
    agent_id: UUID | None = None,
    person: User | None = None,
    expires_at: datetime | None = None,
) -> IssuedKey:
    """A key for an agent or for a person, of the form `ra_<prefix>_<secret>`, for these workflow types and with leave to emit these events.

    Raises LedgerError `invalid` for a scope that it can't have, and where no workflow type is named.
    """
    wanted = check_scopes(scopes, of_person=person is not None)
    narrowed = {"scopes": wanted, "workflows": check_workflows(workflows), "emits": check_emits(emits, wanted)}
    if (agent_id is None) == (person is None):
        raise LedgerError("invalid", "a key belongs to an agent or to a person", "Name one of them.")
    with administration.act(caller, "key.issue") as draft:
        if person is not None:
            known = Membership.objects.of(caller.tenant_id).filter(user=person, active=True).exists()
        else:
            known = Agent.objects.of(caller.tenant_id).filter(pk=agent_id, active=True).exists()
        if not known:
            raise LedgerError("not-found", "there is no such active agent or member here", "Check the id.")
        if expires_at is not None and expires_at <= draft.at:
            raise LedgerError("invalid", "the key would have expired already", "Choose a later time.")
        return _insert_key(draft, label, narrowed, agent_id, person.pk if person else None, expires_at)


@writes(
    moves="Inserts a key; the old one is revoked, or expires after the overlap.",
    twice="Without overlap refused: `wrong-state`. With one: another key.",
    dies="The new secret is lost: rotate the new key again.",
)
def rotate_key(caller: Caller, key_id: UUID, overlap: timedelta = timedelta(0)) -> IssuedKey:
    """A new key of the same owner, scopes and leaves; the old one is revoked, or expires after `overlap`."""
    with administration.act(caller, "key.rotate") as draft:
        old = _live_key(caller, key_id)
        if overlap:
            ends = draft.at + overlap if old.expires_at is None else min(old.expires_at, draft.at + overlap)
            draft.move("api_key", key_id, {"revoked_at": None}, expires_at=ends)
        else:
            draft.move("api_key", key_id, {"revoked_at": None}, revoked_at=draft.at)
        narrowed = {"scopes": old.scopes, "workflows": old.workflows, "emits": old.emits}
        return _insert_key(draft, old.label, narrowed, old.agent_id, old.person_id, old.expires_at)


@writes(moves="Key live → revoked.", twice=REFUSED)
def revoke_key(caller: Caller, key_id: UUID) -> None:
    """The key is refused from now on."""
    with administration.act(caller, "key.revoke") as draft:
        _live_key(caller, key_id)
        draft.move("api_key", key_id, {"revoked_at": None}, revoked_at=draft.at)


def _live_key(caller: Caller, key_id: UUID) -> ApiKey:
    key: ApiKey | None = ApiKey.objects.of(caller.tenant_id).filter(pk=key_id).first()
    if key is None:
        raise LedgerError("not-found", "there is no such key here", "Check the id.")
    if key.revoked_at is not None:
        raise LedgerError("wrong-state", "this key was revoked before", "Nothing is left to do.")
    return key


def _insert_key(
    draft: Draft,
    label: str,
    leave: dict[str, Any],
    agent_id: UUID | None,
    person_id: UUID | None,
    expires_at: datetime | None,
) -> IssuedKey:
    prefix = secrets.token_hex(5)
    secret = f"ra_{prefix}_{secrets.token_hex(32)}"
    issued = IssuedKey(draft.mint(), prefix, secret)
    draft.insert(
        "api_key",
        id=issued.id,
        prefix=prefix,
        hash=key_hash(secret),
        label=label,
        agent_id=agent_id,
        person_id=person_id,
        created_at=draft.at,
        expires_at=expires_at,
        revoked_at=None,
        **leave,
    )
    return issued


def key_hash(secret: str) -> bytes:
    """What is kept of a bearer token: SHA-256; its 256 random bits need no slow hash."""
    return hashlib.sha256(secret.encode()).digest()


def _of_this_tenant(caller: Caller, tenant_id: UUID) -> None:
    if tenant_id != caller.tenant_id:
        raise LedgerError("not-found", "there is no such thing in this tenant", "Check the id.")
