"""Round trips are numbers: statements of each verb of waits and wakes on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ledger.domain.commits import Next, NextKind
from ledger.domain.waits import MemberKind, MemberSpec, OnDeadline, SetMode, WaitSpec
from ledger.engine import gather
from ledger.services import events, facts, waits
from ledger.services import wakes as wake_rows
from ledger.services.events import EventSpec
from tests.clock import Clock
from tests.engine.waking import commit, timer
from tests.world import World

pytestmark = pytest.mark.postgres_only


def statements(act: Callable[[], object]) -> int:
    with CaptureQueriesContext(connection) as captured:
        act()
    return len(captured)


def event(subject: str = "order/1") -> EventSpec:
    return EventSpec("https://shop.example", str(uuid4()), "order.paid", subject)


def test_an_event_costs_five_statements_kept_and_three_more_for_each_run_that_takes_it(world: World) -> None:
    assert statements(lambda: events.receive(world.caller, event())) == 5
    for expected in (7, 10):
        packet = world.claimed_run()
        member = MemberSpec(MemberKind.EVENT, type="order.paid", subject="order/2")
        wait = WaitSpec(SetMode.ANY, (member,), facts.read().now + timedelta(days=1), OnDeadline.WAKE)
        commit(world, packet, Next(NextKind.WAIT, "issue", wait))
        other = world.claimed_run() if expected == 10 else None
        if other is not None:
            commit(world, other, Next(NextKind.WAIT, "issue", wait))
        assert statements(lambda: events.receive(world.caller, event("order/2"))) == expected


def test_a_wake_costs_three_statements_to_take_one_to_gather_and_two_to_decide(world: World) -> None:
    again = commit(world, world.claimed_run(), timer(-1))
    assert statements(lambda: wake_rows.begin(again)) == 3
    run_id = commit(world, world.claimed_run(), timer(-1))
    taken = wake_rows.begin(run_id)
    assert taken is not None
    gathered = gather.gather(run_id, taken)
    assert statements(lambda: gather.gather(run_id, taken)) == 1
    assert statements(lambda: wake_rows.apply(run_id, gathered)) == 2


def test_a_due_timer_costs_two_statements(world: World, clock: Clock) -> None:
    run_id = commit(world, world.claimed_run(), timer(1))
    clock.shift(2)
    assert statements(lambda: waits.expire_due(run_id)) == 2
