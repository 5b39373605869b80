"""Look-ups: what may be believed of a target. No clock, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from ledger.domain.authority import GrantState
from ledger.domain.canonical import Body
from ledger.domain.drafts import Draft
from ledger.domain.effects.base import (
    MACHINE,
    EffectRow,
    EffectState,
    FailCause,
    LookAnswer,
    ReportKind,
    Said,
    TargetRow,
    move,
    report,
)
from ledger.domain.effects.endings import dispute, settled, to_person
from ledger.domain.effects.settles import committed, reopened, unknown
from ledger.domain.errors import LedgerError
from ledger.domain.runs import ENDED, Intent, Status
from ledger.domain.waits.closing import Withdraw

if TYPE_CHECKING:
    from ledger.domain.views import RunView

LONGEST_PAUSE = timedelta(seconds=300)
LOOKS_BEFORE_GIVING_UP = 12
LOOKING_FOR = timedelta(hours=24)
LOOKS_IN_ALL = 300
"""So many looks, each after its pause, take longer than a day: how often a target is asked that always says that it is still at it."""
PARKED = timedelta(hours=6)
"""Between looks once a person has been asked: an answer may still come."""
WHILE_RUNNING = timedelta(seconds=30)
"""A run isn't taken from its holder to be handed to a person; it is looked at again this much later."""

FORGOTTEN = "key-forgotten"
NO_LOOKUP = "no-lookup"
NO_LEAVE, STOPPED = "leave-ended", "run-ending"
HOPELESS = frozenset({FORGOTTEN, NO_LOOKUP, NO_LEAVE, STOPPED})
"""Causes of `cannot_tell` that asking again doesn't cure."""


@dataclass(frozen=True, slots=True)
class Look:
    """A target's answer. `asked_at` is the database's clock before the question was sent, `attempt` the one it was about; `evidence` is the reply as
    it came, `result` what an effect that was applied has for its result."""

    answer: LookAnswer
    asked_at: datetime
    attempt: int
    reference: str = ""
    cause: str = ""
    evidence: Body | None = None
    result: Body | None = None


def pause(looks: int) -> timedelta:
    """How long to wait after so many looks: 1, 2, 4, 8 … seconds, at most five minutes."""
    return min(timedelta(seconds=2 ** min(looks, 9)), LONGEST_PAUSE)


def horizon(effect: EffectRow, target: TargetRow) -> datetime | None:
    """From when on `absent` may be believed: the last attempt, or its last replay, can no longer arrive, and what arrived is visible."""
    return effect.answer_by + timedelta(seconds=target.visibility_delay) if effect.answer_by is not None else None


