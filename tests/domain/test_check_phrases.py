"""Both sides of a wake check are short phrases that a newcomer can read: never empty, never a bare hash."""

from __future__ import annotations

import re

import pytest

from approvals.domain.checks import phrases
from ledger.domain.phrases import reason
from ledger.domain.wakes import Answer, Check

DIGEST = "0123456789abcdef"
P, F, C, T = Answer.PASS, Answer.FAIL, Answer.CHANGED, Answer.CANNOT_TELL
TABLE = {
    Check("integrity", P, "intact", DIGEST, DIGEST): ("digest of the last checkpoint", "recomputed, the same"),
    Check("integrity", F, "chain-broken", DIGEST): ("digest of the last checkpoint", "chain broken"),
    Check("attempts", P, "counted", "3", "1"): ("at most 3", "1 of 3"),
    Check("code", P, "taken_over", "1", "2"): (
        "checkpoint of version 1",
        "the newest, version 2, may go on with it too",
    ),
    Check("code", P, "taken_over", "1", "1"): ("checkpoint of version 1", "the newest, version 1, goes on"),
    Check("code", F, "no_version_takes_over", "1", "2"): ("checkpoint of version 1", "no version takes it over"),
    Check("deadline", P, "none"): ("no deadline", "none to keep"),
    Check("deadline", P, "kept"): ("the deadline of its wait", "kept"),
    Check("deadline", C, "passed", "2026-11-30T07:42:00+00:00", "x"): ("30 Nov 2026, 07:42 UTC", "passed"),
    Check("deadline", F, "passed_hand_off"): ("the deadline of its wait", "passed"),
    Check("effects", P, "all_known"): ("calls of the run", "every outcome known"),
    Check("effects", F, "outcome_unknown", "in_flight"): ("call in flight", "an outcome is unknown"),
    Check("deadline", F, "unreconciled", "2026-11-30T07:42:00+00:00"): ("30 Nov 2026, 07:42 UTC", "passed"),
    Check("dispute", F, "unresolved", "committed"): ("recorded as committed", "newer evidence says otherwise"),
    Check("plan", F, "name_called_twice", "fee, pay"): ("called: fee, pay", "more than once each under this plan"),
    Check("retry", P, "may_be_tried", "throttled"): ("failed: throttled", "may be tried again"),
    Check("retry", F, "no_keys", "confirmed_absent"): ("failed: confirmed absent", "the target knows no keys"),
    Check("identity", F, "agent_inactive", "active", "inactive"): ("agent and principal active", "agent inactive"),
    Check("policy", P, "approve", "", "4"): ("the present policy counts", "policy 4: a person must approve"),
    Check("grant", P, "live", DIGEST, DIGEST): ("approved exactly this", "still this, still good"),
    Check("grant", P, "not_needed", "", DIGEST): ("no approval needed", "none needed"),
    Check("grant", F, "missing", "", DIGEST): ("no approval", "nobody has approved it"),
    Check("target", P, "same", DIGEST * 4, DIGEST * 4): ("version 01234567…", "unchanged"),
    Check("target", C, "moved", "v1", "v2"): ("version v1", "version v2"),
    Check("target", C, "moved", "v1", "v2 /amount /to"): ("version v1", "version v2, moved: amount, to"),
    Check("target", P, "immaterial", "v1", "v2"): ("version v1", "another version, all that matters unchanged"),
    Check("target", T, "timeout", "v1"): ("version v1", "timeout"),
    Check("scopes", F, ""): ("nothing recorded", "nothing observed"),
}


@pytest.mark.parametrize("check", TABLE, ids=lambda check: f"{check.name}-{check.reason}")
def test_each_side_is_a_phrase_and_hashes_stand_behind_it(check: Check) -> None:
    told = phrases(check)
    assert (told.recorded, told.observed) == TABLE[check]
    assert not re.search(r"[0-9a-f]{12}", told.recorded + told.observed)


def test_why_a_person_has_a_run_says_what_was_found_and_what_was_enough_of_it() -> None:
    assert reason("target:moved:asked_enough").endswith("moved; people were asked often enough.")
    assert "the target is set up otherwise now; people" in reason("grant:target-changed:asked_enough")
    assert reason("target:moved_unasked:replanned_enough").endswith("; it was planned anew often enough.")


def test_who_lost_a_run_and_how_often_is_told_as_it_was_counted() -> None:
    assert "claimed three times or more" in reason("poisoned") and "the last worker was lost" in reason("poisoned")
    assert "claimed ten times or more" in reason("no-progress")
