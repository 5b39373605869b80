"""A call whose outcome is unknown: the run waits for the outcome and for nothing else, and nothing is sent again."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from ledger.domain.commits import Next, NextKind
from ledger.domain.effects import LookAnswer, Settled, SettleSpec
from ledger.domain.waits import MemberKind, MemberSpec, OnDeadline, SetMode, WaitSpec
from ledger.engine import wakes
from ledger.models import Handoff, Permit, WaitMember
from ledger.services import effects, facts, leases, waits
from ledger.services.effects import Looked
from tests.clock import Clock
from tests.engine.waking import claim, commit, last_wait, pay, wake
from tests.shop import Shop, register
from tests.world import World


def lost_call(world: World, shop: Shop, clock: Clock) -> UUID:
    """A run whose worker died after it was permitted to call."""
    register(world, shop, "payments")
    world.policy(({"tool": "*", "verdict": "allow"},))
    run_id = commit(world, world.claimed_run(), Next(NextKind.GIVE_BACK, "issue"), pay("payments"))
    assert wake(world, run_id).decision == "resume"
    packet = claim(world, run_id)
    effects.permit(world.caller, world.effect(run_id).pk, packet.fence)
    clock.shift(61)
    assert leases.lapse(run_id)
    assert world.effect(run_id).state == "unknown" and world.head(run_id).status == "waking"
    return run_id


def look(world: World, run_id: UUID, answer: LookAnswer) -> None:
    effect = world.effect(run_id)
    effects.look(effect.pk, Looked(answer, facts.read().now, effect.attempt, "refund-1"))


def test_an_unknown_outcome_is_waited_for_and_the_run_goes_on_when_it_is_known(
    world: World, shop: Shop, clock: Clock
) -> None:
    run_id = lost_call(world, shop, clock)
    assert wake(world, run_id).decision == "reconcile"
    assert last_wait(world, run_id).internal == "reconcile"
    look(world, run_id, LookAnswer.APPLIED)
    member = WaitMember.objects.of(world.tenant).get(run_id=run_id)
    assert (member.state, member.outcome) == ("met", "committed")
    assert wake(world, run_id).decision == "resume"
    assert Permit.objects.of(world.tenant).filter(run_id=run_id).count() == 1


def test_an_outcome_that_comes_while_the_wake_is_queued_needs_no_wait(world: World, shop: Shop, clock: Clock) -> None:
    run_id = lost_call(world, shop, clock)
    look(world, run_id, LookAnswer.APPLIED)
    assert wake(world, run_id).decision == "resume"


@pytest.mark.parametrize(("late_by", "status"), [(-60, "ready"), (0, "cancelled")], ids=["in time", "too late"])
def test_an_outcome_after_the_deadline_is_recorded_and_the_deadlines_action_holds_though_no_sweep_ran(
    world: World, shop: Shop, clock: Clock, late_by: int, status: str
) -> None:
    register(world, shop, "payments")
    world.policy(({"tool": "*", "verdict": "allow"},))
    run_id = commit(world, world.claimed_run(), Next(NextKind.GIVE_BACK, "issue"), pay("payments"))
    assert wake(world, run_id).decision == "resume"
    packet = claim(world, run_id)
    effect = world.effect(run_id)
    effects.permit(world.caller, effect.pk, packet.fence)
    effects.settle(world.caller, effect.pk, SettleSpec(1, Settled.ACCEPTED, reference="job-1"), packet.fence)
    outcome = MemberSpec(MemberKind.EFFECT, effect="pay")
    wait = WaitSpec(SetMode.ANY, (outcome,), timedelta(hours=1), OnDeadline.CANCEL)
    commit(world, packet, Next(NextKind.WAIT, "issue", wait))
    clock.shift(3_600 + late_by)
    look(world, run_id, LookAnswer.APPLIED)
    assert world.effect(run_id).state == "committed"
    wakes.run(run_id)
    assert world.head(run_id).status == status


def test_an_outcome_that_never_comes_goes_to_a_person_at_the_deadline(world: World, shop: Shop, clock: Clock) -> None:
    run_id = lost_call(world, shop, clock)
    assert wakes.run(run_id) == "reconcile"
    clock.shift(24 * 3_600 + 1)
    assert waits.expire_due(run_id)
    # The call is still unknown, and the deadline's action outweighs waiting for it once more.
    assert wake(world, run_id).decision == "hand_off"
    assert Handoff.objects.of(world.tenant).get(run_id=run_id).reason == "deadline:unreconciled"


@pytest.mark.parametrize("answer", [LookAnswer.IN_PROGRESS, LookAnswer.CANNOT_TELL])
def test_an_answer_that_decides_nothing_leaves_the_run_waiting(
    world: World, shop: Shop, clock: Clock, answer: LookAnswer
) -> None:
    run_id = lost_call(world, shop, clock)
    wakes.run(run_id)
    look(world, run_id, answer)
    assert world.head(run_id).status == "waiting"
