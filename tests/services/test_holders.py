"""A fence is no secret: journals show it. Only the agent that claimed a run writes under it, and no refusal tells the present one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest

from ledger.domain.commits import Next, NextKind
from ledger.domain.effects import EffectState, ProposalSpec, Settled, SettleSpec
from ledger.domain.errors import LedgerError
from ledger.domain.identity import Caller
from ledger.domain.runs import Fence
from ledger.models import Effect, EffectReport, JournalEntry, Lease
from ledger.services import checkpoints, effects, identity, keys, leases
from ledger.services.checkpoints import CommitSpec
from ledger.services.packets import Packet
from tests.clock import Clock
from tests.documents import REQUEST, STATE
from tests.services.issuing import DONE, PAY, issuing, lapse, opened, paying, reclaim, state
from tests.world import ANYTHING, EVERYTHING, World

BLIND = ProposalSpec("wire", "wires.send", "wires", "", REQUEST)


@pytest.fixture
def open_world(world: World) -> World:
    return opened(world)


def other_agent(world: World) -> Caller:
    """Another agent of the same tenant, with every scope that an agent can have."""
    agent_id = identity.add_agent(world.admin, f"other-{uuid4().hex[:8]}", world.bob)
    issued = identity.issue_key(world.admin, "other", EVERYTHING, agent_id=agent_id, **ANYTHING)
    return keys.authenticate(f"Bearer {issued.secret}")


def second_key(world: World) -> Caller:
    """Another key of the agent that holds the run."""
    issued = identity.issue_key(world.admin, "rotated", EVERYTHING, agent_id=world.agent_id, **ANYTHING)
    return keys.authenticate(f"Bearer {issued.secret}")


def completing(fence: Fence, seq: int, settle: tuple[tuple[UUID, SettleSpec], ...] = ()) -> CommitSpec:
    return CommitSpec(
        fence, seq, "code-1", dict(STATE), Next(NextKind.COMPLETE), str(uuid4()), {"end": 1}, settle=settle
    )


def entries(world: World, run_id: UUID) -> int:
    return JournalEntry.objects.of(world.tenant).filter(stream_id=run_id).count()


def test_another_agent_of_the_tenant_writes_nothing_under_the_holders_fence(open_world: World) -> None:
    packet = issuing(open_world, PAY)
    effect, seq = open_world.effect(packet.run.id), packet.checkpoint["seq"]
    stranger, fence, run_id = other_agent(open_world), packet.fence, packet.run.id
    acts: dict[str, Callable[[], Any]] = {
        "permit": lambda: effects.permit(stranger, effect.pk, fence),
        "withdraw": lambda: effects.withdraw(stranger, effect.pk, fence),
        "propose": lambda: effects.propose(stranger, run_id, fence, seq, BLIND, None, str(uuid4())),
        "commit": lambda: checkpoints.commit_transition(stranger, run_id, completing(fence, seq)),
        "release": lambda: leases.release(stranger, run_id, fence),
    }
    before = entries(open_world, run_id)
    for name, act in acts.items():
        with pytest.raises(LedgerError) as refusal:
            act()
        assert refusal.value.code == "forbidden", name
    assert entries(open_world, run_id) == before
    assert state(open_world, effect) == EffectState.PROPOSED


def test_another_agent_learns_nothing_of_the_fence_by_guessing_it(open_world: World) -> None:
    packet = issuing(open_world, PAY)
    effect, seq = open_world.effect(packet.run.id), packet.checkpoint["seq"]
    stranger, run_id = other_agent(open_world), packet.run.id
    answers = set()
    for fence in (packet.fence, Fence(0, 1), Fence(0, packet.fence.count + 1), Fence(7, 7)):
        acts: list[Callable[[], Any]] = [
            lambda fence=fence: effects.permit(stranger, effect.pk, fence),
            lambda fence=fence: effects.withdraw(stranger, effect.pk, fence),
            lambda fence=fence: effects.propose(stranger, run_id, fence, seq, BLIND, None, str(uuid4())),
            lambda fence=fence: checkpoints.commit_transition(stranger, run_id, completing(fence, seq)),
            lambda fence=fence: leases.release(stranger, run_id, fence),
        ]
        for act in acts:
            with pytest.raises(LedgerError) as refusal:
                act()
            answers.add((refusal.value.code, refusal.value.reason, refusal.value.remedy, str(refusal.value.facts)))
    assert len(answers) == 1


def test_a_stale_worker_is_told_its_own_fence_and_not_the_present_one(open_world: World) -> None:
    packet = issuing(open_world, PAY)
    leases.release(open_world.caller, packet.run.id, packet.fence)
    present = reclaim(open_world, packet.run.id).fence
    assert str(present) != str(packet.fence)
    with pytest.raises(LedgerError) as refusal:
        leases.release(open_world.caller, packet.run.id, packet.fence)
    told = refusal.value
    assert told.code == "stale-fence" and told.facts == {}
    assert str(packet.fence) in told.reason and str(present) not in told.reason + told.remedy


def test_what_another_agent_says_of_a_call_in_flight_is_evidence_and_decides_nothing(open_world: World) -> None:
    packet, effect, _ = paying(open_world)
    stranger = other_agent(open_world)
    assert not effects.settle(stranger, effect.pk, DONE, packet.fence).counted
    spec = completing(packet.fence, packet.checkpoint["seq"], ((effect.pk, DONE),))
    with pytest.raises(LedgerError, match="forbidden"):
        checkpoints.commit_transition(stranger, packet.run.id, spec)
    assert state(open_world, effect) == EffectState.IN_FLIGHT


def test_another_key_of_the_same_agent_goes_on_for_a_process_whose_key_was_rotated(open_world: World) -> None:
    packet, effect, _ = paying(open_world)
    assert effects.settle(second_key(open_world), effect.pk, DONE, packet.fence).counted
    assert state(open_world, effect) == EffectState.COMMITTED


@pytest.mark.parametrize("claims", ["another agent", "an attempt that never was", "a fence that never was"])
def test_a_receipt_counts_only_from_whoever_had_the_permit(open_world: World, clock: Clock, claims: str) -> None:
    packet = issuing(open_world, BLIND)
    effect = open_world.effect(packet.run.id, "wire")
    effects.permit(open_world.caller, effect.pk, packet.fence)
    lapse(open_world, clock, packet.run.id)
    caller = other_agent(open_world) if claims == "another agent" else open_world.caller
    attempt = 2 if claims == "an attempt that never was" else 1
    fence = Fence(0, 40) if claims == "a fence that never was" else packet.fence
    said = effects.settle(caller, effect.pk, SettleSpec(attempt, Settled.COMMITTED, reference="w-1"), fence)
    assert not said.counted
    assert state(open_world, effect) == EffectState.UNKNOWN
    assert EffectReport.objects.of(open_world.tenant).filter(effect=effect, kind="late").count() == 1
    assert effects.settle(open_world.caller, effect.pk, DONE, packet.fence).counted
    assert state(open_world, effect) == EffectState.COMMITTED


def test_a_failure_is_reopened_only_by_whoever_had_the_permit(open_world: World) -> None:
    packet, effect, _ = paying(open_world)
    effects.settle(open_world.caller, effect.pk, SettleSpec(1, Settled.FAILED, "throttled"), packet.fence)
    leases.release(open_world.caller, packet.run.id, packet.fence)
    reclaim(open_world, packet.run.id)
    assert not effects.settle(other_agent(open_world), effect.pk, DONE, packet.fence).counted
    assert state(open_world, effect) == EffectState.FAILED


def test_a_report_that_a_stranger_sent_first_doesn_t_make_the_holders_a_repeat(open_world: World) -> None:
    packet, effect, _ = paying(open_world)
    assert not effects.settle(other_agent(open_world), effect.pk, DONE, packet.fence).counted
    assert not effects.settle(open_world.caller, effect.pk, DONE, Fence(0, 40)).counted
    assert effects.settle(open_world.caller, effect.pk, DONE, packet.fence).counted
    assert state(open_world, effect) == EffectState.COMMITTED


def test_another_agent_keeps_no_lease_alive(open_world: World) -> None:
    packet = issuing(open_world, PAY)
    lease = Lease.objects.of(open_world.tenant).get(run_id=packet.run.id)
    held = [(packet.run.id, packet.fence)]
    (beat,) = leases.heartbeat(other_agent(open_world), lease.worker_id, held)
    assert (beat.directive, beat.lease_expires_at) == ("stop", None)
    assert Lease.objects.of(open_world.tenant).get(run_id=packet.run.id).expires_at == lease.expires_at
    assert leases.heartbeat(second_key(open_world), lease.worker_id, held)[0].directive == "go_on"


NEVER = SettleSpec(1, Settled.FAILED, "not_dispatched")


def accepted_by_another(world: World, clock: Clock) -> tuple[Packet, UUID]:
    """A call that its target accepted from a worker that is gone; the run in the hands of the next."""
    packet, effect, _ = paying(world)
    accepted = SettleSpec(1, Settled.ACCEPTED, reference="rf_1", ask_after=3_600)
    effects.settle(world.caller, effect.pk, accepted, packet.fence)
    lapse(world, clock, packet.run.id)
    return reclaim(world, packet.run.id), effect.pk


def giving_back(packet: Packet, *settle: tuple[UUID, SettleSpec]) -> CommitSpec:
    following, seq = Next(NextKind.GIVE_BACK, "issue"), packet.checkpoint["seq"]
    return CommitSpec(
        packet.fence, seq, "code-1", dict(STATE), following, str(uuid4()), {"back": 1}, settle=tuple(settle)
    )


@pytest.mark.parametrize("door", ["settle", "commit"])
def test_at_no_door_does_the_next_holder_speak_for_a_call_that_it_had_no_permit_for(
    open_world: World, clock: Clock, door: str
) -> None:
    packet, effect_id = accepted_by_another(open_world, clock)
    if door == "settle":
        assert not effects.settle(open_world.caller, effect_id, NEVER, packet.fence).counted
    else:
        spec = giving_back(packet, (effect_id, NEVER))
        checkpoints.commit_transition(open_world.caller, packet.run.id, spec)
    row = Effect.objects.of(open_world.tenant).get(pk=effect_id)
    assert (row.state, row.accepted) == (EffectState.IN_FLIGHT, True), "the reconciler still owns it"
    last = EffectReport.objects.of(open_world.tenant).filter(effect_id=effect_id).latest("ordinal")
    assert (last.answer, last.cause, last.counted) == ("failed", "not_dispatched", False)


def test_a_settle_that_is_repeated_in_a_commit_is_written_once(open_world: World) -> None:
    packet, effect, _ = paying(open_world)
    assert effects.settle(open_world.caller, effect.pk, DONE, packet.fence).counted
    checkpoints.commit_transition(open_world.caller, packet.run.id, giving_back(packet, (effect.pk, DONE)))
    assert EffectReport.objects.of(open_world.tenant).filter(effect=effect, kind="settle").count() == 1
    assert state(open_world, effect) == EffectState.COMMITTED


def test_two_calls_settled_in_one_commit_are_each_judged_by_their_own_permit(open_world: World) -> None:
    packet = issuing(open_world, PAY, BLIND)
    paid, wire = (open_world.effect(packet.run.id, name) for name in ("pay", "wire"))
    effects.permit(open_world.caller, paid.pk, packet.fence)
    spec = giving_back(packet, (paid.pk, DONE), (wire.pk, DONE))
    with pytest.raises(LedgerError, match="wrong-state"):
        checkpoints.commit_transition(open_world.caller, packet.run.id, spec)
    assert state(open_world, paid) == EffectState.IN_FLIGHT, "all of the commit or nothing"
