"""A judge that can't fail is worthless: what was lost, done twice, sent blindly or stuck is put in by hand, and must be found."""

from dataclasses import replace
from typing import Any

import pytest

from tests.crash import judge
from tests.crash.judge import Log
from tests.crash.judged import (
    EFFECT,
    HEAD_ROW,
    LEASE,
    ORDER,
    STEPS,
    TWO_PERMITS,
    Sent,
    T,
    chained,
    clock,
    facts,
    kinds,
    log,
    report,
    trial,
)


def test_a_run_that_went_right_is_left_alone() -> None:
    assert judge.judge(trial(), facts(), log()) == []


@pytest.mark.parametrize(
    "ack",
    [
        {"kind": "run", "run": "another"},
        {"kind": "checkpoint", "seq": 1, "digest": "01"},
        {"kind": "checkpoint", "seq": 0, "digest": "02"},
        {"kind": "effect", "effect": "another"},
        {"kind": "permit", "effect": EFFECT, "attempt": 2},
        {"kind": "settle", "effect": EFFECT, "attempt": 1, "outcome": "committed"},
        {"kind": "vote", "request": "r", "choice": "deny"},
        {"kind": "something new"},
    ],
    ids=lambda ack: "-".join(str(value) for value in ack.values())[:40],
)
def test_what_was_acknowledged_and_is_absent_is_lost(ack: dict[str, Any]) -> None:
    assert kinds(judge.judge(trial(acks=[ack]), facts(), log())) == {judge.LOST}


def test_an_acknowledged_run_that_is_absent_is_lost() -> None:
    assert kinds(judge.judge(trial(), facts(head=None), log())) == {judge.LOST}


def test_a_settle_kept_as_evidence_is_not_lost() -> None:
    ack = {"kind": "settle", "effect": EFFECT, "attempt": 1, "outcome": "failed"}
    late = report(7, kind="late", answer="failed", cause="not_dispatched", counted=False)
    told = facts(reports=[*facts().reports, late])
    assert judge.judge(trial(acks=[ack]), told, log()) == []


def test_two_changes_under_one_key_are_a_duplicate() -> None:
    assert judge.DUPLICATE in kinds(judge.judge(trial(), facts(), log(changes=2)))


def test_two_refunds_of_one_order_under_two_keys_are_a_duplicate() -> None:
    other = Sent(9, clock(8), key="ra_2", reference="rf_000002")
    twice = replace_log(log(), by_order={ORDER: [*log().by_order[ORDER], other]})
    found = judge.judge(trial(), facts(), twice)
    assert kinds(found) == {judge.DUPLICATE, judge.STATE}
    assert any("a key that the record doesn't know" in finding.text for finding in found)


def replace_log(whole: Log, **parts: Any) -> Log:
    return replace(whole, **parts)


TWO_PERMITS_LATER = [
    {"effect_id": EFFECT, "attempt": n, "permitted_at": T + at, "answer_by": T + at + 2} for n, at in ((1, 1), (2, 7))
]


@pytest.mark.parametrize(
    "reports",
    [
        [],
        [report(5, kind="lapse", answer="unknown")],
        [report(5, answer="absent", counted=False)],
        [report(5, answer="cannot_tell")],
        [report(5, kind="settle", answer="unknown")],
        [report(5, kind="settle", answer="failed", cause="rejected")],
        [report(5, kind="late", answer="failed", cause="not_dispatched", counted=False)],
        [report(1, kind="verdict", answer="failed", cause="confirmed_absent"), report(9, answer="absent")],
    ],
    ids=["nothing", "lapse", "uncounted", "cannot-tell", "unknown", "rejected", "stale", "at-other-times"],
)
def test_a_second_request_that_nothing_allows_is_a_blind_resend(reports: list[dict[str, Any]]) -> None:
    found = judge.judge(trial(), facts(permits=TWO_PERMITS, reports=reports), log((2.5, 8.5)))
    assert kinds(found) == {judge.BLIND_RESEND}


@pytest.mark.parametrize(
    "allowing",
    [
        report(5, answer="absent"),
        report(5, kind="replay", answer="sent", counted=False),
        report(5, kind="settle", answer="failed", cause="throttled"),
        report(5, kind="verdict", answer="failed", cause="confirmed_absent"),
    ],
    ids=["absent", "replay", "throttled", "verdict"],
)
def test_a_second_request_after_a_definite_answer_or_as_a_replay_is_none(allowing: dict[str, Any]) -> None:
    sent = log((1.5, 8.5), turned_away=allowing["cause"] == "throttled")
    assert judge.judge(trial(), facts(permits=TWO_PERMITS_LATER, reports=[allowing]), sent) == []