def remembered(effect: EffectRow, target: TargetRow, at: datetime) -> bool:
    """Is the target still trusted to know the effect's key?"""
    return not target.keyed or (
        effect.first_permit_at is not None and at < effect.first_permit_at + target.remembers_for
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    draft: Draft
    view: RunView
    effect: EffectRow
    target: TargetRow
    look: Look
    withdraw: Withdraw | None

    @property
    def reference(self) -> str:
        return self.look.reference or self.effect.reference

    def late_enough(self) -> bool:
        """Was it asked after the horizon, so that `absent` means that it never happened?"""
        moment = horizon(self.effect, self.target)
        return moment is not None and self.look.asked_at >= moment


def apply_look(
    draft: Draft, view: RunView, effect: EffectRow, look: Look, withdraw: Withdraw | None = None
) -> tuple[EffectRow, bool]:
    """Record a target's answer and let it count where the table allows. Answers the effect and whether it counted."""
    if look.evidence is not None:
        draft.body(look.evidence)
    moved = None
    if look.attempt == effect.attempt or look.answer is LookAnswer.APPLIED:
        asked = _Asked(draft, view, effect, view.targets[effect.target_id], look, withdraw)
        moved = _TABLE.get(effect.state, _nothing)(asked)
    said = Said(
        kind=ReportKind.LOOKUP,
        answer=str(look.answer),
        attempt=look.attempt,
        cause=look.cause,
        reference=look.reference,
        evidence=(look.evidence.id, look.evidence.commitment) if look.evidence else None,
    )
    report(draft, effect, said, counted=moved is not None and moved.state is not effect.state)
    return moved or effect, moved is not None


def _nothing(asked: _Asked) -> EffectRow | None:
    return None


def _in_flight(asked: _Asked) -> EffectRow | None:
    draft, effect, answer = asked.draft, asked.effect, asked.look.answer
    if answer is LookAnswer.DIFFERS:
        return unknown(draft, effect, "look", reference=asked.reference)
    if effect.accepted and answer is LookAnswer.APPLIED:
        return _applied(asked)
    if effect.accepted and answer is LookAnswer.REFUSED:
        return _not_done(asked, FailCause.REJECTED)
    overdue = effect.answer_by is not None and draft.at >= effect.answer_by
    if overdue and asked.target.lookup is None:
        return None
    if overdue:
        return unknown(draft, effect, "look", reference=asked.reference)
    if not effect.accepted or effect.answer_by is None:
        return None
    return _later(asked, effect.answer_by)


def _unknown(asked: _Asked) -> EffectRow | None:
    match asked.look.answer:
        case LookAnswer.APPLIED:
            return _applied(asked)
        case LookAnswer.REFUSED:
            return _not_done(asked, FailCause.REJECTED)
        case LookAnswer.ABSENT:
            return _absent(asked)
        case LookAnswer.DIFFERS:
            return _hand_off(asked, "effect-differs")
        case LookAnswer.IN_PROGRESS:
            return _later(asked) if not _too_long(asked) else _hand_off(asked, "reconcile-gave-up")
        case LookAnswer.CANNOT_TELL:
            hopeless = asked.look.cause in HOPELESS or asked.effect.looks + 1 >= LOOKS_BEFORE_GIVING_UP
            return _hand_off(asked, "reconcile-gave-up") if hopeless or _too_long(asked) else _later(asked)


def _absent(asked: _Asked) -> EffectRow:
    if not remembered(asked.effect, asked.target, asked.look.asked_at):
        return _hand_off(asked, "reconcile-gave-up")
    if asked.late_enough():
        return _not_done(asked, FailCause.CONFIRMED_ABSENT)
    return _later(asked, horizon(asked.effect, asked.target))


def _failed(asked: _Asked) -> EffectRow | None:
    if asked.look.answer is LookAnswer.APPLIED:
        return reopened(asked.draft, asked.view, asked.effect, reference=asked.reference)
    return _disputed(asked) if asked.look.answer is LookAnswer.DIFFERS else None


def _committed(asked: _Asked) -> EffectRow | None:
    answer = asked.look.answer
    if asked.effect.held == EffectState.FAILED:
        return _disputed(asked) if answer is LookAnswer.APPLIED else None
    gone = (
        answer is LookAnswer.ABSENT
        and asked.late_enough()
        and remembered(asked.effect, asked.target, asked.look.asked_at)
    )
    return _disputed(asked) if gone or answer in (LookAnswer.REFUSED, LookAnswer.DIFFERS) else None


_TABLE: Mapping[EffectState, Callable[[_Asked], EffectRow | None]] = {
    EffectState.IN_FLIGHT: _in_flight,
    EffectState.UNKNOWN: _unknown,
    EffectState.FAILED: _failed,
    EffectState.COMMITTED: _committed,
}


def _applied(asked: _Asked) -> EffectRow:
    result = asked.look.result
    if result is not None:
        asked.draft.body(result)
    moved = committed(
        asked.draft,
        asked.view,
        asked.effect,
        "look",
        reference=asked.reference,
        result_id=result.id if result else None,
    )
    settled(asked.draft, asked.view, moved, asked.withdraw)
    return moved


def _not_done(asked: _Asked, cause: FailCause) -> EffectRow:
    moved = fail(asked.draft, asked.effect, "look", cause, asked.reference)
    settled(asked.draft, asked.view, moved, asked.withdraw)
    return moved


def fail(draft: Draft, effect: EffectRow, event: str, cause: FailCause, reference: str) -> EffectRow:
    """It didn't happen, for this cause."""
    state = MACHINE.step(effect.state, event, EffectState.FAILED)
    return move(draft, effect, state=state, cause=cause, reference=reference, due_at=None, settled_at=draft.at)


def _later(asked: _Asked, at_latest: datetime | None = None) -> EffectRow:
    due = asked.draft.at + pause(asked.effect.looks)
    if at_latest is not None:
        due = min(due, max(at_latest, asked.draft.at))
    return move(asked.draft, asked.effect, looks=asked.effect.looks + 1, due_at=due, reference=asked.reference)


def _too_long(asked: _Asked) -> bool:
    """By the clock, or by the number of looks: where the target is asked by replay, each moves `answer_by` on."""
    effect = asked.effect
    past = effect.answer_by is not None and asked.draft.at > effect.answer_by + LOOKING_FOR
    return past or effect.looks + 1 >= LOOKS_IN_ALL


def _hand_off(asked: _Asked, reason: str) -> EffectRow:
    running = asked.view.head.status is Status.RUNNING
    if not running:
        to_person(asked.draft, asked.view, asked.effect, reason, "give_up")
    due = asked.draft.at + (WHILE_RUNNING if running else PARKED)
    return move(asked.draft, asked.effect, looks=asked.effect.looks + 1, due_at=due, reference=asked.reference)


def _disputed(asked: _Asked) -> EffectRow | None:
    return dispute(asked.draft, asked.view, asked.effect)


def begin_replay(
    draft: Draft, view: RunView, effect: EffectRow, leave: GrantState | None, send_within: timedelta
) -> None:
    """Record that the identical request is about to be sent again as a look-up, at a target that declares that it answers the first result.

    Where the first call never arrived this one acts, so it needs what a call needs: `leave` is the state of the grant that the last permit used (None
    where none was wanted), and the run must go on. It is sent within `send_within`, or not at all; until it can no longer arrive, nobody can know
    that the call wasn't done.

    Raises LedgerError `wrong-state` for another state or target, `expired` once the target may have forgotten the key, `grant-void` where the leave
    was taken back, `not-cleared` where the run is to end or has ended.
    """
    target = view.targets[effect.target_id]
    if effect.state is not EffectState.UNKNOWN or not target.first_result_replayed or not target.keyed:
        raise LedgerError(
            "wrong-state",
            "only an unknown effect is looked up by replay, and only where the target answers the first result again",
            "Look at the target, and say on the Reconcile page what you found.",
            state=str(effect.state),
        )
    if effect.first_permit_at is None or not remembered(effect, target, draft.at):
        raise LedgerError(
            "expired",
            "the target may have forgotten the key: a replay could act twice",
            "Somebody has to look at the target, and say on the Reconcile page what they found.",
        )
    if leave in (GrantState.REVOKED, GrantState.VOIDED):
        raise LedgerError("grant-void", "the leave for this call was taken back", "A person decides.", state=leave)
    if view.head.intent is not Intent.NONE or view.head.status in ENDED:
        raise LedgerError("not-cleared", "the run is to end, or has ended: a replay could act", "A person decides.")
    draft.before(effect.first_permit_at + target.remembers_for)
    until = draft.at + send_within + timedelta(seconds=target.call_limit)
    report(draft, effect, Said(ReportKind.REPLAY, "sent", effect.attempt), counted=False)
    move(
        draft,
        effect,
        due_at=draft.at + timedelta(seconds=target.call_limit),
        answer_by=max(until, effect.answer_by or until),
    )
