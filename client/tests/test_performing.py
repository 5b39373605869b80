"""What a worker does with an effect: it calls under a permit, settles what came of it, and gives back what is in doubt."""

from __future__ import annotations

from typing import Any

import ledger_script
import loopback
import pytest
from bench import RECEIPT, Bench, Refund, charge, issue, propose
from ledger_script import (
    COMMIT,
    EFFECT,
    PERMIT,
    PROPOSE,
    RELEASE,
    REQUEST,
    SETTLE,
    committed,
    effect,
    packet,
    permit,
)
from loopback import answer, problem
from resumeapp_client import (
    Context,
    EffectEnded,
    EffectGivenUp,
    Step,
)


def test_a_committed_effect_is_not_called_again(bench: Bench) -> None:
    given = packet(effects={"pay": effect("committed", result=RECEIPT)})
    commit = bench.run(issue, given, COMMIT)
    assert commit["state"]["receipt"] == RECEIPT
    assert not bench.target.seen
    assert not bench.asked(PERMIT)


@pytest.mark.parametrize("state", ["in_flight", "unknown"])
def test_an_effect_of_unknown_outcome_gives_the_run_back_without_a_call(bench: Bench, state: str) -> None:
    bench.run(issue, packet(effects={"pay": effect(state)}), RELEASE)
    assert not bench.target.seen
    assert not bench.asked(PERMIT)
    assert not bench.asked(COMMIT)


@pytest.mark.parametrize(
    ("state", "cause", "name"),
    [
        ("failed", "rejected", "EffectRejected"),
        ("withdrawn", "denied", "EffectDenied"),
        ("withdrawn", "expired", "EffectExpired"),
        ("withdrawn", "by_agent", "EffectWithdrawn"),
        ("written_off", None, "EffectWrittenOff"),
    ],
)
def test_an_effect_that_is_over_raises_what_ended_it(bench: Bench, state: str, cause: str | None, name: str) -> None:
    raised: list[str] = []

    def catches(ctx: Context[Refund], s: Refund) -> Step:
        try:
            ctx.perform("pay", call=charge)
        except EffectEnded as ended:
            raised.append(type(ended).__name__)
            raise
        return ctx.complete()

    commit = bench.run(catches, packet("catches", effects={"pay": effect(state, cause=cause)}), COMMIT)
    assert raised == [name]
    assert commit["next"] == {"kind": "fail", "reason": f"effect pay: {cause or state}"}
    assert not bench.target.seen


def test_what_a_person_let_the_run_go_on_without_is_told_to_the_agent_and_not_tried(bench: Bench) -> None:
    raised: list[EffectGivenUp] = []

    def goes_on(ctx: Context[Refund], s: Refund) -> Step:
        try:
            ctx.perform("pay", call=charge)
        except EffectGivenUp as given_up:
            raised.append(given_up)
        return ctx.complete()

    left = packet(
        "goes_on",
        effects={"pay": effect("failed", cause="throttled", attempt=1)},
        decision={"decision": "resume", "reasons": ["checks:passed"], "without": {EFFECT: "key_forgotten"}},
    )
    assert bench.run(goes_on, left, COMMIT)["next"]["kind"] == "complete"
    assert raised[0].facts == {"effect": "pay", "cause": "given_up_key_forgotten"} and not bench.asked(PERMIT)


def test_a_permitted_call_is_settled_and_its_result_committed(bench: Bench) -> None:
    commit = bench.run(issue, packet(effects={"pay": effect()}), COMMIT)
    (settle,) = bench.asked(SETTLE)
    assert settle == {"fence": "0.1", "attempt": 1, "outcome": "committed", "result": RECEIPT}
    assert commit["state"]["receipt"] == RECEIPT
    assert (commit["fence"], commit["expect_seq"], commit["next"]) == ("0.1", 3, {"kind": "complete"})
    assert commit["version"] == "1" and len(commit["code_version"]) == 64
    assert len(bench.target.seen) == 1


@pytest.mark.parametrize("cause", ["not_dispatched", "throttled", "confirmed_absent"])
def test_a_retryable_failure_is_tried_under_a_new_permit(bench: Bench, cause: str) -> None:
    bench.run(issue, packet(effects={"pay": effect("failed", cause=cause)}), COMMIT)
    assert len(bench.target.seen) == 1


