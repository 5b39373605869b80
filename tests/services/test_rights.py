"""`manage.py rights`: what somebody may do is told, and a right is given or taken only once that was read, with an entry."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from ledger.domain.identity import Verb
from ledger.models import JournalEntry, User
from ledger.services import identity, permissions
from tests.world import World


def said(world: World, person: User, *more: str) -> str:
    out = StringIO()
    call_command("rights", world.tenant.slug, person.email, *more, stdout=out)
    return out.getvalue()


def entries(world: World) -> list[tuple[str, str]]:
    rows = JournalEntry.objects.of(world.tenant).filter(verb__startswith="permission.").order_by("-seq")
    return list(rows.values_list("verb", "actor"))


def test_without_yes_a_right_is_told_and_not_given(world: World) -> None:
    before = entries(world)
    told = said(world, world.dora, "--give", "see_payloads", "--workflow", "refund")
    assert f"Dora ({world.dora.email}) is given see_payloads in the workflow refund." in told
    assert (
        "Who may see payloads there now: Alice, Bob, Charlie." in told
        and "Nothing was changed. Add --yes to do it." in told
    )
    assert not permissions.can(world.dora, Verb.SEE_PAYLOADS, world.workflow) and entries(world) == before


def test_the_right_to_payloads_is_given_and_taken_with_an_entry_each(world: World) -> None:
    asked = ("--workflow", "refund", "--yes")
    assert "Done, and noted in the history." in said(world, world.dora, "--give", "see_payloads", *asked)
    assert permissions.can(world.dora, Verb.SEE_PAYLOADS, world.workflow)
    assert not permissions.can(world.dora, Verb.SEE_PAYLOADS, world.tenant)
    assert "see_payloads   in the workflow refund" in said(world, world.dora)
    said(world, world.dora, "--take", "see_payloads", *asked)
    assert not permissions.can(world.dora, Verb.SEE_PAYLOADS, world.workflow)
    assert entries(world)[:2] == [("permission.withdraw", "system:admin"), ("permission.grant", "system:admin")]


def test_what_is_so_already_leaves_no_entry(world: World) -> None:
    before = entries(world)
    assert "Nothing to do: Dora has audit in the whole of" in said(world, world.dora, "--give", "audit", "--yes")
    assert "Nothing to do: Dora does not have approve" in said(world, world.dora, "--take", "approve", "--yes")
    assert entries(world) == before


def test_where_a_right_comes_from_elsewhere_too_taking_it_says_that_it_stays(world: World) -> None:
    identity.grant_permission(world.admin, world.approvers, Verb.SEE_PAYLOADS, world.workflow)
    identity.grant_permission(world.admin, world.alice, Verb.SEE_PAYLOADS, world.tenant)
    told = said(world, world.alice, "--take", "see_payloads", "--yes")
    assert "loses see_payloads in the whole of" in told
    identity.grant_permission(world.admin, world.alice, Verb.SEE_PAYLOADS, world.workflow)
    told = said(world, world.alice, "--take", "see_payloads", "--workflow", "refund", "--yes")
    assert "They have it in the workflow refund, through the team approvers too, and keep that." in told
    assert permissions.can(world.alice, Verb.SEE_PAYLOADS, world.workflow)


def test_rights_that_do_not_count_are_told_as_such(world: World) -> None:
    identity.deactivate_person(world.admin, world.charlie)
    assert "None of it counts" in said(world, world.charlie)
    assert "has no right in" in said(world, world.person("eve"))


@pytest.mark.parametrize(
    ("tenant", "person", "more", "why"),
    [
        ("nowhere", "dora", (), "there is no tenant 'nowhere'"),
        ("", "stranger", (), "is no member of"),
        ("", "dora", ("--give", "audit", "--workflow", "nothing"), "there is no workflow 'nothing' in .*: refund"),
        ("", "dora", ("--give", "everything"), "invalid choice"),
        ("", "dora", ("--give", "audit", "--take", "audit"), "not allowed with"),
    ],
)
def test_what_is_not_there_is_refused_by_name(
    world: World, tenant: str, person: str, more: tuple[str, ...], why: str
) -> None:
    who = World().dora.email if person == "stranger" else world.dora.email
    before = entries(world)
    with pytest.raises(CommandError, match=why):
        call_command("rights", tenant or world.tenant.slug, who, *more, "--yes", stdout=StringIO())
    assert entries(world) == before
