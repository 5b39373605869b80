"""Who sees a request and its contents, and that reading decides nothing."""

from __future__ import annotations

import pytest

from approvals.models import Vote
from ledger.domain.identity import Verb
from ledger.models import JournalEntry
from ledger.services import identity
from tests.ui.asking import address, ask, client_of, decide, form_of, person_with, votes
from tests.ui.forms import TYPED, WAYS, assert_kept, post, text_of
from tests.world import World


def entries(world: World) -> int:
    return JournalEntry.objects.of(world.tenant).count() + Vote.objects.of(world.tenant).count()


@pytest.mark.parametrize("name", ["approval", "approval_newer", "approval_decide"])
@pytest.mark.parametrize("who", ["another tenant's approver", "a member without any right"])
def test_who_can_not_see_the_workflow_finds_nothing(world: World, name: str, who: str) -> None:
    request = ask(world)
    person = World().alice if who.startswith("another") else person_with(world)
    send = client_of(person).post if name == "approval_decide" else client_of(person).get
    assert send(address(world, request, name)).status_code == 404
    assert not votes(request)


def test_a_request_is_not_found_under_another_tenants_address(world: World) -> None:
    other, request = World(), ask(world)
    identity.join(other.admin, world.alice)
    answer = client_of(world.alice).get(address(other, request))
    assert answer.status_code == 404


def test_without_the_right_to_payloads_neither_arguments_nor_controls_are_shown(world: World) -> None:
    request = ask(world, order={"customer": "Zoe Quux"})
    page = text_of(client_of(person_with(world, Verb.SEE)).get(address(world, request)))
    assert (
        "Risk not shown to you" in page
        and page.count("Not shown to you: it needs the right to payloads in refund,") == 5
    )
    assert "Not rated" not in page and "not known" not in page and "can be undone" not in page
    assert "42.00" not in page and "amount_minor" not in page and "Zoe Quux" not in page
    assert "approval_decide" not in page and 'name="decision"' not in page


def test_who_may_only_read_sees_the_arguments_and_why_they_can_not_decide(world: World) -> None:
    request = ask(world)
    page = text_of(client_of(person_with(world, Verb.SEE, Verb.SEE_PAYLOADS)).get(address(world, request)))
    assert "42.00 EUR" in page and 'name="decision"' not in page
    assert "can’t approve in this workflow" in page


def test_approving_needs_no_other_right_than_to_see_and_approve(world: World) -> None:
    request = ask(world)
    person = person_with(world, Verb.SEE, Verb.APPROVE)
    identity.add_to_team(world.admin, world.approvers, person)
    assert decide(client_of(person), world, request, "approve").status_code == 302
    assert votes(request) == [(person.pk, "approve")]


@WAYS
def test_an_approver_outside_the_groups_is_refused_and_keeps_their_text(world: World, htmx: bool) -> None:
    request = ask(world)
    form = form_of(text_of(client_of(world.alice).get(address(world, request))))
    identity.remove_from_team(world.admin, world.approvers, world.alice)
    identity.grant_permission(world.admin, world.alice, Verb.SEE, world.workflow)
    identity.grant_permission(world.admin, world.alice, Verb.APPROVE, world.workflow)
    answer = post(client_of(world.alice), world, request, {**form, "decision": "deny", "reason": TYPED}, htmx)
    assert answer.status_code == 403
    assert_kept(answer)
    assert not votes(request)


def test_a_group_that_lost_its_people_is_told_loudly_to_operators_and_on_the_card(world: World) -> None:
    request = ask(world)
    for person in (world.alice, world.bob):
        identity.remove_from_team(world.admin, world.approvers, person)
    charlie = client_of(world.charlie)
    inbox = text_of(charlie.get(f"/t/{world.tenant.slug}/inbox/"))
    assert "by nobody: too few people in the team Refund approvers. Add somebody, or it expires." in inbox
    page = text_of(charlie.get(address(world, request)))
    assert "Nobody can approve this." in page and "Nobody is left who could decide." in page


@pytest.mark.parametrize("method", ["get", "head", "options"])
@pytest.mark.parametrize("name", ["approval", "approval_newer", "approval_decide"])
def test_reading_a_link_decides_nothing_however_it_is_dressed(world: World, method: str, name: str) -> None:
    request, alice = ask(world), client_of(world.alice)
    form = form_of(text_of(alice.get(address(world, request))))
    before = entries(world)
    answer = getattr(alice, method)(address(world, request, name), {**form, "decision": "approve"})
    assert entries(world) == before
    assert answer.status_code == (405 if method == "options" else 302 if name == "approval_decide" else 200)


def test_a_link_can_be_opened_twice_and_still_decides(world: World) -> None:
    request, alice = ask(world), client_of(world.alice)
    pages = [text_of(alice.get(address(world, request))) for _ in range(2)]
    assert post(alice, world, request, {**form_of(pages[0]), "decision": "approve"}, True).status_code == 200
