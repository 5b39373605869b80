"""A judge that can't fail is worthless: each fault is put into a record or a log by hand, and must be found."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.crash import judge
from tests.crash.judge import Facts, Finding, Log, Trial

RUN, EFFECT, ORDER, KEY = "01900000-0000-7000-8000-000000000001", "01900000-0000-7000-8000-000000000002", "17", "ra_1"
LEASE = 3.0
T = 1_700_000_000.0


@dataclass(frozen=True)
class Sent:
    """A request or change as the sandbox's reader answers it."""

    seq: int
    at: str
    key: str = KEY
    reference: str = "rf_000001"
    order_id: str = ORDER
    amount_minor: int = 100
    status: int | None = 201


def clock(seconds: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(T + seconds, UTC).isoformat()


def chained(*steps: tuple[float, str, str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Entries as a ledger writes them: (second, verb, actor, the fields that change by object)."""
    previous, entries = bytes(32), []
    for seq, (second, verb, actor, changes) in enumerate(steps, start=1):
        lines = [{"object": name, "fields": fields} for name, fields in changes.items()]
        content = json.dumps({"stream": f"run:{RUN}", "seq": seq, "changes": lines}).encode()
        previous = hashlib.sha256(previous + content).digest()
        entries.append(
            {"seq": seq, "at": T + second, "verb": verb, "actor": actor, "content": content, "digest": previous}
        )
    return entries


HEAD_ROW, EFFECT_ROW = f"run_head:{RUN}", f"effect:{EFFECT}"
STEPS: tuple[tuple[float, str, str, dict[str, Any]], ...] = (
    (0, "run.claim", "agent:x", {HEAD_ROW: {"status": "running"}}),
    (1, "effect.propose", "agent:x", {EFFECT_ROW: {"state": "proposed"}}),
    (2, "effect.permit", "agent:x", {EFFECT_ROW: {"state": "in_flight"}}),
    (5, "lease.lapse", "system:sweep", {EFFECT_ROW: {"state": "unknown"}, HEAD_ROW: {"status": "waking"}}),
    (6, "effect.look", "system:reconciler", {EFFECT_ROW: {"state": "committed"}}),
    (7, "wake.decide", "system:wake", {HEAD_ROW: {"status": "ready"}}),
    (8, "run.claim", "agent:x", {HEAD_ROW: {"status": "running"}}),
    (9, "checkpoint.commit", "agent:x", {HEAD_ROW: {"status": "completed"}}),
)


def effect(**fields: Any) -> dict[str, Any]:
    row = {"id": EFFECT, "name": "pay", "key": KEY, "state": "committed", "cause": "", "attempt": 1}
    return row | {"disputed": False, "reference": "rf_000001", "amount_minor": 100} | fields


def report(second: float, **fields: Any) -> dict[str, Any]:
    row = {"effect_id": EFFECT, "attempt": 1, "kind": "lookup", "answer": "applied", "cause": "", "counted": True}
    return row | {"reported_at": T + second} | fields


def facts(steps: Any = STEPS, **parts: Any) -> Facts:
    """A run whose worker died in its call, and that another one finished."""
    entries = chained(*steps)
    head = {"status": "completed", "head_seq": len(entries), "head_digest": entries[-1]["digest"]}
    whole = Facts(
        head=head,
        entries=entries,
        checkpoints=[{"seq": 0, "digest": b"\x01", "previous_digest": bytes(32)}],
        effects=[effect()],
        permits=[{"effect_id": EFFECT, "attempt": 1, "permitted_at": T + 2, "answer_by": T + 4}],
        reports=[report(5, kind="lapse", answer="unknown"), report(6)],
        handoffs=[],
        waits=[],
        votes=[{"request_id": "r", "choice": "approve"}],
        state={"receipt": {"id": "rf_000001", "status": "settled"}},
    )
    return replace(whole, **parts)


def log(requests: tuple[float, ...] = (2.5,), changes: int = 1, turned_away: int = 0) -> Log:
    """What came in at which second; so many changes, and so many of the first requests answered 429."""
    mutating = [
        Sent(number, clock(second), status=429 if number <= turned_away else 201)
        for number, second in enumerate(requests, start=1)
    ]
    applied = mutating[:changes] if changes <= len(mutating) else mutating * changes
    return Log({KEY: mutating}, {KEY: applied}, {ORDER: applied})


ACKS: list[dict[str, Any]] = [
    {"kind": "run", "run": RUN},
    {"kind": "checkpoint", "seq": 0, "digest": "01"},
    {"kind": "effect", "effect": EFFECT},
    {"kind": "permit", "effect": EFFECT, "attempt": 1},
    {"kind": "vote", "request": "r", "choice": "approve"},
]


def trial(**fields: Any) -> Trial:
    whole = Trial("t", RUN, ORDER, LEASE, ["completed"], T + 10, list(ACKS), [])
    for name, value in fields.items():
        setattr(whole, name, value)
    return whole


def kinds(found: list[Finding]) -> set[str]:
    return {finding.kind for finding in found}


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


TWO_PERMITS = [{"effect_id": EFFECT, "attempt": n, "permitted_at": T + n, "answer_by": T + n + 2} for n in (1, 2)]


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


def _edit(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    changed = entries[3] | {"content": entries[3]["content"].replace(b"unknown", b"failed!")}
    return [*entries[:3], changed, *entries[4:]]


@pytest.mark.parametrize(
    "tamper",
    [
        _edit,
        lambda entries: entries[1:],
        lambda entries: [*entries[:3], *entries[4:]],
        lambda entries: entries[:-1],
        lambda entries: [entries[1], entries[0], *entries[2:]],
    ],
    ids=["edited", "first-gone", "middle-gone", "last-gone", "reordered"],
)
def test_a_journal_that_was_tampered_with_breaks_the_chain(tamper: Callable[..., Any]) -> None:
    whole = facts()
    assert judge.CHAIN in kinds(judge.judge(trial(), replace(whole, entries=tamper(whole.entries)), log()))


def test_a_checkpoint_that_does_not_follow_the_one_before_breaks_the_chain() -> None:
    checkpoints = [
        {"seq": 0, "digest": b"\x01", "previous_digest": bytes(32)},
        {"seq": 1, "digest": b"\x02", "previous_digest": b"\x09"},
    ]
    assert kinds(judge.judge(trial(), facts(checkpoints=checkpoints), log())) == {judge.CHAIN}


@pytest.mark.parametrize(
    ("state", "mutating", "applied", "wrong"),
    [
        ("proposed", 1, 0, True),
        ("withdrawn", 1, 0, True),
        ("committed", 1, 0, True),
        ("failed", 1, 1, True),
        ("proposed", 0, 0, False),
        ("in_flight", 0, 0, False),
        ("in_flight", 1, 1, False),
        ("unknown", 1, 0, False),
        ("committed", 1, 1, False),
        ("failed", 1, 0, False),
    ],
)
def test_what_the_ledger_says_must_fit_what_the_target_logged(
    state: str, mutating: int, applied: int, wrong: bool
) -> None:
    sample = {
        "label": "at the kill",
        "effects": [effect(state=state)],
        "log": {KEY: {"mutating": mutating, "applied": applied}},
        "expect": {},
    }
    assert kinds(judge.judge(trial(samples=[sample]), facts(), log())) == ({judge.STATE} if wrong else set())


@pytest.mark.parametrize("expect", [{"pay": ["in_flight", 0, 0]}, {"other": ["proposed", 0, 0]}])
def test_a_sample_that_is_not_what_the_point_is_about_is_found(expect: dict[str, Any]) -> None:
    seen = {"label": "x", "effects": [effect()], "log": {KEY: {"mutating": 1, "applied": 1}}, "expect": expect}
    assert kinds(judge.judge(trial(samples=[seen]), facts(), log())) == {judge.STATE}


def test_a_lost_call_that_was_called_failed_is_found() -> None:
    steps = (*STEPS[:3], (5.0, "lease.lapse", "system:sweep", {EFFECT_ROW: {"state": "failed"}}), *STEPS[4:])
    assert kinds(judge.judge(trial(), facts(steps), log())) == {judge.STATE}


@pytest.mark.parametrize(
    ("passes", "wrong"),
    [
        (["proposed", "in_flight", "unknown", "committed"], False),
        (["in_flight", "committed"], False),
        (["in_flight", "unknown", "failed", "in_flight"], True),
        (["unknown", "in_flight"], True),
    ],
)
def test_an_effect_that_went_another_way_than_its_point_is_found(passes: list[str], wrong: bool) -> None:
    found = judge.judge(trial(passes={"pay": passes}), facts(), log())
    assert kinds(found) == ({judge.STATE} if wrong else set())


def test_an_absence_that_was_believed_too_early_is_found() -> None:
    believed = [report(3, answer="absent", attempt=2)]
    found = judge.judge(trial(acks=[]), facts(permits=TWO_PERMITS, reports=believed), log())
    assert kinds(found) == {judge.STATE}


def test_a_refund_of_another_amount_that_was_recorded_as_done_is_found() -> None:
    assert kinds(judge.judge(trial(), facts(effects=[effect(amount_minor=99)]), log())) == {judge.STATE}


def test_a_committed_effect_that_changed_is_found() -> None:
    steps = (*STEPS[:-1], (8.5, "effect.look", "system:reconciler", {EFFECT_ROW: {"state": "unknown"}}), STEPS[-1])
    assert kinds(judge.judge(trial(), facts(steps), log())) == {judge.STATE}


def test_a_run_in_which_the_target_logged_nothing_fails() -> None:
    silent = Log({}, {}, {})
    assert judge.SILENT in kinds(judge.judge(trial(), facts(effects=[effect(state="proposed")]), silent))
    assert kinds(judge.judge_all([], None, silent)) == {judge.SILENT}  # type: ignore[arg-type]


def test_a_completed_run_without_a_refund_in_the_log_fails() -> None:
    assert judge.STATE in kinds(judge.judge(trial(), facts(), log(changes=0)))


def test_an_end_that_nobody_expected_is_found() -> None:
    assert kinds(judge.judge(trial(ends=["failed"]), facts(), log())) == {judge.END}


def test_a_reference_that_is_not_the_targets_is_found() -> None:
    assert kinds(judge.judge(trial(), facts(effects=[effect(reference="rf_9")]), log())) == {judge.STATE}


@pytest.mark.parametrize("receipt", [{"refunds": [{"id": "rf_000001"}]}, {"id": "rf_000002"}, "rf_000001"])
def test_a_run_that_ends_with_another_receipt_than_its_targets_is_found(receipt: Any) -> None:
    assert kinds(judge.judge(trial(), facts(state={"receipt": receipt}), log())) == {judge.STATE}