def not_dispatched(second: float, **fields: Any) -> dict[str, Any]:
    return report(second, kind="settle", answer="failed", cause="not_dispatched", **fields)


@pytest.mark.parametrize("arrives", [2.0, 4.5], ids=["before it was said", "after it was said"])
def test_a_worker_that_says_not_dispatched_of_a_call_that_it_sent_and_sends_it_again_is_found(arrives: float) -> None:
    lied = facts(permits=TWO_PERMITS_LATER, reports=[not_dispatched(4), report(9, attempt=2)])
    found = judge.judge(trial(), lied, log((arrives, 8.5)))
    assert kinds(found) == {judge.BLIND_RESEND, judge.STATE}
    assert any("called not dispatched, and request 1 had arrived" in finding.text for finding in found)


def test_a_worker_that_only_says_not_dispatched_of_a_call_that_it_sent_is_found_too() -> None:
    lied = facts(reports=[not_dispatched(4)])
    assert any("not dispatched" in finding.text for finding in judge.judge(trial(), lied, log()))


def test_a_call_that_was_not_dispatched_and_then_sent_once_is_right() -> None:
    honest = facts(permits=TWO_PERMITS_LATER, reports=[not_dispatched(4), report(9, attempt=2)])
    assert judge.judge(trial(), honest, log((8.5,))) == []


def test_what_was_not_believed_is_no_lie_of_the_record() -> None:
    stale = facts(reports=[not_dispatched(4, counted=False), report(6)])
    assert judge.judge(trial(), stale, log()) == []


def test_a_call_that_was_called_throttled_and_was_not_is_found() -> None:
    throttled = report(4, kind="settle", answer="failed", cause="throttled")
    lied = facts(permits=TWO_PERMITS_LATER, reports=[throttled, report(9, attempt=2)])
    found = judge.judge(trial(), lied, log((2.5, 8.5)))
    assert any("throttled, and the target turned nothing away" in finding.text for finding in found)


def test_a_request_without_a_permit_is_a_blind_resend() -> None:
    assert kinds(judge.judge(trial(acks=[]), facts(permits=[]), log())) == {judge.BLIND_RESEND}


@pytest.mark.parametrize("status", ["running", "waking", "ready"])
def test_a_run_that_stays_where_something_had_to_happen_is_stuck(status: str) -> None:
    late = LEASE + judge.GRACE_SECONDS + 1
    steps = (
        (0.0, "some.verb", "agent:x", {HEAD_ROW: {"status": status}}),
        *((second + late, *rest) for second, *rest in STEPS),
    )
    assert judge.STUCK in kinds(judge.judge(trial(ended_at=T + 99), facts(steps), log()))


def test_a_run_that_never_moved_again_is_stuck() -> None:
    steps = STEPS[:-1]
    entries = chained(*steps)
    head = {"status": "running", "head_seq": len(entries), "head_digest": entries[-1]["digest"]}
    found = judge.judge(trial(ended_at=T + 60, ends=["running"]), facts(steps, head=head), log())
    assert kinds(found) == {judge.STUCK}


def test_a_run_that_waits_for_long_is_not_stuck() -> None:
    steps = (*STEPS[:-1], (9.0, "checkpoint.commit", "agent:x", {HEAD_ROW: {"status": "waiting"}}))
    entries = chained(*steps)
    head = {"status": "waiting", "head_seq": len(entries), "head_digest": entries[-1]["digest"]}
    found = judge.judge(
        trial(ended_at=T + 900, ends=["waiting"]), facts(steps, head=head, waits=[{"state": "open"}]), log()
    )
    assert found == []


@pytest.mark.parametrize("status", ["waiting", "blocked"])
def test_a_run_that_waits_for_nothing_or_was_handed_to_nobody_is_stuck(status: str) -> None:
    steps = (*STEPS[:-1], (9.0, "some.verb", "agent:x", {HEAD_ROW: {"status": status}}))
    entries = chained(*steps)
    head = {"status": status, "head_seq": len(entries), "head_digest": entries[-1]["digest"]}
    over = facts(steps, head=head, waits=[{"state": "expired"}], handoffs=[{"state": "closed"}])
    assert kinds(judge.judge(trial(ends=[status]), over, log())) == {judge.STUCK}
