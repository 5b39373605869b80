"""The inbox holds all that waits for a person, whatever it is: empty only if nothing does, and the most urgent first."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID

import pytest
from django.urls import reverse

from approvals.services import reconcile_pages, waiting
from approvals.services.waiting import Kind
from ledger.domain.identity import Verb
from ledger.models import Handoff, User
from ledger.services import identity
from tests.clock import Clock
from tests.trips import short, statements
from tests.ui.asking import ask, client_of, decide, receipt_of
from tests.ui.scenes import called, given_up, handed_over, lost
from tests.world import World


def inbox(world: World, person: User, query: str = "") -> str:
    answer = client_of(person).get(reverse("inbox", args=[world.tenant.slug]) + query)
    assert answer.status_code == 200
    text: str = answer.content.decode()
    return text


def newer(world: World, person: User, page: str) -> Any:
    found = re.search(r'data-live="([^"]+)"', page)
    assert found
    return client_of(person).get(found[1].replace("&amp;", "&"))


def settle(world: World, person: User, effect_id: UUID | None, verdict: str, reference: str) -> None:
    client, args = client_of(person), [world.tenant.slug, effect_id]
    said = {"verdict": verdict, "evidence": "statement line 4", "reference": reference}
    said |= receipt_of(client.get(reverse("effect", args=args)).content.decode())
    assert client.post(reverse("effect_verdict", args=args), said).status_code == 302


def handoff_state(handoff: Handoff) -> str:
    return str(Handoff.objects.of(handoff.tenant_id).get(pk=handoff.pk).state)


def kinds(world: World, person: User) -> list[Kind]:
    return [entry.kind for entry in waiting.page_for(person, world.tenant)[0]]


def test_an_operator_is_not_told_that_all_is_well_while_calls_and_handoffs_wait(world: World, clock: Clock) -> None:
    effect, handoff = lost(world, clock), handed_over(world, clock)
    page = inbox(world, world.charlie)
    assert "All is well" not in page
    for name, row in (("effect", effect.pk), ("effect", handoff.effect_id)):
        assert f'href="{reverse(name, args=[world.tenant.slug, row])}"' in page
    assert page.count("<li data-row") == 2 and re.search(r'id="badge-inbox"[^>]*>2<', page)


def test_a_call_and_the_handoff_that_it_opened_are_one_case_and_both_are_said(world: World, clock: Clock) -> None:
    handoff = handed_over(world, clock)
    page = inbox(world, world.charlie)
    assert kinds(world, world.charlie) == [Kind.EFFECT]
    assert "settling it closes its handoff" in page and re.search(r'id="badge-handoffs"[^>]*>1<', page)
    client_of(world.charlie).post(reverse("handoff_own", args=[world.tenant.slug, handoff.pk]))
    assert "Charlie has its handoff, and closes it then" in inbox(world, world.charlie)
    settle(world, world.charlie, handoff.effect_id, "committed", "re_4")
    assert kinds(world, world.charlie) == [Kind.HANDOFF], "taken, so that it is closed by who took it"
    assert handoff_state(handoff) == "accepted"


def test_settling_a_call_closes_the_handoff_that_nobody_took(world: World, clock: Clock) -> None:
    handoff = handed_over(world, clock)
    settle(world, world.charlie, handoff.effect_id, "committed", "re_4")
    assert kinds(world, world.charlie) == [] and handoff_state(handoff) == "withdrawn"


def test_a_handoff_about_nothing_unknown_is_a_case_of_its_own(world: World, clock: Clock) -> None:
    handoff = given_up(world, clock)
    assert kinds(world, world.charlie) == [Kind.HANDOFF]
    assert f'href="{reverse("handoff", args=[world.tenant.slug, handoff.pk])}"' in inbox(world, world.charlie)


def test_who_may_only_approve_gets_neither_calls_nor_handoffs(world: World, clock: Clock) -> None:
    handed_over(world, clock)
    for person in (world.alice, world.dora):
        assert "All is well: nothing waits for you" in inbox(world, person)
        assert kinds(world, person) == []


def test_a_settled_call_and_a_closed_handoff_leave_and_then_all_is_well(world: World, clock: Clock) -> None:
    effect = lost(world, clock)
    client = client_of(world.charlie)
    said = {"verdict": "committed", "evidence": "statement line 4", "reference": "re_1"}
    page = inbox(world, world.charlie)
    said |= receipt_of(client.get(reverse("effect", args=[world.tenant.slug, effect.pk])).content.decode())
    assert client.post(reverse("effect_verdict", args=[world.tenant.slug, effect.pk]), said).status_code == 302
    assert "1 no longer waiting, show" in newer(world, world.charlie, page).content.decode()
    assert "All is well: nothing waits for you" in inbox(world, world.charlie)


def test_the_most_urgent_comes_first_whatever_it_is(world: World, clock: Clock) -> None:
    identity.add_to_team(world.admin, world.approvers, world.charlie)
    identity.grant_permission(world.admin, world.charlie, Verb.APPROVE, world.workflow)
    handed_over(world, clock)
    given_up(world, clock)
    ask(world, hours=1)
    ask(world, hours=20)
    assert kinds(world, world.charlie) == [Kind.EFFECT, Kind.REQUEST, Kind.HANDOFF, Kind.REQUEST]
    moments = [entry.urgent for entry in waiting.page_for(world.charlie, world.tenant)[0]]
    assert moments == sorted(moments)
    page = inbox(world, world.charlie)
    assert page.count("<li data-row") == 4
    assert inbox(world, world.charlie, "?show=approvals").count("<li data-row") == 2


def test_pages_over_all_kinds_skip_nothing_and_repeat_nothing(world: World, clock: Clock) -> None:
    identity.add_to_team(world.admin, world.approvers, world.charlie)
    identity.grant_permission(world.admin, world.charlie, Verb.APPROVE, world.workflow)
    given_up(world, clock)
    lost(world, clock)
    lost(world, clock)
    for _ in range(2):
        ask(world)
    every = [entry.id for entry in waiting.page_for(world.charlie, world.tenant)[0]]
    assert len(every) == 5
    paged, after = [], None
    for _ in range(5):
        page, after = waiting.page_for(world.charlie, world.tenant, after=after, size=1)
        paged += [entry.id for entry in page]
    assert paged == every and after is None


def test_the_requests_alone_say_so_when_only_other_things_wait(world: World, clock: Clock) -> None:
    lost(world, clock)
    page = inbox(world, world.charlie, "?show=approvals")
    assert "All is well" not in page and "No request waits for you" in page and "See all that waits for you" in page


@pytest.mark.parametrize("what", [lost, handed_over, given_up])
def test_a_call_or_a_handoff_that_came_since_is_offered_once_and_not_again_when_shown(
    world: World, clock: Clock, what: Any
) -> None:
    page = inbox(world, world.charlie)
    assert newer(world, world.charlie, page).status_code == 204
    clock.shift(1)
    what(world, clock)
    assert " new, show" in newer(world, world.charlie, page).content.decode()
    clock.shift(1)
    assert newer(world, world.charlie, inbox(world, world.charlie)).status_code == 204


def test_a_call_that_becomes_overdue_meanwhile_is_offered(world: World, clock: Clock) -> None:
    called(world)
    page = inbox(world, world.charlie)
    assert "<li data-row" not in page
    clock.shift(120)
    assert reconcile_pages.waiting_for(world.charlie, world.tenant).count() == 1
    assert "1 new, show" in newer(world, world.charlie, page).content.decode()


def test_a_list_of_all_kinds_costs_the_same_statements_at_ten_times_the_data(world: World, clock: Clock) -> None:
    identity.add_to_team(world.admin, world.approvers, world.charlie)
    identity.grant_permission(world.admin, world.charlie, Verb.APPROVE, world.workflow)

    def grow() -> None:
        handed_over(world, clock)
        given_up(world, clock)
        ask(world)

    grow()
    client, address = client_of(world.charlie), reverse("inbox", args=[world.tenant.slug])
    client.get(address)
    few = statements(lambda: client.get(address))
    for _ in range(9):
        grow()
    many = statements(lambda: client.get(address))
    assert len(many) == len(few) <= 28, short(many)


def test_asking_whether_anything_is_newer_costs_the_same_whatever_waits(world: World, clock: Clock) -> None:
    client, address = client_of(world.charlie), reverse("inbox_newer", args=[world.tenant.slug])
    since = {"since": "2020-01-01T00:00:00Z"}
    lost(world, clock)
    few = statements(lambda: client.get(address, since))
    for _ in range(3):
        handed_over(world, clock)
    decide(client_of(world.alice), world, ask(world), "approve")
    many = statements(lambda: client.get(address, since))
    assert len(many) == len(few) <= 8, short(many)
