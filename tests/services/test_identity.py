"""People, teams and rights: what they may do is read afresh, and every change of it moves the tenant's version."""

from __future__ import annotations

import json
from threading import Thread
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import Permission
from django.db import connection

from ledger.domain.errors import LedgerError
from ledger.domain.identity import ALL, Caller, Scope, Verb
from ledger.models import JournalEntry, Membership, TenantHead, User
from ledger.services import administration, identity, keys, permissions
from tests.meeting import Elsewhere
from tests.patience import until
from tests.services.conftest import People


def version(people: People) -> int:
    head: TenantHead = TenantHead.objects.of(people.tenant).get()
    return head.head_seq


def test_a_stranger_may_do_nothing(people: People) -> None:
    assert not permissions.can(people.mallory, Verb.SEE, people.workflow)
    assert not permissions.visible(people.mallory, Verb.SEE).exists()


def test_a_right_is_for_its_own_verb_only(people: People) -> None:
    assert permissions.can(people.alice, Verb.APPROVE, people.workflow)
    assert not permissions.can(people.alice, Verb.OPERATE, people.workflow)
    assert not permissions.can(people.alice, Verb.APPROVE, people.tenant)


def test_a_right_in_the_tenant_covers_its_workflow_types(people: People) -> None:
    assert permissions.can(people.dora, Verb.ADMINISTER, people.workflow)
    assert list(permissions.visible(people.dora, Verb.ADMINISTER)) == [people.workflow]


def test_a_superuser_is_no_approver(people: People) -> None:
    User.objects.filter(pk=people.mallory.pk).update(is_superuser=True)
    for verb in Verb:
        assert not permissions.can(people.mallory, verb, people.workflow)
    User.objects.filter(pk=people.dora.pk).update(is_superuser=True)
    assert not permissions.can(people.dora, Verb.APPROVE, people.workflow)
    assert people.dora not in permissions.holders(Verb.APPROVE, people.workflow)


def test_a_global_permission_gives_nothing(people: People) -> None:
    everywhere = Permission.objects.get(codename="approve_workflow")
    people.dora.user_permissions.add(everywhere)
    assert not permissions.can(people.dora, Verb.APPROVE, people.workflow)
    assert not permissions.visible(people.dora, Verb.APPROVE).exists()


def test_what_was_cached_of_a_person_counts_for_nothing(people: People) -> None:
    alice = User.objects.get(pk=people.alice.pk)
    assert permissions.can(alice, Verb.APPROVE, people.workflow)
    identity.remove_from_team(people.admin, people.team, people.alice)
    assert not permissions.can(alice, Verb.APPROVE, people.workflow)
    identity.add_to_team(people.admin, people.team, people.alice)
    identity.deactivate_person(people.admin, people.alice)
    assert alice.is_active
    assert not permissions.can(alice, Verb.APPROVE, people.workflow)
    assert not permissions.visible(alice, Verb.SEE).exists()
    assert alice not in permissions.holders(Verb.APPROVE, people.workflow)


def test_a_team_of_a_slug_that_is_taken_is_refused_with_what_to_choose(people: People) -> None:
    with pytest.raises(LedgerError, match="already a team") as refused:
        identity.add_team(people.admin, people.team.slug, "Another name")
    assert (refused.value.code, refused.value.remedy) == ("invalid", "Choose another slug.")


def test_who_leaves_the_tenant_loses_teams_and_rights(people: People) -> None:
    identity.leave(people.admin, people.alice)
    assert permissions.teams(people.alice, people.tenant.pk) == []
    identity.join(people.admin, people.alice)
    assert not permissions.can(people.alice, Verb.APPROVE, people.workflow)


def test_list_and_act_agree_over_every_person_and_verb(people: People) -> None:
    for user in (people.alice, people.bob, people.dora, people.mallory):
        for verb in Verb:
            listed = people.workflow in permissions.visible(user, verb)
            assert listed == permissions.can(user, verb, people.workflow)
            assert listed == (user in permissions.holders(verb, people.workflow))


def test_every_change_of_people_moves_the_tenants_version_once(people: People) -> None:
    acts = [
        lambda: identity.remove_from_team(people.admin, people.team, people.bob),
        lambda: identity.add_to_team(people.admin, people.team, people.bob),
        lambda: identity.grant_permission(people.admin, people.bob, Verb.OPERATE, people.workflow),
        lambda: identity.withdraw_permission(people.admin, people.bob, Verb.OPERATE, people.workflow),
        lambda: identity.deactivate_person(people.admin, people.bob),
        lambda: identity.reactivate_person(people.admin, people.bob),
        lambda: identity.leave(people.admin, people.bob),
        lambda: identity.join(people.admin, people.bob),
        lambda: identity.deactivate_agent(people.admin, people.agent_id),
        lambda: identity.reactivate_agent(people.admin, people.agent_id),
    ]
    for act in acts:
        before = version(people)
        act()
        assert version(people) == before + 1


def test_an_act_that_changes_nothing_writes_nothing(people: People) -> None:
    before = version(people)
    identity.join(people.admin, people.alice)
    identity.add_to_team(people.admin, people.team, people.alice)
    identity.grant_permission(people.admin, people.team, Verb.APPROVE, people.workflow)
    assert version(people) == before


def test_the_entry_says_who_came_into_which_team_and_holds_no_address(people: People) -> None:
    identity.remove_from_team(people.admin, people.team, people.bob)
    newest = JournalEntry.objects.of(people.tenant).order_by("-seq").first()
    document = json.loads(bytes(newest.content))
    assert document["verb"] == "team.leave"
    assert document["changes"] == [
        {"object": f"team:{people.team.pk}", "fields": {"user_id": str(people.bob.pk), "member": False}}
    ]
    assert b"@" not in bytes(newest.content)


