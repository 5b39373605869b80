"""Codes in words, for every sentence that tells how a run stands or why a person has it. No clock, no I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping

CHECKS: Mapping[str, str] = {
    "integrity": "Record intact",
    "identity": "Agent and principal active",
    "effects": "No outcome unknown",
    "attempts": "Attempts at this check",
    "code": "Code fits the state",
    "deadline": "Within its deadline",
    "policy": "Policy allows it",
    "dispute": "No outcome disputed",
    "retry": "May be tried again",
    "grant": "Approval still good",
    "target": "Target unchanged",
    "plan": "Plan can be made anew",
}

GRANTS: Mapping[str, str] = {
    "missing": "nobody has approved it",
    "expired": "the approval ran out",
    "changed": "the request is another now",
    "policy_changed": "the policy asks for something else now",
    "target-changed": "the target is set up otherwise now",
    "votes-lost": "a vote behind the approval no longer counts",
    "request-missing": "the request behind the approval is missing",
}
"""What a wake found wrong with leave."""

FINDINGS: Mapping[str, str] = {
    "attempts:never_finished": "no check of it came to an end",
    "code:no_version_takes_over": "no version takes over what was saved",
    "code:only_old_versions": "only an old version may go on",
    "effects:outcome_unknown": "it isn’t known what a call did",
    "deadline:passed": "its deadline passed",
    "deadline:passed_hand_off": "its deadline passed",
    "identity:agent_inactive": "the agent is deactivated",
    "identity:person_inactive": "the person it acts for is deactivated",
    "retry:no_keys": "the target knows no keys",
    "retry:key_forgotten": "the target may have forgotten the key",
    "retry:may_be_tried": "what failed may be tried again",
    "target:moved": "what it acts on has moved",
    "target:moved_unasked": "what it acts on has moved",
}
"""What the other checks found wrong, where the code's own words would leave somebody guessing."""

UNSEEN: Mapping[str, str] = {
    "breaker-open": "not asked: it stayed silent lately, and is asked again later",
    "no-time-left": "not asked: others took the time",
    "timed-out": "no answer in time",
    "not-connected": "no connection: nothing answers at its address",
    "no-reply": "no reply",
    "not-resolved": "its address was not found",
    "address-refused": "its address is none that may be called",
    "too-large": "its answer was too large",
    "no-version": "its answer names no version",
    "no-material": "its answer lacks the fields that matter",
    "not-observable": "it says of nothing how it stands",
    "look-failed": "the look-up failed here",
}
"""Why a target couldn't be asked, or its answer couldn't be used."""

ENOUGH: Mapping[str, str] = {
    "asked_enough": "people were asked often enough",
    "retried_enough": "it was tried often enough",
    "replanned_enough": "it was planned anew often enough",
}
"""Why a wake no longer does what a check speaks for, but gives the run to a person."""

HANDOFFS: Mapping[str, str] = {
    "poisoned": "It was claimed three times or more without a commit, and the last worker was lost.",
    "no-progress": "It was claimed ten times or more without a commit; the last worker gave it back, or its call was not allowed.",
    "effect-disputed": "New evidence contradicts the outcome that was recorded.",
    "effect-contradicted": "The run ended on an outcome that newer evidence contradicts.",
    "dispute:unresolved": "Two accounts of one call contradict each other: a person says which holds.",
    "deadline:unreconciled": "What a call did was still unknown when the time to find out was over.",
    "effect-differs": "The target has something under this key, but not what was asked for.",
    "reconcile-gave-up": "What a call did couldn’t be found out by asking: its target can’t be asked, or could not say in the time allowed.",
    "retry:no_keys": "The target knows no keys: only a person may have the call sent once more.",
    "retry:key_forgotten": "The target may have forgotten the key: only a person may have the call sent once more.",
    "retry:asked_and_refused": "Leave for another attempt was asked for and not given.",
    "plan:name_called_twice": (
        "What it was about to call has moved, and under this plan a name was called more than once: "
        "a new plan couldn’t tell what is done from what is still to do."
    ),
    "code:no_worker_of_old_version": "Only an old version may go on, and no worker of it came.",
}


def words(code: str) -> str:
    """A code as words: `effect-differs`, `effect_settled`, `grant:voided` → 'effect differs' and so on."""
    return re.sub(r"[-_:.]+", " ", code).strip()


def unseen(code: str) -> str:
    """Why a target couldn't be asked, or couldn't tell, in words."""
    status = re.fullmatch(r"http-(\d{3})", code)
    return f"it answered {status[1]}" if status else UNSEEN.get(code, words(code))


def finding(code: str) -> str:
    """Why a wake decided as it did, as words: what a check found, and what was enough of it."""
    check, _, found = code.partition(":")
    if check not in CHECKS:
        return words(found or code)
    why, _, enough = found.partition(":")
    told = {"grant": GRANTS.get(why, words(why)), "target": unseen(why)}.get(check, words(why))
    said = FINDINGS.get(f"{check}:{why}", told)
    return f"{said}; {ENOUGH.get(enough, words(enough))}" if enough else said


def reason(code: str) -> str:
    """Why a handoff was opened, as one line. Reasons of a decision are `check:reason`."""
    if code in HANDOFFS:
        return HANDOFFS[code]
    check, colon, _ = code.partition(":")
    if colon and check in CHECKS:
        return f"The check “{CHECKS[check]}” did not pass: {finding(code)}."
    return f"{words(code).capitalize()}."


def clause(sentence: str) -> str:
    """A sentence as a part of another one."""
    return f"{sentence[:1].lower()}{sentence[1:]}".rstrip(".")
