"""Races over who owns a run, on PostgreSQL: both sides have read before either writes."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from uuid import uuid4

import pytest
from django.db import connection

from ledger.domain.commits import Next, NextKind
from ledger.domain.errors import LedgerError
from ledger.domain.runs import Directive
from ledger.engine import wakes
from ledger.models import Checkpoint, JournalEntry, Lease, RunHead, Wake
from ledger.services import leases, verify
from ledger.services.packets import Packet
from tests.clock import Clock
from tests.meeting import between_reading_and_writing, race
from tests.world import World

pytestmark = pytest.mark.postgres_only


def entries(world: World, packet: Packet) -> list[str]:
    rows = JournalEntry.objects.of(world.tenant).filter(stream_id=packet.run.id).order_by("seq")
    return list(rows.values_list("verb", flat=True))


def test_two_claims_at_once_give_a_run_to_one_worker(world: World) -> None:
    run_id = world.start_run()
    before = world.head(run_id)
    first, second = race(
        lambda: leases.claim(world.caller, world.offer("1")), lambda: leases.claim(world.caller, world.offer("1", "2"))
    )
    assert [packet.run.id for packet in first] == [run_id] and second == []
    head = world.head(run_id)
    assert (head.fence_count, head.claims_since_commit) == (before.fence_count + 1, 1)
    assert verify.run(run_id).faults == []


def test_the_loser_of_a_claim_gets_the_next_run_and_not_nothing(world: World) -> None:
    runs = {world.start_run(), world.start_run()}
    worker = world.offer("1").worker_id
    offers = [world.offer("1", worker=worker) for _ in range(2)]
    first, second = race(lambda: leases.claim(world.caller, offers[0]), lambda: leases.claim(world.caller, offers[1]))
    assert {packet.run.id for packet in (*first, *second)} == runs
    assert len(first) == len(second) == 1


def test_of_several_runs_claimed_at_once_the_loser_gets_what_the_winner_left(world: World) -> None:
    runs = {world.start_run() for _ in range(5)}
    worker = uuid4()
    several, one = replace(world.offer("1", worker=worker), limit=5), replace(world.offer("1", worker=worker), limit=2)
    first, second = race(lambda: leases.claim(world.caller, one), lambda: leases.claim(world.caller, several))
    won, left = {packet.run.id for packet in first}, {packet.run.id for packet in second}
    assert (len(first), len(second)) == (2, 3) and won | left == runs and not won & left
    assert all(verify.run(run_id).faults == [] for run_id in runs)


def test_two_reapers_of_one_lease_end_it_once(world: World, clock: Clock) -> None:
    packet = world.claimed_run(seconds=30)
    clock.shift(31)
    first, second = race(lambda: leases.lapse(packet.run.id), lambda: leases.lapse(packet.run.id))
    assert (first, second) == (True, False)
    head = world.head(packet.run.id)
    assert (head.status, head.fence_count, head.claims_since_commit) == ("waking", packet.fence.count + 1, 1)
    assert Wake.objects.of(world.tenant).filter(run_id=packet.run.id).count() == 1
    assert entries(world, packet).count("lease.lapse") == 1
    assert wakes.run(packet.run.id) == "resume" and wakes.run(packet.run.id) is None
    assert verify.run(packet.run.id).faults == []


def test_a_reaper_that_read_before_the_heartbeat_ends_nothing(world: World, clock: Clock) -> None:
    packet = world.claimed_run(seconds=30)
    lease = Lease.objects.of(world.tenant).get(pk=packet.run.id)
    clock.shift(31)
    beaten = []

    def beat() -> None:
        beaten.extend(leases.heartbeat(world.caller, lease.worker_id, [(packet.run.id, packet.fence)]))

    assert between_reading_and_writing(beat, lambda: leases.lapse(packet.run.id)) is False
    assert [each.directive for each in beaten] == [Directive.GO_ON]
    assert world.head(packet.run.id).status == "running"
    assert world.commit(packet, Next(NextKind.COMPLETE)).status == "completed"


def test_a_commit_that_wins_against_the_lapse_is_final(world: World, clock: Clock) -> None:
    packet = world.claimed_run(seconds=30)
    clock.shift(31)
    committed, lapsed = race(lambda: world.commit(packet, Next(NextKind.COMPLETE)), lambda: leases.lapse(packet.run.id))
    assert committed.status == "completed" and lapsed is False
    assert world.head(packet.run.id).status == "completed"
    assert "lease.lapse" not in entries(world, packet) and verify.run(packet.run.id).faults == []


def test_a_commit_that_loses_against_the_lapse_is_refused_and_writes_nothing(world: World, clock: Clock) -> None:
    packet = world.claimed_run(seconds=30)
    clock.shift(31)
    lapsed, refused = race(lambda: leases.lapse(packet.run.id), lambda: world.commit(packet, Next(NextKind.COMPLETE)))
    assert lapsed is True and isinstance(refused, LedgerError) and refused.code == "stale-fence" and refused.remedy
    assert world.head(packet.run.id).status == "waking"
    assert Checkpoint.objects.of(world.tenant).filter(run_id=packet.run.id).count() == 1
    assert entries(world, packet)[-1] == "lease.lapse"


def test_a_release_against_a_lapse_ends_ownership_once(world: World, clock: Clock) -> None:
    packet = world.claimed_run(seconds=30)
    clock.shift(31)
    _, lapsed = race(
        lambda: leases.release(world.caller, packet.run.id, packet.fence), lambda: leases.lapse(packet.run.id)
    )
    assert lapsed is False and world.head(packet.run.id).fence_count == packet.fence.count + 1
    assert Wake.objects.of(world.tenant).filter(run_id=packet.run.id).count() == 1


def test_many_claimers_of_few_runs_take_each_once(world: World) -> None:
    runs = {world.start_run() for _ in range(6)}
    barrier = threading.Barrier(8)

    def work() -> list[Packet]:
        try:
            barrier.wait(20)
            return [packet for _ in range(3) for packet in leases.claim(world.caller, world.offer("1"))]
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        taken = [packet.run.id for future in [pool.submit(work) for _ in range(8)] for packet in future.result()]
    assert len(taken) == len(set(taken)) and set(taken) <= runs
    assert set(RunHead.objects.of(world.tenant).filter(status="ready").values_list("pk", flat=True)) == runs - set(
        taken
    )
    assert set(taken) == runs
