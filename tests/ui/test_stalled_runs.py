"""Runs that stand still though nobody is asked anything: whoever runs the workflow is told, and never that all is well."""

from __future__ import annotations

import re
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from approvals.services import run_lists, stalled_runs, waiting
from approvals.services.run_lists import Filter
from approvals.services.waiting import Kind
from ledger.domain.explain import at
from ledger.domain.health import UNCLAIMED_AFTER
from ledger.domain.identity import Verb
from ledger.engine import sweep, wakes
from ledger.models import User, Worker
from ledger.services import explain, identity, leases, verifications
from tests.clock import Clock
from tests.services.test_verifications import key_of, spoil, through
from tests.tamper import run_sql
from tests.ui.asking import client_of
from tests.ui.scenes import approved, given_up
from tests.ui.test_waiting import inbox, kinds, newer
from tests.world import World


def href(world: World, run_id: UUID) -> str:
    return f'href="{reverse("run", args=[world.tenant.slug, run_id])}"'


def unclaimed(world: World, clock: Clock) -> UUID:
    run_id = world.start_run()
    clock.shift(UNCLAIMED_AFTER.total_seconds())
    return run_id


def spoilt(world: World) -> UUID:
    """A run of which a row was changed past the journal, as a check of everything found it."""
    run_id = world.start_run()
    spoil(run_id)
    through(world, verifications.ask(world.caller))
    return run_id


def test_an_approved_run_that_no_worker_claims_is_in_the_operators_inbox(world: World, clock: Clock) -> None:
    run_id = approved(world)
    clock.shift(UNCLAIMED_AFTER.total_seconds())
    page = inbox(world, world.charlie)
    assert "All is well" not in page and href(world, run_id) in page
    assert page.count("<li data-row") == 1 and re.search(r'id="badge-inbox"[^>]*>1<', page)
    assert re.search("no worker with version [12 or]+ has claimed it", page)


def test_until_workers_have_had_their_time_nothing_is_said(world: World, clock: Clock) -> None:
    clock.hold()
    approved(world)
    clock.shift(UNCLAIMED_AFTER.total_seconds() - 1)
    page = inbox(world, world.charlie)
    assert "All is well: nothing waits for you" in page
    clock.shift(1)
    assert "1 new, show" in newer(world, world.charlie, page).content.decode()
    assert newer(world, world.charlie, inbox(world, world.charlie)).status_code == 204


def test_a_run_that_was_claimed_leaves(world: World, clock: Clock) -> None:
    unclaimed(world, clock)
    page = inbox(world, world.charlie)
    leases.claim(world.caller, world.offer())
    assert "1 no longer waiting, show" in newer(world, world.charlie, page).content.decode()
    assert "All is well" in inbox(world, world.charlie)


def test_it_says_when_a_worker_that_could_take_it_was_heard_last(world: World, clock: Clock) -> None:
    leases.claim(world.caller, world.offer("1", limit=1))
    leases.claim(world.caller, world.offer("9", limit=1))
    of_one, of_nine = Worker.objects.of(world.tenant).order_by("started_at")
    run_id = unclaimed(world, clock)
    Worker.objects.of(world.tenant).filter(pk=of_nine.pk).update(seen_at=clock.now())
    heard = f"see that one runs (the last was heard at {at(of_one.seen_at)})"
    assert heard in inbox(world, world.charlie)
    assert heard in explain.explain(run_id).sentence
    assert heard in next(iter(run_lists.runs(world.charlie, world.tenant, Filter()).rows)).why
    assert heard in client_of(world.charlie).get(href(world, run_id)[6:-1]).content.decode()


def test_where_no_worker_of_a_version_was_ever_heard_no_time_is_told(world: World, clock: Clock) -> None:
    world.start_run()
    clock.shift(UNCLAIMED_AFTER.total_seconds())
    page = inbox(world, world.charlie)
    assert "see that one runs;" in page and "heard at" not in page


def test_a_record_that_does_not_verify_is_in_the_inbox_of_who_runs_and_who_audits_it(world: World) -> None:
    run_id = spoilt(world)
    identity.grant_permission(world.admin, world.person("adam"), Verb.ADMINISTER, world.tenant)
    for person in (world.charlie, world.dora):
        page = inbox(world, person)
        assert "All is well" not in page and href(world, run_id) in page and "Doesn’t verify" in page
        assert re.search(r'id="badge-inbox"[^>]*>1<', page)
    assert "All is well" in inbox(world, world.alice)


