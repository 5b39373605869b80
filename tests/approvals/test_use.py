"""From a person's approval to the permit of another process: looked at again at wake and once more when the permit is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ledger.domain.errors import LedgerError
from ledger.engine import wakes
from ledger.models import Permit
from ledger.services import effects, identity, verify
from ledger.services.packets import Packet
from tests.approvals.asking import Asked, asked, rule
from tests.clock import Clock
from tests.world import World


def refused(act: Callable[[], Any]) -> str:
    with pytest.raises(LedgerError) as refusal:
        act()
    return refusal.value.code


def woken(world: World, run: Asked) -> Packet:
    """The run in the hands of a new worker, after its wake."""
    wakes.run(run.run_id)
    assert world.head(run.run_id).status == "ready"
    return world.claim()


def permits(world: World, run: Asked) -> int:
    return Permit.objects.of(world.tenant).filter(effect_id=run.effect_id).count()


def test_the_approved_call_is_permitted_once_for_however_many_ask(world: World) -> None:
    run = asked(world)
    run.decide(world.alice)
    packet = woken(world, run)
    first = effects.permit(world.caller, run.effect_id, packet.fence)
    again = effects.permit(world.caller, run.effect_id, packet.fence)
    assert first.attempt == again.attempt == 1
    assert permits(world, run) == 1
    assert [grant.state for grant in run.grants] == ["used"]
    assert not verify.run(run.run_id).faults


@pytest.mark.parametrize("loss", ["left the team", "was deactivated"])
def test_an_approver_who_lost_the_right_before_the_wake_makes_it_ask_again(world: World, loss: str) -> None:
    run = asked(world)
    run.decide(world.alice)
    if loss == "left the team":
        identity.remove_from_team(world.admin, world.approvers, world.alice)
    else:
        identity.deactivate_person(world.admin, world.alice)
    wakes.run(run.run_id)
    assert world.head(run.run_id).status == "waiting"
    assert (run.request.state, run.request.revision) == ("pending", 2)
    assert [grant.state for grant in run.grants] == ["voided"]
    run.decide(world.bob)
    packet = woken(world, run)
    assert effects.permit(world.caller, run.effect_id, packet.fence).attempt == 1


def test_an_approver_who_lost_the_right_before_the_permit_stops_it(world: World) -> None:
    run = asked(world)
    run.decide(world.alice)
    packet = woken(world, run)
    identity.remove_from_team(world.admin, world.approvers, world.alice)
    assert refused(lambda: effects.permit(world.caller, run.effect_id, packet.fence)) == "grant-void"
    assert permits(world, run) == 0
    assert world.head(run.run_id).status == "waking"
    wakes.run(run.run_id)
    assert (run.request.state, run.request.revision) == ("pending", 2)


def test_a_policy_that_denies_since_the_wake_stops_the_permit(world: World) -> None:
    run = asked(world)
    run.decide(world.alice)
    packet = woken(world, run)
    world.policy(({"tool": "payments.*", "verdict": "deny"},))
    assert refused(lambda: effects.permit(world.caller, run.effect_id, packet.fence)) == "policy-denies"
    assert permits(world, run) == 0


def test_use_by_is_looked_at_when_the_permit_is_asked_for_though_no_sweep_ran(world: World, clock: Clock) -> None:
    run = asked(world, rule(use_by=30))
    run.decide(world.alice)
    packet = woken(world, run)
    clock.shift(31)
    assert refused(lambda: effects.permit(world.caller, run.effect_id, packet.fence)) == "expired"
    assert permits(world, run) == 0


@pytest.mark.parametrize(("choice", "cause"), [("deny", "denied"), ("expire", "expired")])
def test_what_was_denied_or_expired_is_never_permitted_and_each_is_told_apart(
    world: World, clock: Clock, choice: str, cause: str
) -> None:
    from approvals.services import requests

    run = asked(world, rule(decide_by=30))
    if choice == "deny":
        run.decide(world.alice, "deny", "no")
    else:
        clock.shift(31)
        requests.expire_of(run.run_id)
    assert (run.effect.state, run.effect.cause, run.member.outcome) == ("withdrawn", cause, cause)
    wakes.run(run.run_id)
    head = world.head(run.run_id)
    if head.status == "ready":
        packet = world.claim()
        assert refused(lambda: effects.permit(world.caller, run.effect_id, packet.fence)) == "wrong-state"
    assert permits(world, run) == 0


def test_another_call_of_the_same_tool_is_asked_for_by_itself(world: World) -> None:
    first, second = asked(world), asked(world)
    first.decide(world.alice)
    assert first.request_id != second.request_id
    assert second.request.state == "pending" and not second.grants
    assert bytes(first.request.digest) != bytes(second.request.digest)
