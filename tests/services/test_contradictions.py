"""Evidence against a recorded outcome: nothing goes on over it, one person is asked once, and their word ends it."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID, uuid4

import pytest
from django.db import IntegrityError, transaction

from ledger.domain.commits import Next, NextKind
from ledger.domain.effects import EffectState, LookAnswer, ProposalSpec, Settled, SettleSpec
from ledger.domain.errors import LedgerError
from ledger.domain.handoffs import Outcome
from ledger.domain.identity import Caller
from ledger.domain.runs import Status
from ledger.engine import reconcile, sweep, wakes
from ledger.models import Effect, Handoff
from ledger.services import effects, handoffs, leases, verify, waits
from ledger.services.effects import Looked
from ledger.services.packets import Packet
from tests.clock import Clock
from tests.documents import REQUEST
from tests.services.issuing import DONE, PAY, issuing, lapse, opened, paying
from tests.world import World

WIRE = ProposalSpec("wire", "wires.send", "wires", "", REQUEST)
REFUSED = SettleSpec(1, Settled.FAILED, "rejected")


@pytest.fixture
def open_world(world: World) -> World:
    return opened(world)


def operator(world: World) -> Caller:
    return replace(world.caller, person_id=world.charlie.pk, actor=f"person:{world.charlie.pk}")


def look(effect_id: UUID, answer: LookAnswer, clock: Clock) -> None:
    effects.look(effect_id, Looked(answer, clock.now(), 1, reference="rf_1"))


def row(world: World, effect_id: UUID) -> Effect:
    found: Effect = Effect.objects.of(world.tenant).get(pk=effect_id)
    return found


def handed(world: World, run_id: UUID) -> list[tuple[str, str, bool]]:
    rows = Handoff.objects.of(world.tenant).filter(run_id=run_id).order_by("opened_at", "pk")
    return list(rows.values_list("reason", "state", "blocks_run"))


def judge(world: World, effect_id: UUID, outcome: EffectState, cause: str = "") -> None:
    read = effects.read_now(effect_id)
    effects.verdict(operator(world), effect_id, outcome, cause, "seen in the account", "rf_1", read=read)


def disputed(world: World, clock: Clock) -> tuple[Packet, UUID]:
    """A payment that was reported done and that its target denies, under a worker that still has the run."""
    packet, effect, _ = paying(world)
    effects.settle(world.caller, effect.pk, DONE, packet.fence)
    look(effect.pk, LookAnswer.REFUSED, clock)
    assert world.head(packet.run.id).status == Status.RUNNING and row(world, effect.pk).disputed
    return packet, effect.pk


# While a worker has the run --------------------------------------------------------------------


def test_no_run_ends_over_a_disputed_outcome(open_world: World, clock: Clock) -> None:
    packet, _ = disputed(open_world, clock)
    for kind in (NextKind.COMPLETE, NextKind.FAIL):
        with pytest.raises(LedgerError, match="effects-open"):
            open_world.commit(packet, Next(kind))


def test_a_run_that_goes_on_is_checked_first_and_handed_to_a_person(open_world: World, clock: Clock) -> None:
    packet, effect_id = disputed(open_world, clock)
    assert open_world.commit(packet, Next(NextKind.GO_ON, "think")).status == Status.WAKING
    assert str(wakes.run(packet.run.id)) == "hand_off", "though it is a call of an earlier transition by now"
    assert handed(open_world, packet.run.id) == [("dispute:unresolved", "open", True)]
    assert Handoff.objects.of(open_world.tenant).get(run_id=packet.run.id).effect_id == effect_id


@pytest.mark.parametrize("ends", ["release", "lapse"])
def test_a_contradiction_under_a_holder_blocks_the_run_once_it_is_free(
    open_world: World, clock: Clock, ends: str
) -> None:
    packet, _ = disputed(open_world, clock)
    run_id = packet.run.id
    assert handed(open_world, run_id) == [("effect-disputed", "open", False)]
    if ends == "release":
        leases.release(open_world.caller, run_id, packet.fence)
    else:
        lapse(open_world, clock, run_id)
    assert str(wakes.run(run_id)) == "hand_off" and open_world.head(run_id).status == Status.BLOCKED
    assert handed(open_world, run_id) == [("dispute:unresolved", "open", True)], "the same one, blocking from here on"
    handoff = Handoff.objects.of(open_world.tenant).get(run_id=run_id)
    with pytest.raises(LedgerError, match="effects-open"):
        handoffs.close(operator(open_world), handoff.pk, Outcome.WAKE, "never mind")
    assert verify.run(run_id).intact


@pytest.mark.parametrize(("outcome", "cause"), [(EffectState.COMMITTED, ""), (EffectState.FAILED, "rejected")])
def test_a_person_says_which_account_holds_and_the_run_goes_on(
    open_world: World, clock: Clock, outcome: EffectState, cause: str
) -> None:
    packet, effect_id = disputed(open_world, clock)
    run_id = packet.run.id
    leases.release(open_world.caller, run_id, packet.fence)
    wakes.run(run_id)
    if outcome is EffectState.FAILED:
        with pytest.raises(LedgerError, match="wrong-state"):
            judge(open_world, effect_id, outcome, cause)
        clock.shift(90)
    judge(open_world, effect_id, outcome, cause)
    found = row(open_world, effect_id)
    assert (found.state, found.disputed, found.held) == ("committed", False, str(outcome)), "what was recorded stays"
    assert handed(open_world, run_id) == [("dispute:unresolved", "withdrawn", True)]
    assert str(wakes.run(run_id)) == "resume"
    assert open_world.commit(open_world.claim(), Next(NextKind.COMPLETE)).status == Status.COMPLETED
    look(effect_id, LookAnswer.REFUSED, clock)
    assert row(open_world, effect_id).disputed is (outcome is EffectState.COMMITTED), (
        "agreeing with the finding isn't news"
    )
    assert verify.run(run_id).intact


# After the run's end ---------------------------------------------------------------------------


def ended(world: World, spec: ProposalSpec) -> tuple[Packet, UUID]:
    """A run that failed on a call which its target refused."""
    packet = issuing(world, spec)
    effect = world.effect(packet.run.id, spec.name)
    effects.permit(world.caller, effect.pk, packet.fence)
    effects.settle(world.caller, effect.pk, REFUSED, packet.fence)
    world.commit(packet, Next(NextKind.FAIL))
    return packet, effect.pk


def contradicted(world: World, spec: ProposalSpec) -> tuple[UUID, UUID]:
    packet, effect_id = ended(world, spec)
    said = SettleSpec(1, Settled.COMMITTED, reference="rf_1")
    assert effects.settle(world.caller, effect_id, said, packet.fence).counted
    assert row(world, effect_id).state == "unknown"
    return packet.run.id, effect_id


def test_a_person_learns_that_a_run_ended_on_a_wrong_outcome(open_world: World, clock: Clock) -> None:
    run_id, effect_id = contradicted(open_world, PAY)
    assert handed(open_world, run_id) == [("effect-contradicted", "open", False)]
    look(effect_id, LookAnswer.APPLIED, clock)
    assert row(open_world, effect_id).state == "committed"
    assert handed(open_world, run_id) == [("effect-contradicted", "open", False)], "it was done, and the run failed"
    handoff = Handoff.objects.of(open_world.tenant).get(run_id=run_id)
    handoffs.close(operator(open_world), handoff.pk, Outcome.WAKE, "told the customer")
    assert open_world.head(run_id).status == Status.FAILED and verify.run(run_id).intact


def test_nobody_is_asked_any_more_where_the_recorded_outcome_was_right(open_world: World, clock: Clock) -> None:
    run_id, effect_id = contradicted(open_world, PAY)
    look(effect_id, LookAnswer.REFUSED, clock)
    assert handed(open_world, run_id) == [("effect-contradicted", "withdrawn", False)]


def test_an_effect_of_an_ended_run_has_one_handoff_that_ends_with_the_doubt(open_world: World, clock: Clock) -> None:
    run_id, effect_id = contradicted(open_world, WIRE)
    for _ in range(4):
        reconcile.reconcile(effect_id)
    [(reason, state, blocks)] = handed(open_world, run_id)
    assert (reason, state, blocks) == ("effect-contradicted", "open", False)
    handoff = Handoff.objects.of(open_world.tenant).get(run_id=run_id)
    with pytest.raises(LedgerError, match="effects-open"):
        handoffs.close(operator(open_world), handoff.pk, Outcome.WAKE, "never mind")
    clock.shift(6 * 3_600 + 1)
    sweep.sweep()
    assert len(handed(open_world, run_id)) == 1
    judge(open_world, effect_id, EffectState.COMMITTED)
    assert handed(open_world, run_id) == [("effect-contradicted", "withdrawn", False)], "the person knows"
    assert verify.run(run_id).intact


def test_a_second_open_handoff_of_an_effect_is_refused_by_the_database(open_world: World) -> None:
    run_id, _ = contradicted(open_world, WIRE)
    second = Handoff.objects.of(open_world.tenant).get(run_id=run_id)
    second.pk = uuid4()
    with pytest.raises(IntegrityError), transaction.atomic():
        second.save(force_insert=True)


# Outcomes that come after the time to find out --------------------------------------------------


def test_a_run_whose_outcome_comes_after_its_deadline_goes_on_by_itself(open_world: World, clock: Clock) -> None:
    packet = issuing(open_world, PAY, WIRE)
    run_id = packet.run.id
    paid, wire = (open_world.effect(run_id, name) for name in ("pay", "wire"))
    for effect in (paid, wire):
        effects.permit(open_world.caller, effect.pk, packet.fence)
    lapse(open_world, clock, run_id)
    assert str(wakes.run(run_id)) == "reconcile"
    clock.shift(24 * 3_600 + 1)
    assert waits.expire_due(run_id)
    assert str(wakes.run(run_id)) == "hand_off"
    assert handed(open_world, run_id) == [("deadline:unreconciled", "open", True)]
    look(paid.pk, LookAnswer.APPLIED, clock)
    assert open_world.head(run_id).status == Status.BLOCKED, "the other is still unknown"
    judge(open_world, wire.pk, EffectState.FAILED, "rejected")
    assert open_world.head(run_id).status == Status.WAKING
    assert handed(open_world, run_id) == [("deadline:unreconciled", "withdrawn", True)]
    assert str(wakes.run(run_id)) == "resume" and verify.run(run_id).intact