def test_a_record_that_verifies_again_leaves(world: World) -> None:
    run_id = spoilt(world)
    page = inbox(world, world.charlie)
    run_sql("UPDATE ledger_run_head SET asks = 0 WHERE run_id = %s", key_of(run_id))
    through(world, verifications.ask(world.caller))
    assert "1 no longer waiting, show" in newer(world, world.charlie, page).content.decode()
    assert "All is well" in inbox(world, world.charlie)


def test_a_record_found_broken_meanwhile_is_offered_once(world: World, clock: Clock) -> None:
    page = inbox(world, world.charlie)
    clock.shift(1)
    spoilt(world)
    assert "1 new, show" in newer(world, world.charlie, page).content.decode()
    page = inbox(world, world.charlie)
    clock.shift(1)
    through(world, verifications.ask(world.caller))
    assert newer(world, world.charlie, page).status_code == 204


def test_an_unclaimed_run_that_does_not_verify_is_one_line(world: World, clock: Clock) -> None:
    spoil(unclaimed(world, clock))
    through(world, verifications.ask(world.caller))
    assert kinds(world, world.charlie) == [Kind.UNVERIFIED]


def test_a_run_handed_over_because_it_does_not_verify_is_one_line(world: World, clock: Clock) -> None:
    run_id = spoilt(world)
    assert kinds(world, world.charlie) == [Kind.UNVERIFIED]
    run_sql("UPDATE ledger_run_head SET checkpoint_digest = head_digest WHERE run_id = %s", key_of(run_id))
    clock.shift(7_200)
    sweep.sweep()
    wakes.run(run_id)
    assert world.head(run_id).status == "blocked"
    assert kinds(world, world.charlie) == [Kind.HANDOFF]


def test_the_administration_that_does_not_verify_is_told_above_the_list(world: World) -> None:
    run_sql("UPDATE ledger_target SET private = NOT private WHERE tenant_id = %s", key_of(world.tenant.pk))
    through(world, verifications.ask(world.caller))
    page = inbox(world, world.dora)
    assert "administration did not verify" in page and "All is well" not in page
    assert "administration did not verify" not in inbox(world, world.charlie)


def test_the_stalled_alone_are_a_part_of_the_inbox_with_its_count(world: World, clock: Clock) -> None:
    assert "Stalled" not in inbox(world, world.charlie)
    given_up(world, clock)
    page = inbox(world, world.charlie, "?show=stalled")
    assert "No run stands still" in page and "See all that waits for you" in page
    unclaimed(world, clock)
    spoilt(world)
    page = inbox(world, world.charlie, "?show=stalled")
    assert page.count("<li data-row") == 2 and 'id="tab-count">2<' in page


@pytest.mark.parametrize("person", ["alice", "nobody"])
def test_who_runs_nothing_is_told_of_nothing(world: World, clock: Clock, person: str) -> None:
    unclaimed(world, clock)
    spoilt(world)
    reader: User = world.alice if person == "alice" else world.person(person)
    assert kinds(world, reader) == []
    assert kinds(World(), world.charlie) == []


def test_a_filter_says_from_when_on_a_run_counts_as_unclaimed(world: World) -> None:
    page = client_of(world.charlie).get(reverse("runs", args=[world.tenant.slug])).content.decode()
    assert "Unclaimed for 5 minutes</option>" in page and "Doesn’t verify, when checked last</option>" in page


def test_runs_that_do_not_verify_are_a_choice_of_health(world: World) -> None:
    world.start_run()
    run_id = spoilt(world)
    rows = run_lists.runs(world.charlie, world.tenant, Filter.read({"health": "unverified"})).rows
    assert [(row.id, row.health) for row in rows] == [(run_id, "unverified")]
    page = client_of(world.charlie).get(href(world, run_id)[6:-1]).content.decode()
    assert "Doesn’t verify" in page


def test_stalled_runs_cost_the_same_statements_at_ten_times_the_data(world: World, clock: Clock) -> None:
    client, address = client_of(world.charlie), reverse("inbox", args=[world.tenant.slug])

    def grow() -> None:
        unclaimed(world, clock)
        spoilt(world)

    def cost() -> int:
        with CaptureQueriesContext(connection) as captured:
            client.get(address)
        return len(captured)

    grow()
    cost()
    few = cost()
    for _ in range(9):
        grow()
    assert cost() == few <= 32
    assert len(waiting.page_for(world.charlie, world.tenant, {Kind.UNCLAIMED})[0]) == 10, "none of them was claimed"
    assert stalled_runs.unverified_for(world.charlie, world.tenant).count() == 10
