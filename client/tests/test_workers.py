"""How a worker wakes, owns and leaves its runs."""

from __future__ import annotations

import logging
import threading
from typing import Any

import loopback
import pytest
from bench import RECEIPT, Bench, Refund, charge, issue
from ledger_script import (
    CLAIM,
    COMMIT,
    HEARTBEAT,
    PERMIT,
    RELEASE,
    RUN,
    SETTLE,
    committed,
    effect,
    packet,
)
from loopback import answer, problem
from resumeapp_client import (
    Context,
    ResumeappError,
    Step,
    Worker,
    Workflow,
    event,
)


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
        problem(503, "unavailable"),
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
