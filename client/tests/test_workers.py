"""A worker with one run against a scripted ledger and a real target."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ledger_script
import loopback
import pytest
from ledger_script import (
    CLAIM,
    COMMIT,
    HEARTBEAT,
    PERMIT,
    PROPOSE,
    RELEASE,
    REQUEST,
    RUN,
    SETTLE,
    WITHDRAW,
    committed,
    effect,
    packet,
    permit,
)
from loopback import Loopback, answer, problem
from pydantic import BaseModel
from resumeapp_client import (
    Client,
    Context,
    EffectDiffers,
    EffectEnded,
    ResumeappError,
    Step,
    Worker,
    Workflow,
    approval,
    event,
    timer,
)

RECEIPT = {"id": "rf_1"}


class Refund(BaseModel):
    order: str
    amount_minor: int
    receipt: dict[str, Any] | None = None


Function = Callable[[Context[Refund], Refund], Step]


def charge(http: Any, _permit: Any) -> Any:
    return http.post("/refunds").json()


def issue(ctx: Context[Refund], s: Refund) -> Step:
    receipt = ctx.perform(ctx.effects["pay"], call=charge)
    return ctx.complete(s.model_copy(update={"receipt": receipt}))


class Bench:
    """Runs a worker over given packets until the ledger was asked for something."""

    def __init__(self, ledger: Loopback, target: Loopback, client: Client) -> None:
        self.ledger, self.target, self.client = ledger, target, client
        self.worker: Worker | None = None
        self.thread: threading.Thread | None = None

    def start(self, function: Function, *packets: Any, limit: int = 1, lease_seconds: int = 30) -> Worker:
        flow = Workflow("refunds", "1", "issue", Refund)
        flow.transition(function)
        if function.__name__ != "issue":
            flow.transition(issue)
        claims = [answer(200, {"packets": [given]}) for given in packets]
        self.ledger.on("POST", CLAIM, *claims, answer(204))
        self.worker = Worker(
            self.client,
            [flow],
            limit=limit,
            lease_seconds=lease_seconds,
            wait_seconds=0,
            targets={"payments": self.target.url},
            call_tries=2,
        )
        self.thread = threading.Thread(target=self.worker.run)
        self.thread.start()
        return self.worker

    def until(self, path: str, count: int = 1) -> Any:
        return self.ledger.wait_for("POST", path, count).json()

    def stop(self) -> None:
        if self.worker is not None and self.thread is not None:
            self.worker.stop()
            self.thread.join(timeout=10)
            assert not self.thread.is_alive(), "the worker drains"

    def run(self, function: Function, given: Any, until: str) -> Any:
        """The body of the first call of that path, after everything came to rest."""
        self.start(function, given)
        body = self.until(until)
        self.stop()
        return body

    def leave(self, function: Function, given: Any) -> None:
        """The run is left as it is: neither committed nor given back."""
        self.start(function, given)
        self.until(CLAIM, 3)
        self.stop()
        assert not self.asked(COMMIT) and not self.asked(RELEASE)

    def asked(self, path: str) -> list[Any]:
        return [seen.json() for seen in self.ledger.asked("POST", path)]


@pytest.fixture
def bench(ledger: Loopback, target: Loopback, client: Client) -> Iterator[Bench]:
    made = Bench(ledger, target, client)
    target.on("POST", "/refunds", answer(201, RECEIPT))
    yield made
    made.stop()


# -- performing


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


# -- proposing


def propose(ctx: Context[Refund], amount: int = 500, **options: Any) -> Any:
    request = {"order": "17", "amount_minor": amount}
    return ctx.propose("pay", target="payments", tool="payments.refund", request=request, **options)


def test_proposals_ride_in_the_commit(bench: Bench) -> None:
    def assess(ctx: Context[Refund], s: Refund) -> Step:
        pay = ctx.propose("pay", target="payments", request=REQUEST, observes="orders/17")
        return ctx.wait(approval(pay), timer("1h"), deadline="24h", on_deadline="cancel", then="issue")

    commit = bench.run(assess, packet("assess"), COMMIT)
    assert commit["propose"] == [
        {"name": "pay", "tool": "payments.pay", "target": "payments", "resource": "orders/17", "request": REQUEST}
    ]
    assert commit["next"] == {
        "kind": "wait",
        "transition": "issue",
        "wait": {
            "mode": "any",
            "members": [{"kind": "approval", "effect": "pay"}, {"kind": "timer", "after_seconds": 3600}],
            "deadline_seconds": 86400,
            "on_deadline": "cancel",
        },
    }
    assert not bench.asked(PROPOSE)


def test_performing_a_new_proposal_records_it_first_and_follows_its_sequence(bench: Bench) -> None:
    def at_once(ctx: Context[Refund], s: Refund) -> Step:
        ctx.perform(propose(ctx), call=charge)
        return ctx.complete()

    commit = bench.run(at_once, packet("at_once"), COMMIT)
    assert bench.asked(PROPOSE)[0]["expect_seq"] == 3
    assert commit["expect_seq"] == 4
    assert "propose" not in commit
    order = [seen.path for seen in bench.ledger.seen if seen.path in (PROPOSE, PERMIT, SETTLE, COMMIT)]
    assert order == [PROPOSE, PERMIT, SETTLE, COMMIT]


def test_another_answer_of_the_model_takes_the_recorded_effect(bench: Bench) -> None:
    def again(ctx: Context[Refund], s: Refund) -> Step:
        receipt = ctx.perform(propose(ctx, 999), call=charge)
        return ctx.complete(s.model_copy(update={"receipt": receipt}))

    given = packet("again", effects={"pay": effect("committed", result=RECEIPT)})
    assert bench.run(again, given, COMMIT)["state"]["receipt"] == RECEIPT
    assert not bench.target.seen


def test_another_answer_of_the_model_can_be_refused_with_both_sides(bench: Bench) -> None:
    caught: list[EffectDiffers] = []

    def strict(ctx: Context[Refund], s: Refund) -> Step:
        try:
            propose(ctx, 999, on_differs="raise")
        except EffectDiffers as differs:
            caught.append(differs)
            ctx.withdraw("pay")
        return ctx.complete()

    bench.ledger.on("POST", WITHDRAW, answer(200, effect("withdrawn", cause="by_agent")))
    bench.run(strict, packet("strict", effects={"pay": effect()}), COMMIT)
    assert caught[0].facts["recorded"]["request"] == REQUEST
    assert caught[0].facts["proposed"]["request"]["amount_minor"] == 999
    assert "999" not in str(caught[0])
    assert len(bench.asked(WITHDRAW)) == 1


def test_one_name_for_two_effects_in_one_execution_is_an_error(bench: Bench) -> None:
    def confused(ctx: Context[Refund], s: Refund) -> Step:
        propose(ctx)
        propose(ctx, 999)
        return ctx.complete()

    bench.leave(confused, packet("confused"))


def test_a_withdrawn_proposal_that_was_never_recorded_leaves_no_trace(bench: Bench) -> None:
    def undecided(ctx: Context[Refund], s: Refund) -> Step:
        assert ctx.withdraw(propose(ctx)).state == "withdrawn"
        return ctx.give_back()

    commit = bench.run(undecided, packet("undecided"), COMMIT)
    assert "propose" not in commit
    assert commit["next"] == {"kind": "give_back", "transition": "undecided"}


# -- waking


@pytest.mark.parametrize(
    ("state", "members", "word"),
    [
        ("satisfied", [{"kind": "approval", "outcome": "approved", "effect": "pay"}], "approved"),
        ("satisfied", [{"kind": "approval", "outcome": "denied"}, {"kind": "timer", "outcome": None}], "denied"),
        ("satisfied", [{"kind": "event", "outcome": "received"}, {"kind": "timer", "outcome": ""}], "received"),
        ("satisfied", [{"kind": "timer", "outcome": "fired"}], "fired"),
        ("expired", [{"kind": "approval", "outcome": None}], "expired"),
    ],
)
def test_a_woken_transition_reads_the_outcome_in_one_word(bench: Bench, state: str, members: Any, word: str) -> None:
    def woken(ctx: Context[Refund], s: Refund) -> Step:
        return ctx.fail(str(ctx.outcome))

    given = packet("woken", wait={"state": state, "cause": None, "members": members})
    assert bench.run(woken, given, COMMIT)["next"] == {"kind": "fail", "reason": word}


def test_a_commit_that_keeps_the_lease_goes_on_at_once(bench: Bench) -> None:
    def first(ctx: Context[Refund], s: Refund) -> Step:
        return ctx.go_on("issue", s.model_copy(update={"order": "18"}))

    kept = committed("running", transition="issue", fence="0.1", effects={"pay": effect()}, clearance={"id": "c"})
    bench.ledger.on("POST", COMMIT, answer(201, kept), answer(201, committed()))
    bench.start(first, packet("first"))
    commit = bench.until(COMMIT, 2)
    assert (commit["state"]["order"], commit["expect_seq"]) == ("18", 4)


def test_a_commit_that_is_answered_after_another_took_over_ends_the_work(bench: Bench) -> None:
    def first(ctx: Context[Refund], s: Refund) -> Step:
        return ctx.go_on("issue", s)

    taken = committed("running", transition="issue", fence=None, effects={"pay": effect()})
    bench.ledger.on("POST", COMMIT, answer(200, taken))
    bench.start(first, packet("first"))
    bench.until(CLAIM, 3)
    bench.stop()
    assert (len(bench.asked(COMMIT)), bench.asked(PERMIT), bench.asked(RELEASE)) == (1, [], [])


def test_a_wait_without_members_or_with_an_unknown_transition_is_refused() -> None:
    flow = Workflow("refunds", "1", "issue", Refund)
    flow.transition(issue)
    ctx: Any = Context(flow, None, None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="needs a member"):
        ctx.wait(deadline="24h", then="issue")
    with pytest.raises(ValueError, match="no transition 'isue'"):
        ctx.wait(event("a"), deadline="24h", then="isue")
    with pytest.raises(ValueError, match="on_deadline"):
        ctx.wait(event("a"), deadline="24h", then="issue", on_deadline="explode")


# -- owning


def test_a_state_of_the_older_version_is_read_as_what_it_is(bench: Bench) -> None:
    """The packet names the version that was claimed, its checkpoint the one that wrote the state."""
    given = packet(version="1")
    given["checkpoint"]["version"] = "0"
    bench.leave(issue, given)
    assert not bench.asked(PERMIT)


def test_a_damaged_state_is_left_to_its_lease_and_nothing_runs(bench: Bench) -> None:
    given = packet(effects={"pay": effect()})
    given["checkpoint"]["state"]["json"] = '{"amount_minor":900,"order":"17"}'
    bench.leave(issue, given)
    assert not bench.asked(PERMIT)


def test_a_claim_delivered_twice_runs_once(bench: Bench) -> None:
    given = packet(effects={"pay": effect()})
    bench.start(issue, given, given)
    bench.until(CLAIM, 3)
    bench.stop()
    assert len(bench.target.seen) == 1
    assert len(bench.asked(COMMIT)) == 1


def test_a_claim_delivered_twice_while_it_runs_is_dropped(bench: Bench) -> None:
    gate = threading.Event()
    bench.target.on("POST", "/refunds", loopback.waits(gate, answer(201, RECEIPT)))
    given = packet(effects={"pay": effect()})
    bench.start(issue, given, given, limit=2)
    bench.until(CLAIM, 3)
    gate.set()
    bench.until(COMMIT)
    bench.stop()
    assert len(bench.target.seen) == 1
    assert len(bench.asked(COMMIT)) == 1


def directed(directive: str) -> Any:
    return answer(200, {"runs": [{"run": RUN, "directive": directive, "reason": "intent_cancel"}]})


@pytest.mark.parametrize(("directive", "released"), [("stop", 0), ("stop_after_call", 1)])
def test_a_stop_lets_the_call_end_reports_it_and_begins_nothing_new(
    bench: Bench, directive: str, released: int
) -> None:
    gate = threading.Event()
    bench.target.on("POST", "/refunds", loopback.waits(gate, answer(201, RECEIPT)))
    bench.ledger.on("POST", HEARTBEAT, directed(directive))

    def two_calls(ctx: Context[Refund], s: Refund) -> Step:
        ctx.perform("pay", call=charge)
        ctx.perform("pay2", call=charge)
        return ctx.complete()

    given = packet("two_calls", effects={"pay": effect(), "pay2": effect(name="pay2")})
    bench.start(two_calls, given, lease_seconds=1)
    bench.until(HEARTBEAT, 2)
    gate.set()
    bench.until(SETTLE)
    bench.stop()
    assert bench.asked(SETTLE)[0]["outcome"] == "committed", "also of a lost run: evidence"
    assert len(bench.target.seen) == 1
    assert not bench.asked(COMMIT)
    assert len(bench.asked(RELEASE)) == released


def test_one_heartbeat_renews_every_held_run(bench: Bench) -> None:
    gate = threading.Event()
    bench.target.on("POST", "/refunds", loopback.waits(gate, answer(201, RECEIPT)))
    other = packet(effects={"pay": effect()})
    other["run"] = {**other["run"], "id": "run-2"}
    bench.start(issue, packet(effects={"pay": effect()}), other, limit=2, lease_seconds=1)
    bench.target.wait_for("POST", "/refunds", 2)
    count = len(bench.asked(HEARTBEAT))
    beat = bench.until(HEARTBEAT, count + 1)
    gate.set()
    assert sorted(held["run"] for held in beat["runs"]) == ["run-1", "run-2"]
    assert beat["worker"] == bench.worker.id  # type: ignore[union-attr]


def test_a_failing_transition_counts_as_a_crash_and_logs_no_value(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    def breaks(ctx: Context[Refund], s: Refund) -> Step:
        raise ValueError("4111-secret")

    caplog.set_level(logging.DEBUG)
    bench.leave(breaks, packet("breaks"))
    assert "ValueError at" in caplog.text
    assert "4111-secret" not in caplog.text


def test_a_server_that_is_away_is_waited_for(bench: Bench) -> None:
    bench.ledger.on("POST", CLAIM, loopback.closes)
    bench.ledger.on(
        "PUT",
        "/api/v1/workflows/.*",
        problem(503, "overloaded"),
        answer(201, {"workflow": "r", "version": "1", "digest": "d"}),
    )
    flow = Workflow("refunds", "1", "issue", Refund)
    flow.transition(issue)
    worker = Worker(bench.client, [flow], wait_seconds=0)
    thread = threading.Thread(target=worker.run)
    thread.start()
    bench.ledger.wait_for("POST", CLAIM, 2)
    worker.stop()
    thread.join(timeout=10)
    assert not thread.is_alive()


def test_a_refused_registration_ends_the_worker_with_the_reason(bench: Bench) -> None:
    bench.ledger.on("PUT", "/api/v1/workflows/.*", problem(409, "version-exists"))
    flow = Workflow("refunds", "1", "issue", Refund)
    flow.transition(issue)
    with pytest.raises(ResumeappError, match="version-exists"):
        Worker(bench.client, [flow]).run()


# -- draining, in a process of its own


AGENT = Path(__file__).with_name("draining_agent.py")


@pytest.fixture
def agent(ledger: Loopback, target: Loopback) -> Iterator[subprocess.Popen[str]]:
    environment = os.environ | {"LEDGER": ledger.url, "TARGET": target.url}
    process = subprocess.Popen([sys.executable, str(AGENT)], env=environment, stdout=subprocess.PIPE, text=True)
    yield process
    process.kill()
    process.communicate()


def test_sigterm_lets_the_call_end_settles_releases_and_leaves(
    ledger: Loopback, target: Loopback, agent: subprocess.Popen[str]
) -> None:
    gate = threading.Event()
    target.on("POST", "/refunds", loopback.waits(gate, answer(201, RECEIPT)))
    given = packet("two_calls", effects={"pay": effect(), "pay2": effect(name="pay2")})
    ledger.on("POST", CLAIM, answer(200, {"packets": [given]}), answer(204))
    target.wait_for("POST", "/refunds")
    agent.send_signal(signal.SIGTERM)
    assert agent.stdout is not None and agent.stdout.readline() == "draining\n"
    gate.set()
    assert agent.wait(timeout=10) == 0
    assert [seen.path for seen in ledger.seen if seen.path in (SETTLE, RELEASE, COMMIT)] == [SETTLE, RELEASE]
    assert len(target.seen) == 1


def test_sigterm_while_idle_leaves_at_the_next_answer(ledger: Loopback, agent: subprocess.Popen[str]) -> None:
    ledger.wait_for("POST", CLAIM)
    began = time.monotonic()
    agent.send_signal(signal.SIGTERM)
    assert agent.wait(timeout=10) == 0
    assert time.monotonic() - began < 5
