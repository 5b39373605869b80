"""Handoffs and history: who may take, close and read what, and what a page says before and after."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from approvals.services import handoff_pages
from approvals.views import counts
from ledger.domain.effects import EffectState
from ledger.domain.handoffs import ESCALATES_AFTER
from ledger.domain.identity import Verb
from ledger.models import Handoff, JournalEntry
from ledger.services import effects, handoffs, identity
from ledger.services.permissions import can
from tests.clock import Clock
from tests.ui.asking import client_of
from tests.ui.scenes import handed_over
from tests.world import World


def send(world: World, handoff: Handoff, name: str, person: Any = None, **typed: str) -> Any:
    address = reverse(name, args=[world.tenant.slug, handoff.pk])
    return client_of(person or world.charlie).post(address, typed, follow=True)


def read(handoff: Handoff) -> Handoff:
    found: Handoff = Handoff.objects.of(handoff.tenant_id).get(pk=handoff.pk)
    return found


def settled(world: World, handoff: Handoff) -> Handoff:
    """The effect behind it is settled by hand, so that the handoff can be closed."""
    from approvals.views.access import Caller

    caller = Caller(world.tenant.pk, f"person:{world.charlie.pk}", person_id=world.charlie.pk)
    effect = world.effect(handoff.run_id)
    now = effects.read_now(effect.pk)
    effects.verdict(caller, effect.pk, EffectState.FAILED, "rejected", "Refused at the provider.", read=now)
    return read(handoff)


def test_taking_and_closing_need_the_right_to_operate(world: World, clock: Clock) -> None:
    handoff = handed_over(world, clock)
    other = World()
    for person, status in ((world.alice, 403), (world.person("nobody"), 404), (other.charlie, 404)):
        for name in ("handoff_own", "handoff_give_back", "handoff_close"):
            assert send(world, handoff, name, person, outcome="wake", reason="x").status_code == status
    assert send(other, handoff, "handoff_own", other.charlie).status_code == 404
    assert read(handoff).state == "open"
    page = client_of(world.alice).get(reverse("handoff", args=[world.tenant.slug, handoff.pk])).content.decode()
    assert "Take it" not in page and "needs the right to operate" in page


def test_reading_changes_nothing(world: World, clock: Clock) -> None:
    handoff = handed_over(world, clock)
    before = JournalEntry.objects.of(world.tenant).count()
    client = client_of(world.charlie)
    for name, args in (("handoffs", ()), ("handoff", (handoff.pk,)), ("history", ())):
        client.get(reverse(name, args=[world.tenant.slug, *args]))
    for name in ("handoff_own", "handoff_give_back", "handoff_close"):
        led = client.get(reverse(name, args=[world.tenant.slug, handoff.pk]))
        assert (led.status_code, led["Location"]) == (302, reverse("handoff", args=[world.tenant.slug, handoff.pk]))
    assert JournalEntry.objects.of(world.tenant).count() == before


def test_a_handoff_is_not_closed_while_an_outcome_is_unknown(world: World, clock: Clock) -> None:
    handoff = handed_over(world, clock)
    page = client_of(world.charlie).get(reverse("handoff", args=[world.tenant.slug, handoff.pk])).content.decode()
    assert "Not while the outcome of “pay” isn’t known" in page and "Close the handoff" not in page
    answer = send(world, handoff, "handoff_close", outcome="wake", reason="It looks fine.")
    assert answer.status_code == 409 and "It looks fine." in answer.content.decode()
    assert read(handoff).state == "open"


def test_a_handoff_is_taken_once_and_shows_whose_it_is(world: World, clock: Clock) -> None:
    handoff = handed_over(world, clock)
    assert "It is yours now" in send(world, handoff, "handoff_own").content.decode()
    taken = read(handoff)
    assert (taken.state, taken.owner_id) == ("accepted", world.charlie.pk)
    send(world, handoff, "handoff_own")
    second = world.person("carl")
    for verb in (Verb.SEE, Verb.OPERATE):
        identity.grant_permission(world.admin, second, verb, world.workflow)
    assert send(world, handoff, "handoff_own", second).status_code == 409
    page = client_of(second).get(reverse("handoff", args=[world.tenant.slug, handoff.pk])).content.decode()
    assert "Charlie" in page and "has taken it" in page


def test_a_handoff_that_is_given_back_is_anybodys_and_escalates_if_it_stays_so(world: World, clock: Clock) -> None:
    handoff = handed_over(world, clock)
    assert send(world, handoff, "handoff_give_back").status_code == 409
    assert "Give it back" in send(world, handoff, "handoff_own").content.decode()
    assert "It is nobody’s now" in send(world, handoff, "handoff_give_back").content.decode()
    assert (read(handoff).state, read(handoff).owner_id) == ("open", None)
    second = world.person("carl")
    for verb in (Verb.SEE, Verb.OPERATE):
        identity.grant_permission(world.admin, second, verb, world.workflow)
    assert "It is yours now" in send(world, handoff, "handoff_own", second).content.decode()
    page = client_of(world.charlie).get(reverse("handoff", args=[world.tenant.slug, handoff.pk])).content.decode()
    assert "Carl" in page and "Put it back" in page
    clock.shift(ESCALATES_AFTER.total_seconds())
    assert handoff.pk in handoffs.due(1_000)
    send(world, handoff, "handoff_give_back")
    assert handoff.pk in handoffs.due(1_000)
    verbs = JournalEntry.objects.of(world.tenant).filter(stream_id=handoff.run_id, verb="handoff.give_back")
    assert [entry.actor for entry in verbs] == [f"person:{world.charlie.pk}"] * 2


@pytest.mark.parametrize("typed", [{"outcome": "wake"}, {"reason": "because"}, {"outcome": "explode", "reason": "b"}])
def test_closing_without_outcome_or_reason_is_refused_and_keeps_what_was_typed(
    world: World, clock: Clock, typed: dict[str, str]
) -> None:
    handoff = handed_over(world, clock)
    send(world, handoff, "handoff_own")
    settled(world, handoff)
    answer = send(world, handoff, "handoff_close", **typed)
    assert answer.status_code == 422
    assert typed.get("reason", "") in answer.content.decode()
    assert read(handoff).state == "accepted"


def test_a_closed_handoff_says_what_came_of_it_and_why(world: World, clock: Clock) -> None:
    handoff = handed_over(world, clock)
    send(world, handoff, "handoff_own")
    settled(world, handoff)
    answer = send(world, handoff, "handoff_close", outcome="cancel", reason="The customer withdrew <b>it</b>.")
    text = answer.content.decode()
    assert answer.status_code == 200 and "Closed. The run is being cancelled." in text
    assert "The run was to end as cancelled" in text and "The customer withdrew &lt;b&gt;it&lt;/b&gt;." in text
    assert (read(handoff).state, world.head(handoff.run_id).intent) == ("closed", "cancel")
    assert send(world, handoff, "handoff_close", outcome="wake", reason="again").status_code == 409
    shown = client_of(world.charlie).get(reverse("handoffs", args=[world.tenant.slug]) + "?show=closed")
    assert "The run was to end as cancelled" in shown.content.decode()


def test_open_handoffs_come_gravest_and_soonest_due_first_and_equal_their_badge(world: World, clock: Clock) -> None:
    first, second = handed_over(world, clock), handed_over(world, clock)
    found = handoff_pages.handoffs(world.charlie, world.tenant)
    assert [row.id for row in found.rows] == [first.pk, second.pk]
    badge = counts.bounded(handoff_pages.open_for(world.charlie, world.tenant).count())
    assert badge == found.to_do == found.page.total == "2"
    assert handoff_pages.handoffs(world.charlie, world.tenant, "closed").rows == ()


def test_what_nobody_took_in_its_time_comes_first_and_says_so(world: World, clock: Clock) -> None:
    first = handed_over(world, clock)
    clock.shift(ESCALATES_AFTER.total_seconds())
    assert handoffs.escalate(first.pk)
    second = handed_over(world, clock)
    Handoff.objects.of(world.tenant).filter(pk=second.pk).update(due_at=first.due_at - ESCALATES_AFTER)
    found = handoff_pages.handoffs(world.charlie, world.tenant)
    assert [(row.id, row.escalated) for row in found.rows] == [(first.pk, True), (second.pk, False)]
    client = client_of(world.charlie)
    listed = client.get(reverse("handoffs", args=[world.tenant.slug])).content.decode()
    page = client.get(reverse("handoff", args=[world.tenant.slug, first.pk])).content.decode()
    run = client.get(reverse("run", args=[world.tenant.slug, first.run_id])).content.decode()
    assert listed.count("Escalated") == 1 and "Escalated" in page
    assert "it was escalated at" in run and "Handoff escalated" in run


def test_open_handoffs_page_without_losing_any(world: World, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    every = [handed_over(world, clock).pk for _ in range(3)]
    monkeypatch.setattr(handoff_pages, "SHOWN", 2)
    page = handoff_pages.handoffs(world.charlie, world.tenant)
    rest = handoff_pages.handoffs(world.charlie, world.tenant, "open", page.page.next, page.grave)
    assert [row.id for row in (*page.rows, *rest.rows)] == every


def test_the_history_needs_the_right_to_audit_and_shows_what_that_covers(world: World, clock: Clock) -> None:
    handed_over(world, clock)
    address = reverse("history", args=[world.tenant.slug])
    assert client_of(world.charlie).get(address).status_code == 403
    assert client_of(World().dora).get(address).status_code == 404
    whole = client_of(world.dora).get(address).content.decode()
    assert "Worker lost: its lease ran out" in whole and "Right given" in whole
    auditor = world.person("audrey")
    identity.grant_permission(world.admin, auditor, Verb.AUDIT, world.workflow)
    assert not can(auditor, Verb.AUDIT, world.tenant)
    part = client_of(auditor).get(address).content.decode()
    assert "Worker lost: its lease ran out" in part and "Right given" not in part


def test_the_history_is_narrowed_by_actor_verb_run_and_day(world: World, clock: Clock) -> None:
    handoff = handed_over(world, clock)
    client = client_of(world.dora)
    address = reverse("history", args=[world.tenant.slug])

    def rows(**query: str) -> int:
        return client.get(address, query).content.decode().count("<tr data-row>")

    assert rows(verb="lease.lapse") == 1
    assert rows(actor=f"person:{world.alice.pk}") == 1
    assert rows(run=str(handoff.run_id), verb="run.start") == 1
    assert rows(until="2020-01-01") == 0 and rows(since="2020-01-01", verb="run.start") == 1
    assert rows(actor="system:", verb="run.start") == 0
    for query in ({"run": "x"}, {"since": "tomorrow"}, {"since": "2026-13-01"}, {"before": "x"}):
        assert client.get(address, query).status_code == 422
