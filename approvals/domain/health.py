"""How a run stands, for a list: one short sentence and what is not as it should be. No clock, no I/O.

Health is computed, never stored: a wait past its time, a silent worker, a run that nobody claims, an outcome that nobody knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from approvals.labels import CAUSES, DEADLINES, MEMBERS, reason, words
from ledger.domain.effects import EffectState
from ledger.domain.endings import Reason, why
from ledger.domain.explain import at
from ledger.domain.runs import Intent, Status
from ledger.domain.waits import Internal, MemberState, SetMode, silence

UNCLAIMED_AFTER = timedelta(minutes=5)
OVERDUE_AFTER = timedelta(seconds=60)
"""The sweep needs a moment: what is younger is not late yet."""

INTERNAL = {
    Internal.RETRY_LATER: "Tries again by itself",
    Internal.RECONCILE: "Waits until the outcome of “{effect}” is known",
    Internal.ASK_AGAIN: "Waits for “{effect}” to be approved again",
}
ENDS = {Intent.CANCEL: "to be cancelled", Intent.FAIL: "to fail"}
DONE = {
    Status.COMPLETED: "Completed",
    Status.FAILED: "Failed",
    Status.CANCELLED: "Cancelled",
}


@dataclass(frozen=True, slots=True)
class Around:
    """What stands around a run's head: its rows as read, None or empty where there is nothing open."""

    lease: Any = None
    worker: str = ""
    wait: Any = None
    members: Sequence[Any] = ()
    wake: Any = None
    clearance: Any = None
    handoff: Any = None
    owner: str = ""
    effects: Sequence[Any] = ()
    ending: Reason | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """One sentence, who or what can act, and the code of what is wrong ('' when all is well)."""

    sentence: str
    actor: str = ""
    health: str = ""


def standing(head: Any, around: Around, now: datetime) -> Standing:
    """How a run stands now. `head` is its head as read; times are aware."""
    status = Status(head.status)
    if status in DONE:
        disputed = any(effect.disputed for effect in around.effects)
        because = f": {why(around.ending)}" if around.ending is not None else ""
        return Standing(f"{DONE[status]}{because}.", "", "disputed" if disputed else "")
    found = _STANDINGS[status](head, around, now)
    health = _outcomes(around) if found.health != "blocked" else found.health
    health = health or found.health
    intent = ENDS.get(Intent(head.intent), "")
    sentence = f"{found.sentence} It is {intent}." if intent else found.sentence
    return Standing(sentence, found.actor, health)


def _outcomes(around: Around) -> str:
    if any(effect.disputed for effect in around.effects):
        return "disputed"
    return "unknown" if any(effect.state == EffectState.UNKNOWN for effect in around.effects) else ""


def _running(head: Any, around: Around, now: datetime) -> Standing:
    worker = around.worker or "A worker"
    lease = around.lease
    if lease is not None and lease.active and lease.expires_at + OVERDUE_AFTER <= now:
        return Standing(f"{worker} has been silent past its lease in “{head.transition}”.", "the sweep", "lease")
    out = [effect.name for effect in around.effects if effect.state == EffectState.IN_FLIGHT]
    if out:
        return Standing(f"{worker} works on “{head.transition}”; the call “{out[0]}” is out.", "the worker")
    return Standing(f"{worker} works on “{head.transition}”.", "the worker")


def _waiting(head: Any, around: Around, now: datetime) -> Standing:
    wait = around.wait
    if wait is None:
        return Standing("Waits, and nothing says for what.", "an operator", "overdue")
    names = {effect.id: effect.name for effect in around.effects}
    open_members = [member for member in around.members if member.state == MemberState.OPEN]
    what = _awaited(wait, open_members, names)
    overdue = wait.due_at + OVERDUE_AFTER <= now
    action, when = silence(wait, around.members)
    late = "Its time has passed." if overdue else f"If nothing comes, {DEADLINES[action]} at {at(when)}."
    actor = _who(open_members, names)
    return Standing(f"{what}. {late}", actor, "overdue" if overdue else "")


def _awaited(wait: Any, members: Sequence[Any], names: dict[Any, str]) -> str:
    if wait.internal in INTERNAL:
        effect = next((names.get(member.effect_id, "") for member in members if member.effect_id), "the call")
        return INTERNAL[wait.internal].format(effect=effect)
    parts = [member_words(member, names) for member in members[:3]]
    link = " or " if wait.mode == SetMode.ANY else " and "
    text = link.join(part[0].lower() + part[1:] for part in parts)
    more = f" and {len(members) - 3} more" if len(members) > 3 else ""
    return f"Waits for {text}{more}" if text else "Waits for its wait to be looked at"


def member_words(member: Any, names: dict[Any, str]) -> str:
    """What a member waits for."""
    effect = names.get(member.effect_id, "an effect")
    event = f"“{member.event_type}”" + (f" of {member.event_subject}" if member.event_subject else "")
    return MEMBERS[member.kind].format(effect=effect, event=event)


def _who(members: Sequence[Any], names: dict[Any, str]) -> str:
    kinds = {member.kind for member in members}
    if "approval" in kinds:
        return "an approver"
    if "event" in kinds:
        return "whoever sends the event"
    return "the reconciler, or an operator" if "effect" in kinds else ""


def _waking(head: Any, around: Around, now: datetime) -> Standing:
    wake = around.wake
    if wake is None:
        return Standing("Is to be woken, and no wake is open.", "the sweep", "unchecked")
    if wake.state == "checking":
        return Standing("Its wake checks run now.", "the wake check", "")
    if wake.due_at > now:
        return Standing("Will be checked again soon.", "the wake check")
    late = wake.due_at + OVERDUE_AFTER <= now
    if late:
        return Standing(f"A check before “{head.transition}” is overdue.", "the sweep", "unchecked")
    return Standing(f"Is checked before “{head.transition}” may go on.", "the wake check")


def _ready(head: Any, around: Around, now: datetime) -> Standing:
    versions = " or ".join(around.clearance.versions) if around.clearance is not None else head.version
    late = head.moved_at + UNCLAIMED_AFTER <= now
    words_ = "no worker has claimed it" if late else "the next worker takes it"
    return Standing(
        f"Cleared for “{head.transition}”; {words_} (version {versions}).",
        f"a worker of version {versions}",
        "unclaimed" if late else "",
    )


def _blocked(head: Any, around: Around, now: datetime) -> Standing:
    handoff = around.handoff
    if handoff is None:
        return Standing("Is blocked, and no handoff is open.", "an operator", "blocked")
    if around.owner:
        return Standing(f"{reason(handoff.reason)} {around.owner} has taken it.", around.owner, "blocked")
    taken = "Nobody took it in its time." if handoff.escalated_at else "Nobody has taken it yet."
    return Standing(f"{reason(handoff.reason)} {taken}", "an operator", "blocked")


_STANDINGS = {
    Status.RUNNING: _running,
    Status.WAITING: _waiting,
    Status.WAKING: _waking,
    Status.READY: _ready,
    Status.BLOCKED: _blocked,
}


def cause(code: str) -> str:
    """Why an effect failed or was withdrawn, in words."""
    return CAUSES.get(code, words(code))
