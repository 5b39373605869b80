"""Rows alone are enough: with every hint lost, everything that is due still happens, and one failure stops nothing else."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from importlib import import_module
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings
from django.db import OperationalError, connection, transaction
from django_q.models import OrmQ, Schedule

from ledger import schedules, tasks
from ledger.domain.waits import OnDeadline
from ledger.engine import sweep
from ledger.models import Heartbeat, Wake
from ledger.services import hints, leases
from ledger.services.hints import Hint
from tests.clock import Clock
from tests.engine.waking import approval, asking, claim, commit, say, timer
from tests.meeting import between_reading_and_writing
from tests.shop import Shop
from tests.world import World


@pytest.mark.parametrize("hint", [*Hint, "ledger.tasks.beat"])
def test_every_hinted_name_resolves_to_a_task_without_arguments(hint: str) -> None:
    module, _, name = str(hint).rpartition(".")
    assert callable(getattr(import_module(module), name))


def test_with_all_hints_deleted_everything_still_proceeds(
    world: World, shop: Shop, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "RESUMEAPP_HINTS", True)
    approved, timed = asking(world), commit(world, world.claimed_run(), timer(5))
    expiring = asking(world, approval(30, OnDeadline.CANCEL))
    abandoned = world.claimed_run(seconds=1)
    say(world, world.alice, approved)
    assert OrmQ.objects.exists()
    OrmQ.objects.all().delete()
    clock.shift(31)
    sweep.sweep(10_000)
    assert world.head(approved).status == "ready"
    assert world.head(timed).status == "ready"
    assert world.head(expiring).status == "cancelled"
    assert world.head(abandoned.run.id).status == "ready"


def test_a_second_sweep_finds_nothing_of_these_runs_to_do(world: World, clock: Clock) -> None:
    run_id = commit(world, world.claimed_run(), timer(5))
    clock.shift(6)
    sweep.sweep(10_000)
    before = world.head(run_id).head_seq
    sweep.sweep(10_000)
    assert world.head(run_id).head_seq == before


def test_a_worker_whose_lease_lapsed_is_followed_by_another_under_a_higher_fence(world: World, clock: Clock) -> None:
    packet = world.claimed_run(seconds=1)
    clock.shift(2)
    sweep.sweep(10_000)
    again = claim(world, packet.run.id)
    assert again.fence.count > packet.fence.count and again.head.status == "running"


def test_one_failing_item_never_stops_the_rest(world: World, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    run_id = commit(world, world.claimed_run(), timer(-1))

    def broken(_: int) -> int:
        raise RuntimeError("secret words")

    sweep.register("broken", broken)
    try:
        done = sweep.sweep(10_000)
    finally:
        sweep._hooks.pop("broken")
    assert done["broken"] == 0 and world.head(run_id).status == "ready"
    assert "secret words" not in caplog.text


def test_an_item_that_fails_is_passed_over(world: World) -> None:
    seen = []

    def act(item: object) -> None:
        seen.append(item)
        if len(seen) == 1:
            raise ValueError("no")

    assert sweep._run(sweep.Pass("test", lambda limit: [uuid4(), uuid4()][:limit], act), 2) == 2
    assert len(seen) == 2


class Lost:
    """An execute wrapper: the server ends the connection before the first statement that has this in it."""

    def __init__(self, before: str) -> None:
        self.before, self.ended = before, 0

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if self.before in sql and not self.ended:
            self.ended = context["connection"].connection.info.backend_pid
            other = connection.copy()
            with closing(other), other.cursor() as cursor:
                cursor.execute("SELECT pg_terminate_backend(%s)", [self.ended])
        return execute(sql, params, many, context)


@pytest.mark.postgres_only
@pytest.mark.parametrize(
    ("before", "at_most"),
    [
        ("ledger_lease t WHERE t.active AND t.expires_at <= ", 0),
        ("UPDATE ledger_wait_set ", 1),
        ("(t.state = 'queued' OR t.until <= ", 0),
        ("INSERT INTO ledger_decision", 1),
    ],
    ids=["looking for the first pass", "acting on a wait", "looking for wakes", "deciding a wake"],
)
def test_a_connection_that_is_lost_costs_a_sweep_one_item_at_most(
    world: World, clock: Clock, before: str, at_most: int
) -> None:
    runs = [commit(world, world.claimed_run(), timer(5)) for _ in range(3)]
    clock.shift(6)
    sweep._watch.jump()  # the clock's jump is seen, and no part of this
    lost = Lost(before)
    with connection.execute_wrapper(lost):
        sweep.sweep(10_000)
    assert lost.ended and lost.ended != connection.connection.info.backend_pid
    assert sum(world.head(run).status != "ready" for run in runs) <= at_most
    clock.shift(60)  # past the time after which who checked a wake is taken for dead
    sweep.sweep(10_000)
    assert all(world.head(run).status == "ready" for run in runs)


@pytest.mark.postgres_only
def test_a_database_that_is_gone_ends_the_sweep_at_once(committed: None) -> None:
    asked = []

    def gone(_: int) -> list[object]:
        asked.append(1)
        raise OperationalError("the server is gone")

    with pytest.raises(OperationalError):
        sweep._run(sweep.Pass("test", gone, print), 2)
    assert len(asked) == 2


def test_the_timer_never_sleeps_past_what_is_due_next_and_never_longer_than_a_second(world: World) -> None:
    commit(world, world.claimed_run(), timer(0.3))
    assert timedelta() < sweep.pause() <= timedelta(seconds=0.3)


def test_hints_of_a_burst_become_one_and_none_is_sent_for_what_is_rolled_back(
    committed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "RESUMEAPP_HINTS", True)
    hints._sent.clear()
    OrmQ.objects.all().delete()

    @transaction.atomic
    def rolled_back() -> None:
        hints.send(Hint.SWEEP)
        raise KeyError

    with pytest.raises(KeyError):
        rolled_back()
    assert not OrmQ.objects.exists()
    for _ in range(5):
        hints.send(Hint.WAKES)
    assert OrmQ.objects.count() == 1
    OrmQ.objects.all().delete()


def test_schedules_are_what_the_code_says_and_strangers_are_removed(committed: None) -> None:
    Schedule.objects.create(name="stranger", func="no.such.task", args="(", schedule_type=Schedule.MINUTES)
    Schedule.objects.create(name="sweep", func="ledger.tasks.sweep", schedule_type=Schedule.DAILY)
    schedules.ensure()
    schedules.ensure()
    found = Schedule.objects.get()
    assert (found.name, found.func, found.schedule_type, found.minutes) == (
        "sweep",
        "ledger.tasks.sweep",
        Schedule.MINUTES,
        1,
    )
    Schedule.objects.all().delete()


def test_a_beat_counts_up_the_row_of_its_own_cluster(committed: None) -> None:
    tasks.beat()
    tasks.beat()
    assert Heartbeat.objects.get(name=tasks.cluster_name()).beats >= 2


@pytest.mark.postgres_only
def test_what_is_written_late_under_an_older_id_is_swept_too(world: World) -> None:
    """Ids are made before the write: a sweep that went on from the last id it saw would pass this one over for good."""
    late, early = world.claimed_run(), world.claimed_run()

    def overtake() -> None:
        leases.release(world.caller, early.run.id, early.fence)
        sweep.sweep(10_000)
        assert world.head(early.run.id).status == "ready"

    between_reading_and_writing(overtake, lambda: leases.release(world.caller, late.run.id, late.fence))
    older, newer = (Wake.objects.of(world.tenant).get(run_id=packet.run.id) for packet in (late, early))
    assert older.pk < newer.pk, "it was made first and written last"
    sweep.sweep(10_000)
    assert world.head(late.run.id).status == "ready"
