"""Codes in words, for every sentence that tells how a run stands or why a person has it. No clock, no I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping

CHECKS: Mapping[str, str] = {
    "integrity": "Record intact",
    "identity": "Agent and principal active",
    "effects": "No outcome unknown",
    "attempts": "Attempts left",
    "code": "Code fits the state",
    "deadline": "Within its deadline",
    "policy": "Policy allows it",
    "dispute": "No outcome disputed",
    "retry": "May be tried again",
    "grant": "Approval still good",
    "target": "Target unchanged",
    "plan": "Plan can be made anew",
    "dependencies": "Dependencies",
    "scopes": "Scopes of the key",
}

HANDOFFS: Mapping[str, str] = {
    "poisoned": "Three workers took it and none came back with a commit.",
    "effect-disputed": "New evidence contradicts the outcome that was recorded.",
    "effect-contradicted": "The run ended on an outcome that newer evidence contradicts.",
    "dispute:unresolved": "Two accounts of one call contradict each other: a person says which holds.",
    "deadline:unreconciled": "What a call did was still unknown when the time to find out was over.",
    "effect-differs": "The target has something under this key, but not what was asked for.",
    "reconcile-gave-up": "The target could not say what happened in the time allowed.",
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


def reason(code: str) -> str:
    """Why a handoff was opened, as one line. Reasons of a decision are `check:reason`."""
    if code in HANDOFFS:
        return HANDOFFS[code]
    check, colon, rest = code.partition(":")
    if colon and check in CHECKS:
        return f"The check “{CHECKS[check]}” did not pass: {words(rest)}."
    return f"{words(code).capitalize()}."
