"""A target that stays silent isn't asked for a while, by nobody of this process: proposals, permits, look-ups and wakes share what they know."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import pytest

from ledger.domain.commits import Next, NextKind
from ledger.domain.effects import LookAnswer
from ledger.domain.errors import LedgerError
from ledger.engine import proposals, reconcile
from ledger.models import EffectReport
from ledger.services import effects, leases, targets
from ledger.targets.breakers import BREAKERS, SILENCES
from tests.clock import Clock
from tests.engine.waking import check, claim, commit, pay, wake
from tests.services.issuing import ANYTHING
from tests.shop import Shop, open_shop, register
from tests.world import World


@pytest.fixture
def shop(world: World, shop: Shop) -> Shop:
    """The world's target `payments`, on which its transitions may act."""
    register(world, shop, "payments")
    world.policy(ANYTHING)
    return shop


@pytest.fixture
def other(world: World) -> Iterator[Shop]:
    """Another target, `wires`."""
    with open_shop() as opened:
        register(world, opened, "wires")
        yield opened


def target_of(world: World) -> UUID:
    return targets.of_tenant(world.tenant.pk)["payments"].id


def silenced(world: World, shop: Shop) -> None:
    """Three proposals in a row went without an answer."""
    shop.hangs_up = True
    for _ in range(SILENCES):
        refused(world)


def going_on(world: World, target: str = "payments") -> UUID:
    """A run that is to be woken, with an effect on the order."""
    return commit(world, world.claimed_run(), Next(NextKind.GO_ON, "issue"), pay(target))


def refused(world: World) -> None:
    with pytest.raises(LedgerError, match="target-unreachable") as refusal:
        going_on(world)
    assert refusal.value.status == 409 and "again" in refusal.value.remedy


def permitted(world: World) -> UUID:
    """An effect on the order whose call is out."""
    run_id = going_on(world)
    assert wake(world, run_id).decision == "resume"
    packet = claim(world, run_id)
    effect = world.effect(run_id)
    proposals.permit(world.caller, effect.pk, packet.fence)
    return effect.pk


def lost(world: World, clock: Clock) -> UUID:
    """The same, and nobody knows what became of it."""
    effect_id = permitted(world)
    clock.shift(120)
    assert leases.lapse(effects.get(None, effect_id).row.run_id)
    return effect_id


def last_cause(effect_id: UUID) -> str:
    return effects.get(None, effect_id).reports[-1].cause


def test_a_proposal_waits_for_no_target_that_stayed_silent(world: World, shop: Shop, other: Shop) -> None:
    silenced(world, shop)
    asked = shop.asked
    refused(world)
    assert shop.asked == asked, "refused at once, without a question"
    assert going_on(world, "wires"), "other targets are asked as ever"
    shop.hangs_up = False
    BREAKERS.answered(target_of(world))
    assert going_on(world)


def test_what_is_recorded_is_answered_while_its_target_is_silent(world: World, shop: Shop) -> None:
    packet = world.claimed_run()
    spec = pay("payments")
    first = proposals.propose(world.caller, packet.run.id, packet.fence, 1, spec, "once")
    silenced(world, shop)
    again = proposals.propose(world.caller, packet.run.id, packet.fence, 1, spec, "once")
    assert (again.effect.id, again.new) == (first.effect.id, False)


def test_a_permit_that_needs_a_look_is_refused_at_once_and_the_run_stays_held(
    world: World, shop: Shop, clock: Clock
) -> None:
    run_id = going_on(world)
    assert wake(world, run_id).decision == "resume"
    clock.shift(250)
    packet = claim(world, run_id)
    clock.shift(55)
    silenced(world, shop)
    asked, effect = shop.asked, world.effect(run_id)
    with pytest.raises(LedgerError, match="target-unreachable"):
        proposals.permit(world.caller, effect.pk, packet.fence)
    assert shop.asked == asked and world.head(run_id).status == "running"
    assert world.effect(run_id).state == "proposed"


def test_a_look_up_at_a_silent_target_can_not_tell_until_a_person_asks(world: World, shop: Shop, clock: Clock) -> None:
    effect_id = lost(world, clock)
    shop.hangs_up = True
    for _ in range(SILENCES):
        assert reconcile.reconcile(effect_id) == LookAnswer.CANNOT_TELL
    assert last_cause(effect_id) == "no-reply"
    asked = shop.asked
    assert reconcile.reconcile(effect_id) == LookAnswer.CANNOT_TELL
    assert (shop.asked, last_cause(effect_id)) == (asked, "breaker-open")
    shop.hangs_up, shop.order = False, {"refunds": []}
    assert reconcile.reconcile(effect_id, actor=f"person:{world.charlie.pk}") == LookAnswer.ABSENT
    assert shop.asked == asked + 1, "whoever asks by hand is answered by the target"
    assert EffectReport.objects.of(world.tenant).filter(effect=effect_id, cause="breaker-open").count() == 1
    second = lost(world, clock)
    assert reconcile.reconcile(second) == LookAnswer.ABSENT, "an answer ends the silence"


def test_a_wake_knows_of_the_silence_that_a_proposal_met(world: World, shop: Shop) -> None:
    run_id = going_on(world)
    silenced(world, shop)
    asked = shop.asked
    decision = wake(world, run_id)
    assert (decision.decision, check(world, decision, "target").reason) == ("retry_later", "breaker-open")
    assert shop.asked == asked