@pytest.mark.parametrize(
    ("reply", "report"),
    [
        (answer(500), {"outcome": "unknown"}),
        (loopback.closes, {"outcome": "unknown"}),
        (answer(409), {"outcome": "unknown"}),
    ],
)
def test_an_outcome_in_doubt_is_settled_and_the_run_given_back(bench: Bench, reply: Any, report: Any) -> None:
    bench.target.on("POST", "/refunds", reply)
    bench.run(issue, packet(effects={"pay": effect()}), RELEASE)
    assert bench.asked(SETTLE) == [{"fence": "0.1", "attempt": 1, **report}]
    assert len(bench.target.seen) == 1, "never resent"
    assert not bench.asked(COMMIT)


def test_code_that_swallows_exceptions_cannot_keep_a_run_of_unknown_outcome(bench: Bench) -> None:
    bench.target.on("POST", "/refunds", answer(500))

    def swallows(ctx: Context[Refund], s: Refund) -> Step:
        try:
            ctx.perform("pay", call=charge)
        except Exception:
            return ctx.complete()
        return ctx.complete()

    bench.run(swallows, packet("swallows", effects={"pay": effect()}), RELEASE)
    assert not bench.asked(COMMIT)


def test_a_refused_request_is_settled_as_rejected_and_fails_the_run(bench: Bench) -> None:
    bench.target.on("POST", "/refunds", answer(422, {"error": "insufficient"}))
    commit = bench.run(issue, packet(effects={"pay": effect()}), COMMIT)
    assert bench.asked(SETTLE)[0]["cause"] == "rejected"
    assert commit["next"]["kind"] == "fail"


def test_a_permit_that_came_too_late_sends_nothing(bench: Bench) -> None:
    bench.ledger.on("POST", PERMIT, answer(200, permit(1, send_in=-1)), answer(200, permit(2, send_in=-1)))
    bench.run(issue, packet(effects={"pay": effect()}), RELEASE)
    assert not bench.target.seen
    unsent = {"fence": "0.1", "outcome": "failed", "cause": "not_dispatched"}
    assert bench.asked(SETTLE) == [{"attempt": 1, **unsent}, {"attempt": 2, **unsent}]


@pytest.mark.parametrize("code", ["grant-missing", "policy-denies", "changed", "observation-due"])
def test_a_refused_permit_gives_the_run_back(bench: Bench, code: str) -> None:
    bench.ledger.on("POST", PERMIT, problem(403, code))
    bench.run(issue, packet(effects={"pay": effect()}), RELEASE)
    assert not bench.target.seen


def test_a_throttled_call_is_tried_again_under_a_new_permit_with_the_same_key(bench: Bench) -> None:
    bench.target.on("POST", "/refunds", answer(429), answer(201, RECEIPT))
    bench.ledger.on("POST", PERMIT, answer(200, permit(1)), answer(200, permit(2)))
    bench.run(issue, packet(effects={"pay": effect()}), COMMIT)
    assert [(report["attempt"], report["outcome"]) for report in bench.asked(SETTLE)] == [
        (1, "failed"),
        (2, "committed"),
    ]
    assert bench.asked(SETTLE)[0]["cause"] == "throttled"
    assert {seen.headers["idempotency-key"] for seen in bench.target.seen} == {"ra_key"}


def test_a_call_that_never_happened_is_given_back_after_its_tries(bench: Bench) -> None:
    bench.target.close()
    bench.ledger.on("POST", PERMIT, answer(200, permit(1)), answer(200, permit(2)))
    bench.run(issue, packet(effects={"pay": effect()}), RELEASE)
    assert [report["cause"] for report in bench.asked(SETTLE)] == ["not_dispatched", "not_dispatched"]


def test_a_permit_whose_reply_was_lost_for_too_long_is_settled_unsent_and_asked_for_again(bench: Bench) -> None:
    passed = problem(410, "send-by-passed", facts={"attempt": 1})
    bench.ledger.on("POST", PERMIT, passed, answer(200, permit(2)))
    bench.run(issue, packet(effects={"pay": effect()}), COMMIT)
    assert [(report["attempt"], report["outcome"]) for report in bench.asked(SETTLE)] == [
        (1, "failed"),
        (2, "committed"),
    ]
    assert len(bench.target.seen) == 1


def test_code_that_catches_everything_cannot_send_twice_under_one_permit(bench: Bench) -> None:
    bench.ledger.on("POST", SETTLE, problem(500, "integrity"))

    def stubborn(ctx: Context[Refund], s: Refund) -> Step:
        for _ in range(3):
            try:
                ctx.perform("pay", call=charge)
            except BaseException:
                continue
        return ctx.complete()

    bench.leave(stubborn, packet("stubborn", effects={"pay": effect()}))
    assert len(bench.target.seen) == 1


