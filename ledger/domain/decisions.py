"""Decide a wake: checks and facts in, one decision out. Pure, total, deterministic.

Every check that doesn't pass speaks for one decision; the gravest wins. So one more failed check can only make the decision graver, and what was
refused stays refused. What no table foresees goes to a person.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from ledger.domain.runs import Intent
from ledger.domain.wakes import Answer, Check, DecisionKind

CLEARS = frozenset({DecisionKind.RESUME, DecisionKind.ROUTE_OLD})
"""Decisions that let the present transition go on. A replan refuses it, withdraws what it proposed and opens another."""

GRAVITY = (
    DecisionKind.RESUME,
    DecisionKind.ROUTE_OLD,
    DecisionKind.ASK_AGAIN,
    DecisionKind.RETRY_LATER,
    DecisionKind.REPLAN,
    DecisionKind.FINISH,
    DecisionKind.RECONCILE,
    DecisionKind.HAND_OFF,
)
"""From the lightest to the gravest."""

RE_ASKS = 2
RETRIES = 8
BACK_OFF = timedelta(seconds=5)
LONGEST_BACK_OFF = timedelta(minutes=10)
REPLANS = 3

CONFLICT = "conflict"
"""A target moved: what its transition declares for that."""

SPEAKS: dict[tuple[str, Answer], DecisionKind | str] = {
    ("deadline", Answer.CHANGED): DecisionKind.RESUME,
    ("deadline", Answer.FAIL): DecisionKind.HAND_OFF,
    ("code", Answer.CHANGED): DecisionKind.ROUTE_OLD,
    ("effects", Answer.CHANGED): DecisionKind.RECONCILE,
    ("effects", Answer.FAIL): DecisionKind.RECONCILE,
    ("effects", Answer.CANNOT_TELL): DecisionKind.RECONCILE,
    ("policy", Answer.CHANGED): DecisionKind.ASK_AGAIN,
    ("grant", Answer.CHANGED): DecisionKind.ASK_AGAIN,
    ("grant", Answer.FAIL): DecisionKind.ASK_AGAIN,
    ("grant", Answer.CANNOT_TELL): DecisionKind.RETRY_LATER,
    ("retry", Answer.FAIL): DecisionKind.HAND_OFF,
    ("dispute", Answer.FAIL): DecisionKind.HAND_OFF,
    ("plan", Answer.FAIL): DecisionKind.HAND_OFF,
    ("target", Answer.CHANGED): CONFLICT,
    ("target", Answer.CANNOT_TELL): DecisionKind.RETRY_LATER,
}
"""(check, answer) → what it speaks for. What isn't listed, such as any doubt about integrity or identity, speaks for a person."""

OF_INTENT = frozenset({"integrity", "effects", "attempts", "dispute"})
"""The checks that count when a run is only to be ended."""

MOVED_UNASKED = "moved_unasked"
"""The reason of a target check: it moved, and nobody was asked about the effect, so that nobody can be asked again."""

WITHOUT = frozenset(
    {
        ("retry", "no_keys"),
        ("retry", "key_forgotten"),
        ("retry", "asked_and_refused"),
        ("policy", "denied"),
        ("target", "moved"),
        ("target", MOVED_UNASKED),
    }
)
"""Checks, with their reasons, that pass only where a person who was handed the run has woken it: it goes on without what they are about."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a decision needs beside the checks: the intent, what the transition declares for a conflict, how often it was asked and retried, and
    planned anew since anything was called."""

    intent: Intent
    on_conflict: str
    replan_to: str
    asks: int
    retries: int
    replans: int = 0


@dataclass(frozen=True, slots=True)
class Decided:
    decision: DecisionKind
    reasons: tuple[str, ...]


def decide(checks: Sequence[Check], facts: Facts) -> Decided:
    """The gravest of what the checks speak for. With an intent only what can keep a run from ending counts; an integrity failure always hands off."""
    intent = facts.intent is not Intent.NONE
    counting = [check for check in checks if not intent or check.name in OF_INTENT]
    spoken = [_speaks(check, facts) for check in counting if check.answer is not Answer.PASS]
    floor = DecisionKind.FINISH if intent else DecisionKind.RESUME
    decision = max([floor, *(kind for kind, _ in spoken)], key=GRAVITY.index)
    reasons = sorted({reason for kind, reason in spoken if kind is decision})
    if not reasons:
        reasons = [f"intent:{facts.intent}"] if intent else ["checks:passed"]
    return Decided(decision, tuple(reasons))


def _speaks(check: Check, facts: Facts) -> tuple[DecisionKind, str]:
    reason = check.code
    speaks = SPEAKS.get((check.name, check.answer), DecisionKind.HAND_OFF)
    kind = _conflict(check, facts) if speaks is CONFLICT else DecisionKind(speaks)
    if kind is DecisionKind.ASK_AGAIN and facts.asks >= RE_ASKS:
        return DecisionKind.HAND_OFF, f"{reason}:asked_enough"
    if kind is DecisionKind.RETRY_LATER and facts.retries >= RETRIES:
        return DecisionKind.HAND_OFF, f"{reason}:retried_enough"
    if kind is DecisionKind.REPLAN and facts.replans >= REPLANS:
        return DecisionKind.HAND_OFF, f"{reason}:replanned_enough"
    return kind, reason


def back_off(retries: int) -> timedelta:
    """How long the engine waits before it asks again, after so many retries before: it doubles with each."""
    return min(LONGEST_BACK_OFF, BACK_OFF * (1 << retries))


def given_up(opened_at: datetime, at: datetime) -> tuple[int, datetime]:
    """Of a back-off that began at a time and ends at another: how often the engine still asks, that one included, and when it hands the run to a
    person if nothing of it helps (each asking takes a little longer than this says)."""
    retries = next((number for number in range(RETRIES) if back_off(number) >= at - opened_at), RETRIES - 1)
    later = [back_off(number) for number in range(retries + 1, RETRIES)]
    return 1 + len(later), at + sum(later, timedelta())


def replans(check: Check, facts: Facts) -> bool:
    """Is this a target that moved, for which the transition declares another plan?"""
    moved = check.name == "target" and check.answer is Answer.CHANGED
    return moved and _conflict(check, facts) is DecisionKind.REPLAN


def of_person(check: Check, facts: Facts) -> bool:
    """Is this a target that moved, and for which the transition declares nothing that a machine could do?"""
    moved = check.name == "target" and check.answer is Answer.CHANGED
    return moved and _conflict(check, facts) is DecisionKind.HAND_OFF


def _conflict(check: Check, facts: Facts) -> DecisionKind:
    if facts.on_conflict == "replan" and facts.replan_to:
        return DecisionKind.REPLAN
    if facts.on_conflict == "ask_again" and check.reason != MOVED_UNASKED:
        return DecisionKind.ASK_AGAIN
    return DecisionKind.HAND_OFF
