"""The record's clock jumps, goes back, and changes between winter and summer: what is due comes once, and nothing is left behind."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.conf import settings
from django.db import OperationalError, connection
from structlog.testing import capture_logs

from ledger.domain.runs import RELEASES_BEFORE_STUCK, comes_round_after
from ledger.domain.wakes import PUT_OFF
from ledger.engine import clocks, sweep
from ledger.engine import wakes as engine
from ledger.models import JournalEntry, RunHead, WaitMember, WaitSet, Wake
from ledger.services import leases, verify, waits, wakes
from tests.clock import Clock
from tests.engine.waking import commit, timer
from tests.tamper import run_sql
from tests.ui.asking import address, ask, client_of
from tests.world import World

DAY = 86_400
MANY = 30


def sleepers(world: World) -> list[UUID]:
    """Runs whose timers are spread over two days and a half from now."""
    apart = timedelta(days=2.5).total_seconds() / MANY
    return [commit(world, world.claimed_run(), timer(1_800 + apart * number, 9 * DAY)) for number in range(MANY)]


def fired(world: World, among: list[UUID]) -> dict[UUID, int]:
    """How often each of these runs was told that its time had come."""
    found = dict.fromkeys(among, 0)
    entries = JournalEntry.objects.of(world.tenant).filter(stream_id__in=among, verb="wait.due")
    for run_id in entries.values_list("stream_id", flat=True):
        found[run_id] += 1
    return found


def fire() -> None:
    """The sweep's look at waits that are due, and nothing after it."""
    (due,) = [each for each in sweep.WAITS if each.name == "waits"]
    sweep._run(due, 10_000)


def test_waits_fire_once_and_never_early_when_the_clock_jumps_a_day_ahead_and_half_a_day_back(
    world: World, clock: Clock
) -> None:
    among = sleepers(world)
    sweep.sweep(10_000)
    clock.shift(DAY)
    fire()
    before = fired(world, among)
    assert 0 < sum(before.values()) < len(among), "their wakes are written, and not yet decided"
    clock.shift(-DAY / 2)
    sweep.sweep(10_000)
    states = RunHead.objects.of(world.tenant).filter(run_id__in=among)
    assert fired(world, among) == before and not states.filter(status="waking").exists(), "none twice, none left"
    assert states.filter(status="ready").count() == sum(before.values())
    clock.shift(3 * DAY)
    fire()
    fire()
    assert set(fired(world, among).values()) == {1}
    early = [
        member.run_id
        for member in WaitMember.objects.of(world.tenant).filter(run_id__in=among)
        if member.met_at < member.due_at
    ]
    assert not early and all(verify.run(run_id).intact for run_id in among[::10])


def test_a_clock_that_went_back_is_told_and_what_was_to_happen_at_once_happens(world: World, clock: Clock) -> None:
    sweep.sweep(10_000)
    clock.shift(DAY)
    sweep.sweep(10_000)
    given_back, dead = world.claimed_run(seconds=30), world.claimed_run(seconds=30)
    worker = uuid4()
    world.start_run()
    alive = world.claim(worker=worker, seconds=30)
    leases.release(world.caller, given_back.run.id, given_back.fence)
    checked = commit(world, world.claimed_run(), timer(-1))
    assert wakes.begin(checked) is not None, "and its checker dies"
    clock.shift(-DAY / 2)
    with capture_logs() as told:
        sweep.sweep(10_000)
    (jump,) = [entry for entry in told if entry["event"] == "clock_jumped"]
    assert jump["log_level"] == "error" and jump["seconds"] == pytest.approx(-DAY / 2, abs=60)
    assert world.head(given_back.run.id).status == "ready" == world.head(checked).status
    clock.shift(29)
    leases.heartbeat(world.caller, worker, [(alive.run.id, alive.fence)])
    clock.shift(2)
    sweep.sweep(10_000)
    assert world.head(dead.run.id).status == "ready", "its lease lasted as long as leases do"
    assert world.head(alive.run.id).status == "running"
    assert all(verify.run(run_id).intact for run_id in (given_back.run.id, dead.run.id, checked))


def test_a_process_that_starts_after_the_clock_went_back_mends_the_same(world: World, clock: Clock) -> None:
    clock.shift(DAY)
    given_back, dead = world.claimed_run(), world.claimed_run(seconds=30)
    leases.release(world.caller, given_back.run.id, given_back.fence)
    clock.shift(-DAY / 2)
    clocks.look(clocks.Watch(), 10_000)
    assert wakes.far(10_000) == [] and given_back.run.id in wakes.due(10_000)
    assert wakes.hurry(given_back.run.id) is False, "once is enough"
    clock.shift(31)
    assert dead.run.id in leases.due(10_000)


def given_back(world: World) -> UUID:
    packet = world.claimed_run()
    leases.release(world.caller, packet.run.id, packet.fence)
    run_id: UUID = packet.run.id
    return run_id


