"""Two sides at once, on PostgreSQL: behind a barrier, and with proof that they overlapped."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection

from ledger.domain.commits import Next, NextKind
from ledger.domain.waits import MemberKind, MemberSpec, OnDeadline, SetMode, WaitSpec
from ledger.engine import wakes
from ledger.models import Decision, EventDelivery, Wake
from ledger.services import events, facts, waits
from ledger.services import wakes as wake_rows
from ledger.services.events import EventSpec
from tests.clock import Clock
from tests.engine.waking import claim, commit, last_wait, timer
from tests.world import World

pytestmark = pytest.mark.postgres_only
TRIALS = 300


@dataclass(frozen=True)
class Raced:
    """Answers or errors of both sides, and whether each began before the other had ended."""

    answers: list[Any]
    overlapped: bool


def race(*sides: Callable[[], Any], delays: Sequence[float] = ()) -> Raced:
    """Run the sides at once, each on a connection of its own; `delays` are in seconds after the barrier."""
    barrier = threading.Barrier(len(sides))

    def one(number: int, side: Callable[[], Any]) -> tuple[float, float, Any]:
        try:
            facts.read()
            barrier.wait(10)
            if number < len(delays):
                time.sleep(delays[number])
            began = time.perf_counter()
            try:
                answer = side()
            except Exception as fault:
                answer = fault
            return began, time.perf_counter(), answer
        finally:
            connection.close()

    with ThreadPoolExecutor(len(sides)) as pool:
        done = [future.result() for future in [pool.submit(one, *side) for side in enumerate(sides)]]
    overlapped = max(began for began, _, _ in done) < min(ended for _, ended, _ in done)
    return Raced([answer for _, _, answer in done], overlapped)


def ready_to_wait(world: World, order: str) -> tuple[Callable[[], Any], UUID]:
    """A claimed run, and the commit by which it waits for its order to be paid."""
    packet = world.claimed_run()
    member = MemberSpec(MemberKind.EVENT, type="order.paid", subject=order)
    wait = WaitSpec(SetMode.ANY, (member,), facts.read().now + timedelta(days=1), OnDeadline.WAKE)
    return lambda: commit(world, packet, Next(NextKind.WAIT, "issue", wait)), packet.run.id


@pytest.mark.slow
def test_an_event_just_before_during_or_after_the_opening_of_its_wait_wakes_the_run_once(world: World) -> None:
    chance = random.Random(20)
    overlaps = 0
    for trial in range(TRIALS):
        open_wait, run_id = ready_to_wait(world, f"order/{trial}")
        event = EventSpec("https://shop.example", str(uuid4()), "order.paid", f"order/{trial}")
        raced = race(
            open_wait,
            lambda event=event: events.receive(world.caller, event),
            delays=(chance.choice((0, 0, 0.002)), chance.choice((0, 0, 0.001, 0.003, 0.005))),
        )
        assert not [answer for answer in raced.answers if isinstance(answer, Exception)], raced.answers
        overlaps += raced.overlapped
        assert world.head(run_id).status == "waking", trial
        assert Wake.objects.of(world.tenant).filter(run_id=run_id).count() == 1
        assert EventDelivery.objects.of(world.tenant).filter(run_id=run_id).count() == 1
    assert overlaps > TRIALS // 10


def test_the_same_event_five_times_at_once_is_taken_once(world: World) -> None:
    overlaps = 0
    for trial in range(20):
        open_wait, run_id = ready_to_wait(world, f"order/{trial}")
        open_wait()
        event = EventSpec("https://shop.example", str(uuid4()), "order.paid", f"order/{trial}")
        raced = race(*[lambda event=event: events.receive(world.caller, event)] * 5)
        overlaps += raced.overlapped
        statuses = sorted(str(answer.status) for answer in raced.answers)
        assert statuses.count("duplicate") == 4, raced.answers
        assert sum(answer.deliveries for answer in raced.answers) == 1
        assert EventDelivery.objects.of(world.tenant).filter(run_id=run_id).count() == 1
    assert overlaps > 0


def test_five_checkers_of_one_wake_make_one_decision(world: World) -> None:
    overlaps = 0
    for _ in range(20):
        run_id = commit(world, world.claimed_run(), timer(-1))
        raced = race(*[lambda run_id=run_id: wakes.run(run_id)] * 5)
        overlaps += raced.overlapped
        assert sorted(str(answer) for answer in raced.answers) == ["None"] * 4 + ["resume"]
        assert Decision.objects.of(world.tenant).filter(run_id=run_id).count() == 1
        assert Wake.objects.of(world.tenant).filter(run_id=run_id).count() == 1
        claim(world, run_id)
    assert overlaps > 0


def test_an_event_against_a_deadline_that_has_passed_is_late_whoever_is_first_and_there_is_one_wake(
    world: World, clock: Clock
) -> None:
    clock.hold()
    for trial in range(20):
        packet = world.claimed_run()
        now = facts.read().now
        member = MemberSpec(MemberKind.EVENT, type="order.paid", subject=f"order/{trial}")
        wait = WaitSpec(SetMode.ANY, (member,), now + timedelta(seconds=9), OnDeadline.WAKE)
        run_id = commit(world, packet, Next(NextKind.WAIT, "issue", wait))
        clock.shift(9)
        assert run_id in waits.due(10_000)
        event = EventSpec("https://shop.example", str(uuid4()), "order.paid", f"order/{trial}")
        raced = race(
            lambda event=event: events.receive(world.caller, event).status,
            lambda run_id=run_id: waits.expire_due(run_id),
        )
        assert raced.answers[0] == "late", raced.answers
        assert last_wait(world, run_id).state == "expired"
        assert Wake.objects.of(world.tenant).filter(run_id=run_id).count() == 1


def test_two_who_begin_one_wake_at_once_get_it_once(world: World) -> None:
    for _ in range(20):
        run_id = commit(world, world.claimed_run(), timer(-1))
        raced = race(*[lambda run_id=run_id: wake_rows.begin(run_id)] * 2)
        assert len([answer for answer in raced.answers if answer is not None]) == 1
