"""Reconcile against the payment service as a real process; its own request log counts what was applied."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from ledger.domain.effects import EffectState, LookAnswer, Settled, SettleSpec
from ledger.domain.errors import LedgerError
from ledger.domain.runs import Status
from ledger.engine import proposals, sweep, wakes
from ledger.models import Handoff
from ledger.services import effects, targets, verify
from ledger.services.targets import TargetSpec
from tests.clock import Clock
from tests.documents import LOOKUP, OBSERVE
from tests.engine.scenes import LOST, Payments, evidence, proposal

KEYED, REPLAYED, BLIND = "payments", "notes", "wires"


def test_a_remote_job_that_outlives_its_worker_is_found_by_key_and_not_started_again(
    payments: Payments, clock: Clock
) -> None:
    packet, effect_id, given = payments.permitted()
    payments.pay(given)
    payments.lapse(clock, packet.run.id)
    assert payments.effect(effect_id).state == EffectState.UNKNOWN
    answer, effect = payments.look(effect_id)
    assert (answer, effect.state) == (LookAnswer.APPLIED, EffectState.COMMITTED)
    assert effect.reference.startswith("rf_")
    assert evidence(payments, effect_id)[0]["refunds"][0]["id"] == effect.reference
    packet = payments.reclaim(packet.run.id)
    with pytest.raises(LedgerError, match="wrong-state"):
        proposals.permit(payments.world.caller, effect_id, packet.fence)
    assert payments.counted(given.key) == (1, 1)
    assert verify.run(packet.run.id).faults == []


def test_absent_is_believed_only_after_the_horizon_and_then_retried_with_the_same_key(
    payments: Payments, clock: Clock
) -> None:
    packet, effect_id, given = payments.permitted()
    payments.lapse(clock, packet.run.id)
    clock.hold()
    early = given.answer_by - clock.now()
    clock.shift(early.total_seconds() - 1)
    answer, effect = payments.look(effect_id)
    assert (answer, effect.state) == (LookAnswer.ABSENT, EffectState.UNKNOWN)
    clock.shift(4)
    answer, effect = payments.look(effect_id)
    assert (answer, effect.state, effect.cause) == (LookAnswer.ABSENT, EffectState.FAILED, "confirmed_absent")
    packet = payments.reclaim(packet.run.id)
    again = proposals.permit(payments.world.caller, effect_id, packet.fence)
    assert (again.attempt, again.key) == (2, given.key)
    assert payments.pay(again).status == 201
    assert payments.counted(given.key) == (1, 1)


@pytest.mark.parametrize(
    ("fault", "answer", "state", "cause"),
    [
        ("outcome_refused", LookAnswer.REFUSED, EffectState.FAILED, "rejected"),
        ("outcome_pending", LookAnswer.IN_PROGRESS, EffectState.UNKNOWN, ""),
        ("outcome_other_amount", LookAnswer.DIFFERS, EffectState.UNKNOWN, ""),
        ("reset_mid_body", LookAnswer.APPLIED, EffectState.COMMITTED, ""),
        ("error_500_applied", LookAnswer.APPLIED, EffectState.COMMITTED, ""),
        ("truncated_body", LookAnswer.APPLIED, EffectState.COMMITTED, ""),
        ("wrong_reference", LookAnswer.APPLIED, EffectState.COMMITTED, ""),
        ("lying_200", LookAnswer.ABSENT, EffectState.FAILED, "confirmed_absent"),
        ("error_500_not_applied", LookAnswer.ABSENT, EffectState.FAILED, "confirmed_absent"),
    ],
)
def test_the_look_up_tells_what_the_service_did(
    payments: Payments, clock: Clock, fault: str, answer: LookAnswer, state: EffectState, cause: str
) -> None:
    packet, effect_id, given = payments.permitted()
    payments.caller.arm(fault)
    with suppress(*LOST):
        payments.pay(given)
    payments.lapse(clock, packet.run.id)
    found, effect = payments.look(effect_id)
    assert (found, effect.state, effect.cause) == (answer, state, cause)
    assert payments.counted(given.key)[0] == 1


def test_another_amount_goes_to_a_person_and_the_run_is_blocked(payments: Payments, clock: Clock) -> None:
    packet, effect_id, given = payments.permitted()
    payments.caller.arm("outcome_other_amount")
    payments.pay(given)
    payments.lapse(clock, packet.run.id)
    payments.look(effect_id)
    handoff = Handoff.objects.of(payments.world.tenant).get(run_id=packet.run.id)
    assert (handoff.reason, handoff.effect_id) == ("effect-differs", effect_id)
    assert payments.world.head(packet.run.id).status == Status.BLOCKED


def test_a_pending_refund_is_asked_about_again_until_it_is_settled(payments: Payments, clock: Clock) -> None:
    packet, effect_id, given = payments.permitted()
    payments.caller.arm("outcome_pending")
    payments.pay(given)
    payments.lapse(clock, packet.run.id)
    first = payments.look(effect_id)[1]
    second = payments.look(effect_id)[1]
    assert (first.looks, second.looks) == (1, 2) and second.state == EffectState.UNKNOWN
    payments.caller.control("settle", {"key": given.key, "status": "settled"})
    assert payments.look(effect_id)[1].state == EffectState.COMMITTED
    assert payments.counted(given.key) == (1, 1)


def test_a_conflict_in_progress_is_unknown_and_asked_later_by_reading(payments: Payments, clock: Clock) -> None:
    packet, effect_id, given = payments.permitted()
    payments.caller.arm("block_before_apply", method="POST")
    waiting = payments.sandbox.caller()
    waiting.connection.request("POST", "/refunds", given.request, {"Idempotency-Key": given.key})
    payments.caller.blocked()
    assert payments.pay(given).status == 409
    effects.settle(payments.world.caller, effect_id, SettleSpec(1, Settled.UNKNOWN), packet.fence)
    answer, effect = payments.look(effect_id)
    assert (answer, effect.state) == (LookAnswer.IN_PROGRESS, EffectState.UNKNOWN)
    with pytest.raises(LedgerError, match="wrong-state"):
        proposals.permit(payments.world.caller, effect_id, packet.fence)
    payments.caller.control("release", {"key": given.key})
    assert waiting.read().status == 201
    assert payments.look(effect_id)[1].state == EffectState.COMMITTED
    assert payments.counted(given.key)[1] == 1


def test_a_repeat_with_one_more_field_is_422_and_the_key_is_looked_up(payments: Payments) -> None:
    packet, effect_id, given = payments.permitted()
    assert payments.pay(given).status == 201
    more = payments.caller.refund(given.key, note="one more field")
    assert more.status in (400, 422)
    effects.settle(payments.world.caller, effect_id, SettleSpec(1, Settled.UNKNOWN), packet.fence)
    assert payments.effect(effect_id).state == EffectState.UNKNOWN
    assert payments.look(effect_id)[0] is LookAnswer.APPLIED
    assert payments.counted(given.key)[1] == 1


@pytest.mark.parametrize("fault", ["absent_first", "cannot_tell_first", "in_progress_first"])
def test_a_first_answer_that_misleads_is_asked_again(payments: Payments, clock: Clock, fault: str) -> None:
    packet, effect_id, given = payments.permitted()
    payments.pay(given)
    effects.settle(payments.world.caller, effect_id, SettleSpec(1, Settled.UNKNOWN), packet.fence)
    payments.caller.arm(fault)
    assert payments.look(effect_id)[1].state == EffectState.UNKNOWN
    assert payments.look(effect_id)[1].state == EffectState.COMMITTED
    assert payments.counted(given.key) == (1, 1)


def test_a_service_that_is_down_cannot_tell(payments: Payments, clock: Clock) -> None:
    packet, effect_id, given = payments.permitted()
    payments.pay(given)
    payments.lapse(clock, packet.run.id)
    payments.sandbox.hang_up()
    payments.sandbox.kill()
    try:
        answer, effect = payments.look(effect_id)
        assert (answer, effect.state) == (LookAnswer.CANNOT_TELL, EffectState.UNKNOWN)
        assert payments.reports(effect_id)[-1] == ("lookup", "cannot_tell", "not-connected", False)
    finally:
        payments.sandbox.start()


def test_a_key_that_the_target_forgot_is_found_by_reference_or_goes_to_a_person(
    payments: Payments, clock: Clock
) -> None:
    packet, effect_id, given = payments.permitted()
    reference = payments.pay(given).body["id"]
    effects.settle(payments.world.caller, effect_id, SettleSpec(1, Settled.UNKNOWN, reference=reference), packet.fence)
    payments.caller.control("forget", {"key": given.key})
    clock.shift(90_000)
    assert payments.look(effect_id)[0] is LookAnswer.APPLIED
    assert payments.counted(given.key) == (1, 1)


def test_a_key_that_the_target_may_have_forgotten_is_not_resent(payments: Payments, clock: Clock) -> None:
    packet, effect_id, given = payments.permitted()
    payments.pay(given)
    payments.caller.control("forget", {"key": given.key})
    payments.lapse(clock, packet.run.id)
    clock.shift(90_000)
    answer, effect = payments.look(effect_id)
    assert (answer, effect.state) == (LookAnswer.CANNOT_TELL, EffectState.UNKNOWN)
    assert payments.reports(effect_id)[-1][2] == "key-forgotten"
    assert payments.world.head(packet.run.id).status == Status.BLOCKED
    assert payments.counted(given.key) == (1, 1)


def test_a_target_without_a_lookup_goes_to_a_person_at_once(payments: Payments, clock: Clock) -> None:
    packet, effect_id, given = payments.permitted(proposal(BLIND))
    payments.pay(given, "/wires")
    payments.lapse(clock, packet.run.id)
    answer, effect = payments.look(effect_id)
    assert (answer, effect.state) == (LookAnswer.CANNOT_TELL, EffectState.UNKNOWN)
    assert payments.world.head(packet.run.id).status == Status.BLOCKED
    late = effects.settle(
        payments.world.caller, effect_id, SettleSpec(1, Settled.COMMITTED, reference="wi_1"), packet.fence
    )
    assert late.counted and payments.world.head(packet.run.id).status == Status.WAKING
    assert verify.run(packet.run.id).faults == []


def test_accepted_stays_in_flight_until_the_target_says_so(payments: Payments, clock: Clock) -> None:
    packet, effect_id, given = payments.permitted()
    payments.caller.arm("outcome_pending")
    reference = payments.pay(given).body["id"]
    accepted = SettleSpec(1, Settled.ACCEPTED, reference=reference, ask_after=1)
    effects.settle(payments.world.caller, effect_id, accepted, packet.fence)
    payments.lapse(clock, packet.run.id)
    assert payments.effect(effect_id).state == EffectState.IN_FLIGHT
    assert payments.look(effect_id)[0] is LookAnswer.IN_PROGRESS
    payments.caller.control("settle", {"key": given.key, "status": "settled"})
    assert payments.look(effect_id)[1].state == EffectState.COMMITTED


# Replay ----------------------------------------------------------------------------------------


def test_a_replay_is_recorded_before_it_is_sent_and_answers_the_first_result(payments: Payments, clock: Clock) -> None:
    packet, effect_id, given = payments.permitted(proposal(REPLAYED))
    payments.pay(given)
    payments.lapse(clock, packet.run.id)
    answer, effect = payments.look(effect_id)
    assert (answer, effect.state) == (LookAnswer.APPLIED, EffectState.COMMITTED)
    assert [kind for kind, *_ in payments.reports(effect_id)] == ["lapse", "replay", "lookup"]
    assert payments.counted(given.key) == (2, 1)


def test_a_replay_that_gets_no_answer_leaves_its_record_and_the_effect_unknown(
    payments: Payments, clock: Clock
) -> None:
    packet, effect_id, given = payments.permitted(proposal(REPLAYED))
    payments.lapse(clock, packet.run.id)
    payments.caller.arm("error_500_applied")
    answer, effect = payments.look(effect_id)
    assert (answer, effect.state) == (LookAnswer.CANNOT_TELL, EffectState.UNKNOWN)
    assert [kind for kind, *_ in payments.reports(effect_id)] == ["lapse", "replay", "lookup"]
    assert payments.look(effect_id)[1].state == EffectState.COMMITTED
    assert payments.counted(given.key)[1] == 1


def test_a_replay_that_is_not_sent_in_its_time_is_not_sent_at_all(
    payments: Payments, clock: Clock, settings: Any
) -> None:
    packet, effect_id, given = payments.permitted(proposal(REPLAYED))
    payments.lapse(clock, packet.run.id)
    settings.RESUMEAPP_SEND_BY_SECONDS = 0
    assert payments.look(effect_id)[0] is LookAnswer.CANNOT_TELL
    assert payments.reports(effect_id)[-1] == ("lookup", "cannot_tell", "send-by-passed", False)
    assert payments.counted(given.key) == (0, 0)


def test_nothing_is_replayed_once_the_key_may_be_forgotten(payments: Payments, clock: Clock) -> None:
    packet, effect_id, given = payments.permitted(proposal(REPLAYED))
    payments.pay(given)
    payments.lapse(clock, packet.run.id)
    clock.shift(86_400 * 0.9)
    payments.look(effect_id)
    assert payments.counted(given.key) == (1, 1)
    assert payments.effect(effect_id).state == EffectState.UNKNOWN
    assert payments.world.head(packet.run.id).status == Status.BLOCKED


# Observation -----------------------------------------------------------------------------------


def test_a_proposal_is_bound_to_the_version_that_its_target_had(payments: Payments) -> None:
    _, effect_id, given = payments.permitted(proposal(resource="order/17"))
    assert given.precondition == payments.effect(effect_id).observed_version == '"v1"'
    assert payments.pay(given).status == 201


def test_an_order_that_moves_while_its_observation_is_fresh_meets_the_precondition(payments: Payments) -> None:
    packet = payments.issuing(proposal(resource="order/17"))
    effect_id = payments.world.effect(packet.run.id).pk
    payments.change_order()
    given = proposals.permit(payments.world.caller, effect_id, packet.fence)
    assert payments.pay(given).status == 412
    assert payments.counted(given.key) == (1, 0)


def test_a_stale_observation_is_made_anew_and_a_change_sends_the_run_to_waking(
    payments: Payments, clock: Clock
) -> None:
    packet = payments.issuing(proposal(resource="order/17"))
    effect_id = payments.world.effect(packet.run.id).pk
    payments.change_order()
    clock.shift(55)
    spec = TargetSpec(
        KEYED, payments.url, True, key_retention=86_400, freshness=30, private=True, lookup=LOOKUP, observe=OBSERVE
    )
    targets.register(payments.world.admin, spec)
    with pytest.raises(LedgerError, match="observation-due"):
        effects.permit(payments.world.caller, effect_id, packet.fence)
    assert payments.world.head(packet.run.id).status == Status.RUNNING, "nothing was written"
    with pytest.raises(LedgerError) as refused:
        proposals.permit(payments.world.caller, effect_id, packet.fence)
    assert (refused.value.code, refused.value.facts["observed"]) == ("changed", '"v2"')
    assert payments.world.head(packet.run.id).status == Status.WAKING
    assert payments.effect(effect_id).state == EffectState.PROPOSED
    assert verify.run(packet.run.id).faults == []


# By itself -------------------------------------------------------------------------------------


def test_the_sweep_finds_out_by_itself_and_the_run_goes_on(payments: Payments, clock: Clock) -> None:
    packet, effect_id, given = payments.permitted()
    payments.pay(given)
    clock.shift(61)
    sweep.sweep()
    assert payments.effect(effect_id).state == EffectState.COMMITTED
    wakes.run(packet.run.id)
    assert payments.world.head(packet.run.id).status == Status.READY
    assert payments.counted(given.key) == (1, 1)
