"""Claims, heartbeats, releases and lapses: one owner at a time, and a fence that tells owners apart."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import pytest

from ledger.domain.errors import LedgerError
from ledger.domain.runs import CLEARANCE_GOOD_FOR, Directive, Fence
from ledger.domain.starts import StartSpec
from ledger.domain.workflows import VersionSpec
from ledger.models import Clearance, Handoff, JournalEntry, Lease, Wake, Worker
from ledger.services import leases, runs, verify, workflows
from tests.documents import SCHEMA, STATE, TRANSITIONS
from tests.meeting import between_reading_and_writing
from tests.world import World

if TYPE_CHECKING:
    from tests.clock import Clock


def test_a_stale_fence_gives_nothing_back_and_writes_nothing(world: World) -> None:
    packet = world.claimed_run()
    before = JournalEntry.objects.of(world.tenant).count()
    with pytest.raises(LedgerError) as refused:
        leases.release(world.caller, packet.run.id, Fence(packet.fence.epoch, packet.fence.count + 1))
    assert refused.value.code == "stale-fence" and refused.value.remedy
    assert JournalEntry.objects.of(world.tenant).count() == before


def test_a_foreign_tenants_run_is_not_there(world: World) -> None:
    packet = world.claimed_run()
    with pytest.raises(LedgerError) as refused:
        leases.release(World().caller, packet.run.id, packet.fence)
    assert refused.value.code == "not-found"


def test_no_worker_gets_a_run_of_versions_it_does_not_have(world: World) -> None:
    world.start_run(version="2")
    assert leases.claim(world.caller, world.offer("1")) == []


def test_runs_that_only_old_code_may_take_leave_room_for_another_workflow_s(world: World) -> None:
    """One offer for two workflows, each with its own version: what the one doesn't fit is not in the other's way."""
    for nth in range(leases.LOOKED_AT + 1):
        world.start_run(version="1", key=f"old-{nth}")
    workflows.register(world.caller, "other", "1", VersionSpec(SCHEMA, "assess", TRANSITIONS, ()))
    other = runs.start(world.caller, StartSpec("other", "1", "another", dict(STATE), {}, "", "other-1")).run_id
    offer = replace(world.offer(), versions={"refund": ("9",), "other": ("1",)})
    assert [packet.run.id for packet in leases.claim(world.caller, offer)] == [other]


def test_newer_code_takes_over_what_older_code_left(world: World) -> None:
    run_id = world.start_run()
    assert world.claim("2").run.id == run_id


def test_a_run_is_claimed_once(world: World) -> None:
    world.claimed_run()
    assert leases.claim(world.caller, world.offer("1")) == []


def test_a_packet_carries_the_state_with_its_salt_and_commitment(world: World) -> None:
    from ledger.domain.canonical import commit

    packet = world.claimed_run()
    assert commit(packet.state.salt, packet.state.text.encode()) == packet.state.commitment
    assert packet.checkpoint["state_commitment"] == packet.state.commitment


def test_the_fence_changes_when_ownership_begins_and_when_it_ends(world: World) -> None:
    run_id = world.start_run()
    fences = [world.head(run_id).fence_count]
    packet = world.claim()
    fences.append(world.head(run_id).fence_count)
    leases.release(world.caller, run_id, packet.fence)
    fences.append(world.head(run_id).fence_count)
    assert fences == sorted(set(fences))
    assert world.head(run_id).status == "waking"


def test_a_heartbeat_keeps_the_lease_and_writes_no_entry(world: World, clock: Clock) -> None:
    worker = uuid4()
    run_id = world.start_run()
    packet = world.claim(worker=worker, seconds=10)
    entries = JournalEntry.objects.of(world.tenant).count()
    clock.shift(8)
    (beat,) = leases.heartbeat(world.caller, worker, [(run_id, packet.fence)])
    assert beat.directive is Directive.GO_ON
    clock.shift(8)
    assert run_id not in leases.due(100)
    assert JournalEntry.objects.of(world.tenant).count() == entries


def test_a_heartbeat_of_somebody_else_says_stop(world: World) -> None:
    packet = world.claimed_run()
    (beat,) = leases.heartbeat(world.caller, uuid4(), [(packet.run.id, packet.fence)])
    assert beat.directive is Directive.STOP and beat.reason == "taken_over"


def test_a_lapse_happens_once_and_the_next_owner_has_a_higher_fence(world: World, clock: Clock) -> None:
    packet = world.claimed_run(seconds=5)
    assert leases.lapse(packet.run.id) is False
    clock.shift(6)
    assert packet.run.id in leases.due(10_000)
    assert [leases.lapse(packet.run.id), leases.lapse(packet.run.id)] == [True, False]
    head = world.head(packet.run.id)
    assert head.status == "waking" and head.fence_count > packet.fence.count
    assert not Lease.objects.of(world.tenant).get(pk=packet.run.id).active


@pytest.mark.postgres_only
def test_who_was_slower_than_others_at_all_that_they_had_read_is_given_what_is_still_ready(world: World) -> None:
    for _ in range(leases.LOOKED_AT + 3):
        world.start_run()
    others = replace(world.offer("1"), limit=leases.LOOKED_AT)
    taken = []
    mine = between_reading_and_writing(
        lambda: taken.extend(leases.claim(world.caller, others)), lambda: leases.claim(world.caller, world.offer("1"))
    )
    assert len(taken) == leases.LOOKED_AT and len(mine) == 1
    assert mine[0].run.id not in {packet.run.id for packet in taken}


def test_a_claimed_and_lapsed_run_verifies(world: World, clock: Clock) -> None:
    packet = world.claimed_run(seconds=5)
    clock.shift(6)
    leases.lapse(packet.run.id)
    report = verify.run(packet.run.id)
    assert report.faults == [] and report.rows > 5


def _claim_again(world: World, run_id: UUID) -> Fence:
    """Bring the run round through a wake and claim it."""
    from ledger.engine import wakes

    wakes.run(run_id)
    return world.claim(seconds=5).fence


def test_a_run_that_kills_every_worker_is_blocked_after_the_third_claim(world: World, clock: Clock) -> None:
    run_id = world.start_run()
    world.claim(seconds=5)
    for _ in range(2):
        clock.shift(6)
        leases.lapse(run_id)
        assert world.head(run_id).status == "waking"
        _claim_again(world, run_id)
    clock.shift(6)
    leases.lapse(run_id)
    assert world.head(run_id).status == "blocked"
    assert Handoff.objects.of(world.tenant).get(run_id=run_id).reason == "poisoned"


def test_a_run_that_is_given_back_again_and_again_comes_round_ever_more_slowly(world: World, clock: Clock) -> None:
    run_id = world.start_run()
    fence = world.claim().fence
    pauses = []
    for _ in range(4):
        leases.release(world.caller, run_id, fence)
        wake = Wake.objects.of(world.tenant).get(run_id=run_id, state="queued")
        pauses.append(round((wake.due_at - wake.opened_at).total_seconds()))
        clock.shift(pauses[-1] + 1)
        fence = _claim_again(world, run_id)
    assert pauses == [0, 1, 3, 7]


def test_a_worker_is_known_by_its_name_and_code_from_its_first_claim(world: World) -> None:
    worker = uuid4()
    world.start_run()
    world.claim("1", worker=worker)
    row = Worker.objects.of(world.tenant).get(pk=worker)
    assert (row.name, row.code_digest, row.offers) == ("worker", "digest", {"refund": ["1"]})


def test_a_clearance_past_its_time_is_claimed_by_nobody_and_the_run_wakes_again(world: World, clock: Clock) -> None:
    run_id = world.start_run()
    clock.shift(CLEARANCE_GOOD_FOR.total_seconds())
    assert leases.claim(world.caller, world.offer("1")) == []
    assert world.head(run_id).status == "waking"
    assert Clearance.objects.of(world.tenant).get(run_id=run_id).state == "stale"
    assert verify.run(run_id).faults == []


@pytest.mark.postgres_only
def test_a_clearance_that_ends_while_it_is_claimed_is_claimed_by_nobody(world: World, clock: Clock) -> None:
    run_id = world.start_run()
    ended = CLEARANCE_GOOD_FOR.total_seconds()
    taken = between_reading_and_writing(
        lambda: clock.shift(ended), lambda: leases.claim(world.caller, world.offer("1"))
    )
    assert taken == [] and world.head(run_id).status == "waking", "who looks again sends it back"
