"""Cancelling against going on, in both orders: whoever comes second is told who won, and nothing is called cancelled over a result.

Runs are cancelled by a deadline that says so and by whoever closes a handoff. On PostgreSQL, each side having read before either writes.
"""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from ledger.domain.commits import Next, NextKind
from ledger.domain.errors import LedgerError
from ledger.domain.handoffs import Outcome
from ledger.domain.identity import Caller
from ledger.engine import sweep, wakes
from ledger.models import Checkpoint, Handoff, User
from ledger.services import events, handoffs, leases, verify, waits
from ledger.services.packets import Packet
from tests.clock import Clock
from tests.engine.test_meetings import meeting_an_event
from tests.engine.waking import claim
from tests.meeting import race
from tests.world import World

pytestmark = pytest.mark.postgres_only


def operator(world: World, user: User) -> Caller:
    return replace(world.caller, agent_id=None, key_id=None, person_id=user.pk, actor=f"person:{user.pk}")


def poisoned(world: World, clock: Clock) -> tuple[Packet, UUID]:
    """A run that is blocked since it killed three workers: what the last of them holds, and the handoff."""
    run_id = world.start_run()
    packet = world.claim(seconds=5)
    for turn in range(3):
        clock.shift(6)
        assert leases.lapse(run_id)
        if turn < 2:
            wakes.run(run_id)
            packet = world.claim(seconds=5)
    assert world.head(run_id).status == "blocked"
    return packet, Handoff.objects.of(world.tenant).get(run_id=run_id).pk


def finishes(world: World, run_id: UUID) -> None:
    """Somebody goes on with the run and completes it; from then on nothing cancels it."""
    wakes.run(run_id)
    world.commit(claim(world, run_id), Next(NextKind.COMPLETE))
    sweep.sweep(10_000)
    assert world.head(run_id).status == "completed" and verify.run(run_id).faults == []


def is_cancelled(world: World, run_id: UUID, packet: Packet | None = None) -> None:
    """It ends as cancelled, without a result, and a worker of before is told that it is nobody's."""
    wakes.run(run_id)
    assert world.head(run_id).status == "cancelled" and leases.claim(world.caller, world.offer("1")) == []
    if packet is not None:
        with pytest.raises(LedgerError) as refused:
            world.commit(packet, Next(NextKind.COMPLETE))
        assert refused.value.code == "stale-fence" and refused.value.remedy
    ends = Checkpoint.objects.of(world.tenant).filter(run_id=run_id, kind="end")
    assert not ends.exists() and verify.run(run_id).faults == []


@pytest.mark.parametrize("first", ["deadline", "event"])
def test_a_deadline_that_cancels_against_what_was_waited_for_has_one_winner_who_is_told(
    world: World, clock: Clock, first: str
) -> None:
    run_id, member_id, event_id = meeting_an_event(world, 60)
    clock.shift(30 if first == "event" else 61)  # half a minute, so that a slow machine doesn't come to the deadline

    def cancel() -> bool:
        clock.set(max(clock.seconds, 61))
        return waits.expire_due(run_id)

    def deliver() -> bool:
        return events.deliver(run_id, member_id, event_id)

    if first == "deadline":
        assert race(cancel, deliver) == (True, False)
        is_cancelled(world, run_id)
    else:
        assert deliver() and not cancel()
        finishes(world, run_id)


@pytest.mark.parametrize("first", [Outcome.CANCEL, Outcome.WAKE])
def test_two_operators_of_whom_one_cancels_and_one_wakes_are_told_who_won(
    world: World, clock: Clock, first: Outcome
) -> None:
    packet, handoff_id = poisoned(world, clock)
    second = Outcome.WAKE if first is Outcome.CANCEL else Outcome.CANCEL
    charlie, dora = operator(world, world.charlie), operator(world, world.charlie)
    won, lost = race(
        lambda: handoffs.close(charlie, handoff_id, first, "looked into it"),
        lambda: handoffs.close(dora, handoff_id, second, "looked into it too"),
    )
    assert won is None and isinstance(lost, LedgerError) and lost.code == "wrong-state" and lost.remedy
    assert Handoff.objects.of(world.tenant).get(pk=handoff_id).outcome == first
    if first is Outcome.CANCEL:
        is_cancelled(world, packet.run.id, packet)
    else:
        finishes(world, packet.run.id)


@pytest.mark.parametrize("first", ["cancel", "complete"])
def test_cancelling_against_a_worker_that_completes_past_its_lease(world: World, clock: Clock, first: str) -> None:
    """Whoever ends its ownership first decides: a completed run has no handoff to close, a cancelled one takes no result."""
    run_id = world.start_run()
    packet = world.claim(seconds=5)
    for _ in range(2):
        clock.shift(6)
        assert leases.lapse(run_id)
        wakes.run(run_id)
        packet = world.claim(seconds=5)
    clock.shift(6)

    def lapse_and_cancel() -> bool:
        lapsed = leases.lapse(run_id)
        if lapsed:
            handoff = Handoff.objects.of(world.tenant).get(run_id=run_id)
            handoffs.close(operator(world, world.charlie), handoff.pk, Outcome.CANCEL, "it kills workers")
        return lapsed

    def complete() -> object:
        return world.commit(packet, Next(NextKind.COMPLETE))

    if first == "cancel":
        cancelled, refused = race(lapse_and_cancel, complete)
        assert cancelled is True and isinstance(refused, LedgerError) and refused.code == "stale-fence"
        is_cancelled(world, run_id, packet)
    else:
        _, cancelled = race(complete, lapse_and_cancel)
        assert cancelled is False and not Handoff.objects.of(world.tenant).filter(run_id=run_id).exists()
        assert world.head(run_id).status == "completed" and verify.run(run_id).faults == []
