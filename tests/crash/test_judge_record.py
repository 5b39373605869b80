"""A judge that can't fail is worthless: a broken chain and a record that says another thing than the target's log must be found."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.crash import judge
from tests.crash.judge import Log
from tests.crash.judged import EFFECT_ROW, KEY, STEPS, TWO_PERMITS, effect, facts, kinds, log, report, trial


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
