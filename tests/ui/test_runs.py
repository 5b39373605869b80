"""Runs: who sees them, that reading changes nothing, what is hidden from whom, and what pages cost."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from approvals.services import pieces, run_lists
from approvals.services.run_lists import Filter
from ledger.domain.commits import Next, NextKind
from ledger.domain.effects import ProposalSpec
from ledger.domain.errors import LedgerError
from ledger.domain.identity import Verb
from ledger.domain.starts import StartSpec
from ledger.engine import wakes
from ledger.models import JournalEntry, RunHead, User
from ledger.services import effects, identity, runs
from tests.clock import Clock
from tests.ui.asking import ask, client_of
from tests.ui.scenes import approved, called, completed, handed_over, lost, named
from tests.world import World

HOSTILE = "<script>alert(1)</script> {{ 7|add:7 }} \u202egnp.exe\u0007"
SECRET = b'{"amount_minor":987654,"card":"SECRET-4417","currency":"EUR"}'


def page(world: World, person: User, name: str, *args: object, query: str = "") -> tuple[int, str]:
    answer = client_of(person).get(reverse(name, args=[world.tenant.slug, *args]) + query)
    return answer.status_code, answer.content.decode()


def onlooker(world: World) -> User:
    """Somebody who may see refunds, and nothing of their contents."""
    person = world.person("olga")
    identity.grant_permission(world.admin, person, Verb.SEE, world.workflow)
    return person


def start(world: World, task: str) -> None:
    runs.start(
        world.caller,
        StartSpec("refund", "1", task, {"order": "1", "amount_minor": 1, "currency": "EUR"}, {}, HOSTILE, named()),
    )


def test_a_run_of_another_tenant_or_an_unseen_workflow_is_not_found(world: World) -> None:
    run_id = world.start_run()
    other = World()
    for person, tenant in ((other.charlie, world), (other.charlie, other), (world.person("nobody"), world)):
        assert page(tenant, person, "run", run_id)[0] == 404
        answer = client_of(person).post(reverse("run_verify", args=[tenant.tenant.slug, run_id]))
        assert answer.status_code == 404
    assert page(other, world.charlie, "runs")[0] == 404
    status, text = page(world, world.person("nobody2"), "runs")
    assert status == 200 and "refund order 17" not in text


def test_reading_a_run_or_the_list_writes_nothing(world: World, clock: Clock) -> None:
    effect = lost(world, clock)
    before = JournalEntry.objects.of(world.tenant).count()
    for name, args in (("runs", ()), ("run", (effect.run_id,)), ("effect", (effect.pk,)), ("reconcile", ())):
        for method in ("get", "head", "options"):
            getattr(client_of(world.charlie), method)(reverse(name, args=[world.tenant.slug, *args]))
    assert JournalEntry.objects.of(world.tenant).count() == before
    led = client_of(world.charlie).get(reverse("run_verify", args=[world.tenant.slug, effect.run_id]))
    assert (led.status_code, led["Location"]) == (302, reverse("run", args=[world.tenant.slug, effect.run_id]))


def test_who_may_not_see_payloads_sees_none_on_any_page(world: World, clock: Clock) -> None:
    handoff = handed_over(world, clock, arguments=SECRET)
    effect = world.effect(handoff.run_id)
    person = onlooker(world)
    for name, row in (("run", handoff.run_id), ("effect", effect.pk), ("handoff", handoff.pk)):
        status, text = page(world, person, name, row)
        assert status == 200
        for part in ("SECRET-4417", "987654", "9,876.54", "re_9", "(4200)", "42.00"):
            assert part not in text, (name, part)
    for name, row in (("run", handoff.run_id), ("effect", effect.pk)):
        assert "SECRET-4417" in page(world, world.charlie, name, row)[1]


def test_hostile_text_is_shown_and_does_nothing(world: World) -> None:
    start(world, HOSTILE)
    run_id = RunHead.objects.of(world.tenant).get(run__task=HOSTILE).run_id
    for name, args in (("runs", ()), ("run", (run_id,))):
        text = page(world, world.charlie, name, *args)[1]
        assert "<script>alert" not in text and "&lt;script&gt;alert" in text
        assert "{{ 7|add:7 }}" in text
        assert "\u202e" not in text and "‹U+202E›" in text and "‹U+0007›" in text


@pytest.mark.parametrize("query", ["?before=x", "?before=2026-11-30T00:00:00~" + "0" * 32, "?before=~"])
def test_a_page_of_the_list_that_is_none_is_refused_with_what_to_do(world: World, query: str) -> None:
    status, text = page(world, world.charlie, "runs", query=query)
    assert status == 422 and "first page" in text


@pytest.mark.parametrize("query", ["?before=-1", "?before=٣", "?before=" + "9" * 30])
def test_a_page_of_the_timeline_that_is_none_is_refused(world: World, query: str) -> None:
    assert page(world, world.charlie, "run", world.start_run(), query=query)[0] == 422


def test_pages_cost_the_same_number_of_queries_at_ten_times_the_data(world: World, clock: Clock) -> None:
    handoff = handed_over(world, clock)
    lost(world, clock)
    completed(world)
    start(world, "the first")
    client = client_of(world.charlie)
    addresses = [
        reverse(name, args=[world.tenant.slug, *args])
        for name, args in (
            ("runs", ()),
            ("run", (handoff.run_id,)),
            ("reconcile", ()),
            ("effect", (world.effect(handoff.run_id).pk,)),
            ("handoffs", ()),
            ("handoff", (handoff.pk,)),
        )
    ]

    def costs() -> list[int]:
        counted = []
        for address in addresses:
            with CaptureQueriesContext(connection) as captured:
                assert client.get(address).status_code == 200
            counted.append(len(captured))
        return counted

    costs()
    few = costs()
    world.claim()
    for _ in range(9):
        handed_over(world, clock)
        lost(world, clock)
        completed(world)
    for _ in range(10):
        start(world, "one more")
    assert costs() == few
    # On SQLite what tells how a run stands is read one statement each; on PostgreSQL all of it in one.
    most = 37 if connection.vendor == "sqlite" else 25
    assert max(few) <= most, few


def test_every_run_is_on_exactly_one_page_of_the_list(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(7):
        start(world, f"task {number}")
    monkeypatch.setattr(run_lists, "SHOWN", 3)
    seen, before = [], ""
    while True:
        found = run_lists.runs(world.charlie, world.tenant, Filter(before=before))
        seen += [row.task for row in found.rows]
        before = found.page.next
        if not before:
            break
    assert seen == [f"task {number}" for number in reversed(range(7))]
    assert found.page.total == "7" and not found.page.first


def test_the_list_is_narrowed_by_status_workflow_and_text(world: World) -> None:
    packet, effect = called(world)
    start(world, "Refund of order A-1")
    for asked, expected in (
        ({"status": "running"}, 1),
        ({"status": "ready"}, 1),
        ({"workflow": "refund"}, 2),
        ({"workflow": "other"}, 0),
        ({"q": "order a-1"}, 1),
        ({"q": effect.key}, 1),
        ({"q": str(packet.run.id)}, 1),
        ({"q": "%"}, 0),
    ):
        found = run_lists.runs(world.charlie, world.tenant, Filter.read(asked))
        assert len(found.rows) == expected, asked


def test_a_run_is_found_by_the_end_of_its_id_its_agent_and_the_people_in_it(world: World) -> None:
    run_id = approved(world)
    start(world, "another task")

    def found(text: str) -> int:
        return len(run_lists.runs(world.charlie, world.tenant, Filter.read({"q": text})).rows)

    assert found(pieces.short(run_id)) == 1 and found(str(run_id).upper()) == 1
    assert found("refunds") == 2 and found("Alice") == 1
    assert found("Bob") == 0 and found("Mallory") == 0 and found("ffffff") == 0


def test_both_search_boxes_promise_the_same(world: World) -> None:
    text = page(world, world.charlie, "runs")[1]
    assert text.count('placeholder="Task, run, order, payment, key, agent or person"') == 2


def test_health_says_what_is_overdue(world: World, clock: Clock) -> None:
    def health() -> dict[str, str]:
        found = run_lists.runs(world.charlie, world.tenant, Filter())
        return {row.status: row.health for row in found.rows}

    ask(world)
    world.claimed_run()
    world.start_run()
    assert health() == {"waiting": "", "running": "", "ready": ""}
    clock.shift(600)
    assert health() == {"waiting": "", "running": "lease", "ready": "unclaimed"}
    clock.shift(86_400)
    assert health()["waiting"] == "overdue"


def test_a_run_with_an_unknown_outcome_says_so_first(world: World, clock: Clock) -> None:
    effect = lost(world, clock)
    status, text = page(world, world.charlie, "run", effect.run_id)
    assert status == 200
    assert "Outcome unknown" in text and reverse("effect", args=[world.tenant.slug, effect.pk]) in text
    assert "Worker lost: its lease ran out" in text
    assert "Call “pay” to payments allowed, attempt 1" in text
    assert "“pay” approved" in text and "Alice" in text
    assert "Record intact" in text


def test_a_run_is_verified_by_a_post_that_finds_it_intact_or_says_what_is_wrong(world: World) -> None:
    run_id = approved(world)
    address = reverse("run_verify", args=[world.tenant.slug, run_id])
    client = client_of(world.charlie)
    assert "The record is intact" in client.post(address, follow=True).content.decode()
    fragment = client.post(address, headers={"HX-Request": "true"}).content.decode()
    assert "The record is intact" in fragment and "<html" not in fragment
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE ledger_run_head SET asks = 9 WHERE run_id = %s",
            [run_id.hex if connection.vendor == "sqlite" else run_id],
        )
    text = client.post(address, follow=True).content.decode()
    assert "doesn’t verify" in text and "asks" in text


def test_the_service_refuses_a_cursor_without_a_zone(world: World) -> None:
    with pytest.raises(LedgerError, match="invalid"):
        run_lists.runs(world.charlie, world.tenant, Filter(before="2026-11-30T00:00:00~" + "0" * 32))


def test_two_effects_of_one_name_are_told_apart_by_where_they_were_opened(world: World) -> None:
    packet = world.claimed_run()
    spec = ProposalSpec("note", "notes.add", "notes", "order/17", b'{"text":"one"}')
    world.commit(packet, Next(NextKind.GO_ON, "issue"), propose=(spec,))
    wakes.run(packet.run.id)
    again = world.claim("1", "2")
    effects.withdraw(world.caller, world.effect(packet.run.id, "note").pk, again.fence)
    assert "after checkpoint" not in page(world, world.charlie, "run", packet.run.id)[1]
    world.commit(again, Next(NextKind.GIVE_BACK, "assess"))
    wakes.run(packet.run.id)
    world.commit(world.claim("1", "2"), Next(NextKind.GO_ON, "issue"), propose=(spec,))
    text = page(world, world.charlie, "run", packet.run.id)[1]
    told = re.findall(r"of “assess” after checkpoint (\d+)(, replaced by a later one)?<", text)
    assert told == [("3", ""), ("1", ", replaced by a later one")]