def test_a_deactivation_is_an_entry_in_every_tenant_of_the_person(people: People) -> None:
    rival = people.mallory.memberships.model.objects.across_tenants().get(user=people.mallory).tenant
    identity.join(people.admin, people.mallory)
    heads = [TenantHead.objects.of(tenant).get().head_seq for tenant in (people.tenant, rival)]
    identity.deactivate_person(people.admin, people.mallory)
    assert [TenantHead.objects.of(tenant).get().head_seq for tenant in (people.tenant, rival)] == [
        seq + 1 for seq in heads
    ]


@pytest.mark.parametrize("who", ["alice", "mallory"])
def test_only_an_administrator_administers(people: People, who: str) -> None:
    user = getattr(people, who)
    caller = Caller(people.tenant.pk, f"person:{user.pk}", person_id=user.pk)
    with pytest.raises(LedgerError) as refusal:
        identity.add_to_team(caller, people.team, people.dora)
    assert refusal.value.code == "forbidden"


def test_a_key_never_administers(people: People) -> None:
    keyed = Caller(people.tenant.pk, "person:x", key_id=people.agent_id, person_id=people.dora.pk)
    with pytest.raises(LedgerError) as refusal:
        identity.add_team(keyed, "own", "Own")
    assert refusal.value.code == "forbidden"
    signed_in = Caller(people.tenant.pk, f"person:{people.dora.pk}", person_id=people.dora.pk)
    assert identity.add_team(signed_in, "own", "Own").slug == "own"


def test_a_team_of_another_tenant_is_not_found(people: People) -> None:
    rival = people.mallory.memberships.model.objects.across_tenants().get(user=people.mallory).tenant
    caller = Caller(rival.pk, "system:admin")
    with pytest.raises(LedgerError) as refusal:
        identity.add_to_team(caller, people.team, people.mallory)
    assert refusal.value.code == "not-found"


def test_a_name_that_is_taken_is_refused_clearly(people: People) -> None:
    with pytest.raises(LedgerError) as refusal:
        identity.add_agent(people.admin, "refunder", people.dora)
    assert refusal.value.code == "invalid" and "agent of this name" in refusal.value.reason
    with pytest.raises(LedgerError) as refusal:
        identity.add_person(people.admin, people.alice.email.upper(), "Alice again")
    assert "person with this e-mail" in refusal.value.reason


def test_an_agent_that_was_deactivated_can_work_again_under_its_key(people: People) -> None:
    key = identity.issue_key(people.admin, "again", (Scope.RUNS_READ,), workflows=(ALL,), agent_id=people.agent_id)
    identity.deactivate_agent(people.admin, people.agent_id)
    with pytest.raises(LedgerError, match="unauthenticated"):
        keys.authenticate(f"Bearer {key.secret}")
    identity.reactivate_agent(people.admin, people.agent_id)
    assert keys.authenticate(f"Bearer {key.secret}").agent_id == people.agent_id
    before = version(people)
    identity.reactivate_agent(people.admin, people.agent_id)
    assert version(people) == before, "nothing is written of what is so already"
    with pytest.raises(LedgerError, match="not-found"):
        identity.reactivate_agent(people.admin, uuid4())


@pytest.mark.postgres_only
def test_a_tenant_that_the_person_joins_while_they_are_deactivated_has_its_entry_too(people: People) -> None:
    other = identity.open_tenant(f"late-{uuid4().hex[:8]}", "Late")
    joining = Elsewhere(lambda: identity.join(administration.command_line(other.pk), people.alice))

    def wrapper(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        answer = execute(sql, params, many, context)
        if sql.startswith("SELECT") and "ledger_membership" in sql:
            joining.once()
        return answer

    with connection.execute_wrapper(wrapper):
        identity.deactivate_person(people.admin, people.alice)
    assert joining.happened.is_set()
    verbs = JournalEntry.objects.of(other).order_by("seq").values_list("verb", flat=True)
    assert list(verbs)[-2:] == ["membership.join", "person.deactivate"]
    assert not User.objects.get(pk=people.alice.pk).is_active


@pytest.mark.postgres_only
def test_nobody_joins_a_tenant_between_the_last_look_at_a_person_s_tenants_and_their_deactivation(
    people: People,
) -> None:
    other = identity.open_tenant(f"late-{uuid4().hex[:8]}", "Late")
    joins = Thread(target=_join, args=(other.pk, people.alice))
    held: list[bool] = []

    def wrapper(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith("UPDATE") and "is_active" in sql:
            joins.start()
            until(lambda: waits_for(context["connection"].connection.info.backend_pid), "who joins to wait")
            held.append(True)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(wrapper):
        identity.deactivate_person(people.admin, people.alice)
    joins.join(20)
    assert held and Membership.objects.of(other).filter(user=people.alice, active=True).exists(), "afterwards"


def _join(tenant_id: UUID, user: User) -> None:
    try:
        identity.join(administration.command_line(tenant_id), user)
    finally:
        connection.close()


def waits_for(pid: int) -> bool:
    """Does a session wait for a lock that this one holds? Asked on a connection of its own."""
    found: list[bool] = []

    def ask() -> None:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))", [pid])
                found.append(cursor.fetchone()[0] > 0)
        finally:
            connection.close()

    thread = Thread(target=ask)
    thread.start()
    thread.join(20)
    return found == [True]