def test_an_accepted_request_is_looked_at_until_the_target_has_finished_it(bench: Bench) -> None:
    bench.target.on("POST", "/refunds", answer(202, RECEIPT))
    taken = effect("in_flight", accepted=True)
    bench.ledger.on("POST", SETTLE, answer(200, {"effect": taken, "counted": True}))
    bench.ledger.on("GET", "/api/v1/effects/.*", answer(200, taken), answer(200, effect("committed", result=RECEIPT)))
    assert bench.run(issue, packet(effects={"pay": effect()}), COMMIT)["state"]["receipt"] == RECEIPT
    assert bench.asked(SETTLE) == [{"fence": "0.1", "attempt": 1, "outcome": "accepted"}]
    assert len(bench.target.seen) == 1


@pytest.mark.parametrize("code", ["not-cleared", "tool-not-allowed"])
def test_a_permit_that_only_other_code_could_get_counts_as_a_crash(bench: Bench, code: str) -> None:
    bench.ledger.on("POST", PERMIT, problem(409, code))
    bench.leave(issue, packet(effects={"pay": effect()}))
    assert not bench.target.seen


def test_a_permit_for_an_effect_that_moved_meanwhile_reads_it_again(bench: Bench) -> None:
    bench.ledger.on("POST", PERMIT, problem(409, "wrong-state"))
    bench.ledger.on("GET", "/api/v1/effects/.*", answer(200, effect("committed", result=RECEIPT)))
    assert bench.run(issue, packet(effects={"pay": effect()}), COMMIT)["state"]["receipt"] == RECEIPT
    assert not bench.target.seen


def test_a_stale_fence_ends_all_writing(bench: Bench) -> None:
    bench.ledger.on("POST", PERMIT, problem(409, "stale-fence"))
    bench.run(issue, packet(effects={"pay": effect()}), PERMIT)
    assert not bench.target.seen
    assert not bench.asked(COMMIT) and not bench.asked(RELEASE) and not bench.asked(SETTLE)


def test_a_report_that_was_only_evidence_ends_all_writing(bench: Bench) -> None:
    bench.ledger.on("POST", SETTLE, answer(200, {"effect": effect("committed"), "counted": False}))
    bench.run(issue, packet(effects={"pay": effect()}), SETTLE)
    assert not bench.asked(COMMIT) and not bench.asked(RELEASE)


def test_a_result_that_the_ledger_cannot_keep_leaves_the_outcome_to_the_reconciler(bench: Bench) -> None:
    bench.ledger.on("POST", SETTLE, problem(422, "number-out-of-range"), ledger_script.settles)
    bench.run(issue, packet(effects={"pay": effect()}), RELEASE)
    assert [report["outcome"] for report in bench.asked(SETTLE)] == ["committed", "unknown"]


def test_effects_that_are_unaccounted_for_are_accepted_and_the_permit_asked_again(bench: Bench) -> None:
    def both(ctx: Context[Refund], s: Refund) -> Step:
        ctx.perform("first", call=charge)
        ctx.perform("pay", call=charge)
        return ctx.complete()

    bench.ledger.on("POST", PERMIT, problem(409, "effects-unaccounted"), answer(200, permit()))
    bench.ledger.on("POST", PROPOSE, answer(200, effect("committed", name="first", id="e-0", seq=3)))
    first = effect("committed", name="first", id="e-0", result=1)
    bench.run(both, packet("both", effects={"pay": effect(), "first": first}), COMMIT)
    assert bench.asked(PROPOSE) == [{"fence": "0.1", "accept": "first"}]
    assert len(bench.target.seen) == 1


def test_a_recorded_proposal_is_accounted_for_by_proposing_it_again(bench: Bench) -> None:
    def more(ctx: Context[Refund], s: Refund) -> Step:
        propose(ctx, 999)
        ctx.propose("note", target="notes", request={})
        return ctx.give_back()

    bench.ledger.on("POST", COMMIT, problem(409, "effects-unaccounted"), answer(201, committed("waking")))
    bench.start(more, packet("more", effects={"pay": effect()}))
    commit = bench.until(COMMIT, 2)
    (again,) = bench.asked(PROPOSE)
    assert (again["name"], again["request"]) == ("pay", REQUEST), "with the recorded content"
    assert commit["expect_seq"] == 4
    assert [proposal["name"] for proposal in commit["propose"]] == ["note"]
