"""Deciding a wake: pure, total, and never milder for one more failed check."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.decisions import CLEARS, GRAVITY, RE_ASKS, RETRIES, Facts, decide
from ledger.domain.runs import Intent
from ledger.domain.wakes import Answer, Check, DecisionKind

NAMES = (
    "integrity",
    "attempts",
    "code",
    "effects",
    "deadline",
    "identity",
    "policy",
    "grant",
    "target",
    "something_new",
)
PLAIN = Facts(Intent.NONE, "ask_again", "", 0, 0)

checks = st.lists(
    st.builds(
        Check, st.sampled_from(NAMES), st.sampled_from(list(Answer)), st.sampled_from(["moved", "moved_unasked", "x"])
    ),
    max_size=8,
)
facts = st.builds(
    Facts,
    st.sampled_from(list(Intent)),
    st.sampled_from(["ask_again", "replan", "hand_off"]),
    st.sampled_from(["", "assess"]),
    st.integers(0, RE_ASKS + 1),
    st.integers(0, RETRIES + 1),
)
unwell = st.sampled_from([answer for answer in Answer if answer is not Answer.PASS])


@given(checks, facts, st.sampled_from(NAMES), unwell)
def test_one_more_failed_check_never_turns_a_refusal_into_a_clearance(
    found: list[Check], known: Facts, name: str, answer: Answer
) -> None:
    before = decide(found, known).decision
    after = decide([*found, Check(name, answer, "x")], known).decision
    assert GRAVITY.index(after) >= GRAVITY.index(before)
    assert before in CLEARS or after not in CLEARS


@given(checks, facts, unwell)
def test_an_integrity_failure_always_hands_off(found: list[Check], known: Facts, answer: Answer) -> None:
    decided = decide([*found, Check("integrity", answer, "broken")], known)
    assert decided.decision is DecisionKind.HAND_OFF


@given(checks, facts)
def test_a_decision_is_total_deterministic_and_says_why(found: list[Check], known: Facts) -> None:
    decided = decide(found, known)
    assert decided == decide(list(reversed(found)), known)
    assert decided.reasons and all(decided.reasons)


@given(checks, facts)
def test_a_run_that_is_to_be_ended_is_never_cleared_to_go_on(found: list[Check], known: Facts) -> None:
    if known.intent is not Intent.NONE:
        assert decide(found, known).decision in {DecisionKind.FINISH, DecisionKind.RECONCILE, DecisionKind.HAND_OFF}


def test_what_no_table_foresees_goes_to_a_person() -> None:
    assert decide([Check("something_new", Answer.FAIL, "x")], PLAIN).decision is DecisionKind.HAND_OFF


def test_an_unknown_effect_is_reconciled_before_anybody_is_asked() -> None:
    found = [Check("effects", Answer.FAIL, "outcome_unknown"), Check("grant", Answer.FAIL, "missing")]
    assert decide(found, PLAIN).decision is DecisionKind.RECONCILE


def test_a_moved_target_does_what_its_transition_declares() -> None:
    moved = [Check("target", Answer.CHANGED, "moved")]
    told = {
        ("ask_again", ""): DecisionKind.ASK_AGAIN,
        ("replan", "assess"): DecisionKind.REPLAN,
        ("replan", ""): DecisionKind.HAND_OFF,
        ("hand_off", ""): DecisionKind.HAND_OFF,
    }
    for (conflict, to), expected in told.items():
        assert decide(moved, Facts(Intent.NONE, conflict, to, 0, 0)).decision is expected


def test_a_moved_target_that_nobody_was_asked_about_goes_to_a_person() -> None:
    assert decide([Check("target", Answer.CHANGED, "moved_unasked")], PLAIN).decision is DecisionKind.HAND_OFF


def test_after_two_re_asks_a_person_takes_it() -> None:
    missing = [Check("grant", Answer.FAIL, "missing")]
    assert decide(missing, Facts(Intent.NONE, "ask_again", "", RE_ASKS - 1, 0)).decision is DecisionKind.ASK_AGAIN
    assert decide(missing, Facts(Intent.NONE, "ask_again", "", RE_ASKS, 0)).decision is DecisionKind.HAND_OFF


def test_a_target_that_stays_silent_goes_to_a_person_in_the_end() -> None:
    silent = [Check("target", Answer.CANNOT_TELL, "timeout")]
    assert decide(silent, PLAIN).decision is DecisionKind.RETRY_LATER
    assert decide(silent, Facts(Intent.NONE, "ask_again", "", 0, RETRIES)).decision is DecisionKind.HAND_OFF