def test_a_row_that_can_t_be_mended_stops_neither_the_others_nor_the_sweep(world: World, clock: Clock) -> None:
    clock.shift(DAY)
    poisoned, sound = given_back(world), given_back(world)
    clock.shift(-DAY / 2)
    key = poisoned if connection.vendor == "postgresql" else poisoned.hex
    wakes.begin(poisoned)  # not due by the clock as it is now
    run_sql("UPDATE ledger_wake SET reasons = '5', state = 'checking', until = due_at WHERE run_id = %s", key)
    try:
        with capture_logs() as told:
            clocks.look(clocks.Watch(), 10_000)
        assert sound in wakes.due(10_000)
        assert [entry["item"] for entry in told if entry["event"] == "sweep_item_failed"] == [str(poisoned)]
    finally:
        run_sql("UPDATE ledger_wake SET reasons = '[]' WHERE run_id = %s", key)


def test_what_a_look_did_not_mend_the_next_one_does(world: World, clock: Clock) -> None:
    clock.shift(DAY)
    runs = {given_back(world) for _ in range(2)}
    clock.shift(-DAY / 2)
    watch = clocks.Watch()
    while runs - set(wakes.due(10_000)):
        before = len(wakes.far(10_000))
        clocks.look(watch, 1)
        assert len(wakes.far(10_000)) < before, "one at a time, until none is left"
    lost = clocks.Watch()

    def cut(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if "ledger_lease" in sql:
            raise OperationalError("the connection is lost")
        return execute(sql, params, many, context)

    late = given_back(world)
    clock.shift(-DAY / 2)
    with connection.execute_wrapper(cut), pytest.raises(OperationalError):
        clocks.look(lost, 10_000)
    clocks.look(lost, 10_000)
    assert late in wakes.due(10_000)


def test_no_wake_is_put_off_for_longer_than_what_counts_as_a_clock_that_went_back(world: World, clock: Clock) -> None:
    assert comes_round_after(RELEASES_BEFORE_STUCK) < PUT_OFF
    assert timedelta(seconds=settings.RESUMEAPP_CHECK_SECONDS) < PUT_OFF
    packet = world.claimed_run()
    for _ in range(3):
        leases.release(world.caller, packet.run.id, packet.fence)
        due = Wake.objects.of(world.tenant).get(run_id=packet.run.id, state="queued").due_at
        assert wakes.hurry(packet.run.id) is False
        clock.shift((due - clock.now()).total_seconds() + 1)
        engine.run(packet.run.id)
        packet = world.claim()


def test_a_timer_written_before_the_clock_stepped_back_is_looked_for_among_all_that_have_not_fired(
    world: World, clock: Clock
) -> None:
    """A scan that went on from where it read last would never come back to what was written below that."""
    sweep.sweep(10_000)
    clock.shift(600)
    sweep.sweep(10_000)
    run_id = commit(world, world.claimed_run(), timer(5))
    clock.shift(-300)
    sweep.sweep(10_000)
    earlier = commit(world, world.claimed_run(), timer(5))
    assert world.head(run_id).status == world.head(earlier).status == "waiting"
    clock.shift(6)
    sweep.sweep(10_000)
    assert (world.head(run_id).status, world.head(earlier).status) == ("waiting", "ready")
    clock.shift(300)
    sweep.sweep(10_000)
    sweep.sweep(10_000)
    assert world.head(run_id).status == "ready" and fired(world, [run_id, earlier]) == {run_id: 1, earlier: 1}


@pytest.mark.parametrize(
    ("zone", "before"),
    [
        ("Europe/Berlin", "2027-03-27T01:30:00"),
        ("Europe/Berlin", "2027-10-30T00:30:00"),
        ("America/Los_Angeles", "2027-03-13T10:30:00"),
        ("America/Los_Angeles", "2027-11-06T09:30:00"),
    ],
    ids=["Europe into summer", "Europe out of it", "America into summer", "America out of it"],
)
def test_a_day_is_86400_seconds_across_a_change_of_summer_time_and_shows_alike_everywhere(
    world: World, clock: Clock, monkeypatch: pytest.MonkeyPatch, zone: str, before: str
) -> None:
    """A day later it is half past two, or half past one, of a night that lacks that hour or has it twice."""
    began = datetime.fromisoformat(before).replace(tzinfo=UTC)
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        clock.set((began - datetime.now(UTC)).total_seconds())
        request = ask(world, hours=24)
        wait = WaitSet.objects.of(world.tenant).get(run_id=request.run_id)
        assert (wait.deadline - wait.opened_at).total_seconds() == pytest.approx(DAY, abs=60)
        shown = wait.deadline.astimezone(UTC).strftime("%-d %b %Y, %H:%M")
        told = f"{shown} UTC"
        alice, slug = client_of(world.alice), world.tenant.slug
        run_page = client_of(world.charlie).get(f"/t/{slug}/runs/{request.run_id}/").content.decode()
        inbox = alice.get(f"/t/{slug}/inbox/").content.decode()
        card = alice.get(address(world, request)).content.decode()
        assert told in run_page and told in inbox and told in card
        for page in (run_page, inbox, card):
            assert not re.findall(r"\d{1,2} [A-Z][a-z]{2} \d{4}, \d\d:\d\d(?!:\d\d UTC| UTC)", page), "without a zone"
        clock.set((wait.deadline - datetime.now(UTC)).total_seconds() - 60)
        assert not waits.expire_due(request.run_id)
        clock.shift(61)
        assert waits.expire_due(request.run_id)
    finally:
        monkeypatch.undo()
        time.tzset()
