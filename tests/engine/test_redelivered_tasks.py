"""The queue may deliver a task again, or to several workers at once: what it does is done once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ledger import tasks
from ledger.domain.effects import EffectState
from ledger.domain.runs import Status
from ledger.models import Decision, EffectReport, JournalEntry
from ledger.services import verify
from tests.clock import Clock
from tests.engine.scenes import Payments
from tests.engine.test_races import race
from tests.engine.waking import commit, timer
from tests.patience import until

pytestmark = pytest.mark.postgres_only
DELIVERIES = 4
WORK: tuple[Callable[[], Any], ...] = (tasks.reconcile_due, tasks.drain_wakes, tasks.sweep, tasks.check_due)


def entries(payments: Payments) -> int:
    count: int = JournalEntry.objects.of(payments.world.tenant).count()
    return count


@pytest.mark.parametrize("task", WORK, ids=lambda task: task.__name__)
def test_a_task_delivered_to_several_workers_and_then_again_does_its_work_once(
    payments: Payments, clock: Clock, task: Callable[[], Any]
) -> None:
    world = payments.world
    packet, effect_id, given = payments.permitted()
    payments.pay(given)
    payments.lapse(clock, packet.run.id)
    asleep = commit(world, world.claimed_run(), timer(-1))
    clock.shift(30)
    raced = race(*[task] * DELIVERIES)
    assert not [answer for answer in raced.answers if isinstance(answer, Exception)], raced.answers

    def worked_off() -> bool:
        # A batch may be full of what other tests have left due in this database.
        for other in WORK:
            other()
        heads = {world.head(run_id).status for run_id in (packet.run.id, asleep)}
        return payments.effect(effect_id).state == EffectState.COMMITTED and heads == {Status.READY}

    until(worked_off, "the call is looked up, and both runs go on")
    done = entries(payments)
    for again in WORK:
        again()
    assert entries(payments) == done, "a delivery too many wrote something"
    assert payments.counted(given.key) == (1, 1)
    found = EffectReport.objects.of(world.tenant).filter(effect_id=effect_id, kind="lookup", counted=True)
    assert found.count() == 1
    for run_id in (packet.run.id, asleep):
        assert Decision.objects.of(world.tenant).filter(run_id=run_id, decision="resume").count() >= 1
        assert verify.run(run_id).faults == []
    assert Decision.objects.of(world.tenant).filter(run_id=asleep).count() == 1
