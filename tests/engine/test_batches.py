"""Many runs at once come to what each of them comes to by itself, and none is spoilt by another."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import UUID

import pytest
from django.db import connection, transaction

from ledger.domain.change import Change
from ledger.domain.commits import Next, NextKind
from ledger.domain.views import RunView
from ledger.domain.waits import MemberKind, MemberSpec, OnDeadline, SetMode, WaitSpec
from ledger.engine import sweep, wakes
from ledger.models import Decision, Wake, WakeCheck
from ledger.services import batches, facts, verify, waits
from ledger.services import wakes as wake_rows
from ledger.services.drafts import run_draft
from ledger.services.views import named_views
from tests.clock import Clock
from tests.engine.waking import asking, commit, pay, say
from tests.shop import Shop
from tests.tamper import run_sql
from tests.trips import short, statements
from tests.world import World


def timed(world: World) -> UUID:
    """A run that waits for five seconds."""
    timer = MemberSpec(MemberKind.TIMER, at=facts.read().now + timedelta(seconds=5))
    wait = WaitSpec(SetMode.ANY, (timer,), facts.read().now + timedelta(days=1), OnDeadline.WAKE)
    return commit(world, world.claimed_run(), Next(NextKind.WAIT, "think", wait))


def due(world: World, clock: Clock, count: int) -> list[UUID]:
    """So many runs whose timer is past, and on which nobody has acted yet."""
    runs = [timed(world) for _ in range(count)]
    clock.shift(6)
    return runs


def statuses(world: World, runs: list[UUID]) -> set[str]:
    return {str(world.head(run_id).status) for run_id in runs}


def test_runs_that_are_due_together_come_to_what_each_would_come_to_by_itself(world: World, clock: Clock) -> None:
    *runs, alone = due(world, clock, 4)
    assert waits.expire_each(runs) == [] and waits.expire_due(alone)
    assert statuses(world, [*runs, alone]) == {"waking"}
    assert wakes.run_each(runs) == [] and wakes.run(alone) == "resume"
    assert statuses(world, [*runs, alone]) == {"ready"}
    found = [
        [
            (check.name, check.answer, check.reason)
            for check in WakeCheck.objects.of(world.tenant).filter(run_id=run_id).order_by("ordinal")
        ]
        for run_id in (*runs, alone)
    ]
    assert found[0] and all(checks == found[-1] for checks in found)
    for run_id in (*runs, alone):
        assert Decision.objects.of(world.tenant).get(run_id=run_id).decision == "resume"
        assert verify.run(run_id).faults == []
    assert Wake.objects.of(world.tenant).filter(run_id__in=runs, state="decided", attempt=1).count() == len(runs)


@pytest.mark.postgres_only
@pytest.mark.parametrize("count", [2, batches.SIZE])
def test_however_many_are_due_a_batch_takes_two_statements_for_its_waits_and_four_for_its_wakes(
    world: World, clock: Clock, count: int
) -> None:
    runs = due(world, clock, count)
    sent = statements(lambda: waits.expire_each(runs))
    assert len([sql for sql in sent if "ormq" not in sql]) == 2, short(sent)
    sent = statements(lambda: wakes.run_each(runs))
    assert len([sql for sql in sent if "ormq" not in sql and "pg_notify" not in sql]) == 4, short(sent)
    assert len([sql for sql in sent if "pg_notify" in sql]) <= 1, "the bell rings once, however many are ready"
    assert statuses(world, runs) == {"ready"}


def test_who_is_done_with_and_who_does_not_wait_is_moved_by_no_second_look(world: World, clock: Clock) -> None:
    runs = [*due(world, clock, 2), world.claimed_run().run.id]
    assert waits.expire_each(runs) == []
    before = [world.head(run_id).head_seq for run_id in runs]
    assert waits.expire_each(runs) == []
    assert [world.head(run_id).head_seq for run_id in runs] == before
    assert wakes.run_each(runs) == []
    before = [world.head(run_id).head_seq for run_id in runs]
    assert wakes.run_each(runs) == []
    assert [world.head(run_id).head_seq for run_id in runs] == before
    assert waits.expire_each([]) == wakes.run_each([]) == []


def test_one_that_can_t_be_decided_stops_none_of_the_others(world: World, clock: Clock) -> None:
    poisoned, *sound = due(world, clock, 4)
    assert waits.expire_each([poisoned, *sound]) == []
    key = poisoned if connection.vendor == "postgresql" else poisoned.hex
    run_sql("UPDATE ledger_wake SET reasons = %s WHERE run_id = %s", "5", key)
    assert wakes.run_each([poisoned, *sound]) == []
    run_sql("UPDATE ledger_wake SET reasons = %s WHERE run_id = %s", "[]", key)
    assert statuses(world, sound) == {"ready"}
    left = Wake.objects.of(world.tenant).get(run_id=poisoned)
    assert (left.state, left.attempt) == ("checking", 1), "what failed was an attempt, and comes round after its time"


def test_a_rule_that_raises_for_one_leaves_that_one_and_no_other(world: World, clock: Clock) -> None:
    first, *others = due(world, clock, 3)

    def rule(view: RunView) -> tuple[Change | None, str]:
        if view.run.id == first:
            raise ValueError("not this one")
        draft = run_draft(view, "system:test", "test.touch")
        draft.head(asks=7)
        return draft.change(), "touched"

    views = named_views([first, *others])
    assert batches.settle_each(views, rule) == [None, ("touched",), ("touched",)]
    assert [world.head(run_id).asks for run_id in (first, *others)] == [0, 7, 7]


@pytest.mark.postgres_only
def test_a_run_that_somebody_holds_is_left_and_the_others_are_not(world: World, clock: Clock) -> None:
    held, *others = due(world, clock, 3)

    def look() -> list[UUID]:
        with ThreadPoolExecutor(1) as elsewhere:
            return elsewhere.submit(_apart, lambda: waits.expire_each([held, *others])).result(20)

    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM ledger_run_head WHERE run_id = %s FOR UPDATE", [held])
        assert look() == [held]
        assert statuses(world, others) == {"waking"} and statuses(world, [held]) == {"waiting"}


def _apart(act: Callable[[], list[UUID]]) -> list[UUID]:
    try:
        return act()
    finally:
        connection.close()


def test_what_rests_on_a_target_and_what_asks_for_leave_are_left_for_themselves(
    world: World, shop: Shop, clock: Clock
) -> None:
    asked = asking(world)
    runs = due(world, clock, 2)
    assert waits.expire_each([asked, *runs]) == [asked]
    assert world.head(asked).status == "waiting"
    say(world, world.alice, asked)
    shop.silent = True
    assert wake_rows.begin_each([asked, *runs])[1] == [asked]
    assert Wake.objects.of(world.tenant).get(run_id=asked).state == "queued"
    shop.silent = False
    assert wakes.run(asked) == "resume"


def test_a_sweep_acts_on_those_that_go_together_and_on_those_that_don_t(world: World, shop: Shop, clock: Clock) -> None:
    now = facts.read().now
    members = (
        MemberSpec(MemberKind.APPROVAL, effect="pay"),
        MemberSpec(MemberKind.TIMER, at=now + timedelta(seconds=5)),
    )
    wait = WaitSpec(SetMode.ANY, members, now + timedelta(days=1), OnDeadline.WAKE)
    mixed = commit(world, world.claimed_run(), Next(NextKind.WAIT, "issue", wait), pay())
    runs = due(world, clock, 3)
    for _ in range(2):
        sweep.sweep(10_000)
    assert statuses(world, [mixed, *runs]) == {"ready"}


@pytest.mark.postgres_only
def test_of_two_that_look_at_the_same_runs_at_once_one_decides_each(world: World, clock: Clock) -> None:
    runs = due(world, clock, 12)
    start = threading.Barrier(2)

    def look() -> None:
        try:
            start.wait(20)
            for _ in range(20):
                for run_id in waits.expire_each(runs):
                    waits.expire_due(run_id)
                for run_id in wakes.run_each(runs):
                    wakes.run(run_id)
        finally:
            connection.close()

    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses(world, runs) == {"ready"}
    assert Decision.objects.of(world.tenant).filter(run_id__in=runs).count() == len(runs)
    assert all(verify.run(run_id).faults == [] for run_id in runs)
