"""Verdicts: what may be believed of a person, who says what happened and how they know. No clock, no I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ledger.domain.canonical import Body
from ledger.domain.drafts import Draft
from ledger.domain.effects.base import (
    OPEN,
    EffectRow,
    EffectState,
    FailCause,
    ReportKind,
    ReportRow,
    Said,
    move,
    report,
)
from ledger.domain.effects.endings import dispute, settled
from ledger.domain.effects.looks import fail, horizon
from ledger.domain.effects.permits import barred
from ledger.domain.effects.settles import committed, reopened
from ledger.domain.errors import LedgerError
from ledger.domain.waits.closing import Withdraw

if TYPE_CHECKING:
    from ledger.domain.views import RunView

LONGEST_REFERENCE = 200
VERDICTS = frozenset({FailCause.CONFIRMED_ABSENT, FailCause.REJECTED})


@dataclass(frozen=True, slots=True)
class Read:
    """What a person had read of an effect when they spoke: the attempt it was at, and the ordinal of its last report (0 where there was none)."""

    attempt: int
    ordinal: int


def check_read(read: Read, now: Read) -> None:
    """Refuse a word on an effect that isn't any more as it was read. Raises LedgerError `changed`."""
    if read != now:
        raise LedgerError(
            "changed",
            "something was told of this call after you read it",
            "Read what happened meanwhile, and say then what you found.",
            attempt=now.attempt,
            report=now.ordinal,
        )


@dataclass(frozen=True, slots=True)
class Judged:
    """What a person says happened, and how they know. `cause` goes with failed; `last_word` is what counted last, where that was a person's word."""

    outcome: EffectState
    evidence: Body
    cause: str = ""
    reference: str = ""
    last_word: ReportRow | None = None


def verdict(
    draft: Draft, view: RunView, effect: EffectRow, judged: Judged, withdraw: Withdraw | None = None
) -> EffectRow:
    """A person says what happened, with evidence.

    Out of `unknown` it decides, and that it was done ends a dispute with it; against a recorded outcome it reopens `failed` and disputes
    `committed`; of a dispute it says which account holds; where no machine may try a failed effect again, `confirmed_absent` gives leave for one
    more attempt. That it wasn't done, absent or refused, can be said once the call can't arrive any more.

    Raises LedgerError `invalid`, `wrong-state`.
    """
    failing = judged.outcome is EffectState.FAILED
    if judged.outcome not in (EffectState.COMMITTED, EffectState.FAILED) or failing != (judged.cause in VERDICTS):
        raise LedgerError(
            "invalid",
            "a verdict is committed, or failed as confirmed_absent or rejected",
            "Choose one of the three.",
        )
    if len(judged.reference) > LONGEST_REFERENCE:
        raise _too_long()
    draft.body(judged.evidence)
    moved = _judge(draft, view, effect, judged, withdraw)
    said = Said(
        kind=ReportKind.VERDICT,
        answer=str(judged.outcome),
        attempt=effect.attempt,
        cause=judged.cause,
        reference=judged.reference,
        evidence=(judged.evidence.id, judged.evidence.commitment),
    )
    report(draft, effect, said, counted=moved is not None)
    return moved or effect


def check_reference(reference: str, others: Sequence[EffectRow]) -> None:
    """One thing at a target proves one call: a reference copied from another one would hide that nobody looked.

    Raises LedgerError `reference-taken`.
    """
    if others:
        raise LedgerError(
            "reference-taken",
            f"the reference {reference} stands already for another call at this target, “{others[0].name}”",
            "Look which of the two it belongs to. Where one thing at the target covers both, write after it what tells this part apart.",
            run=str(others[0].run_id),
            effect=str(others[0].id),
        )


CORRECTED = "reference_corrected"
"""The cause of a verdict that only gives another reference for what stays recorded as done."""


def correct(draft: Draft, effect: EffectRow, judged: Judged) -> EffectRow:
    """A person gives another reference for what a person settled as done: the outcome stays, and what was said before stays in the record.

    Raises LedgerError `invalid` without another one, `wrong-state` where the reference isn't a person's word, or the outcome is open or disputed.
    """
    word = judged.last_word
    if effect.state is not EffectState.COMMITTED or effect.disputed or effect.held == EffectState.FAILED:
        raise LedgerError(
            "wrong-state",
            "only what is recorded as done, and isn't disputed, has a reference to correct",
            "Read it again: say first what happened.",
            state=str(effect.state),
        )
    if word is None or word.kind is not ReportKind.VERDICT or word.reference != effect.reference:
        raise LedgerError(
            "wrong-state",
            "its reference was told by the target or by a worker, and no person's word replaces that",
            "If it wasn't done, say so: it is disputed then, with your evidence.",
        )
    if not judged.reference or judged.reference == effect.reference:
        raise LedgerError("invalid", "that is the reference it has", "Give the target's own one, as it is right.")
    if len(judged.reference) > LONGEST_REFERENCE:
        raise _too_long()
    draft.body(judged.evidence)
    moved = move(draft, effect, reference=judged.reference)
    said = Said(
        kind=ReportKind.VERDICT,
        answer=str(effect.state),
        attempt=effect.attempt,
        cause=CORRECTED,
        reference=judged.reference,
        evidence=(judged.evidence.id, judged.evidence.commitment),
    )
    report(draft, effect, said, counted=True)
    return moved


def _too_long() -> LedgerError:
    return LedgerError(
        "invalid",
        f"the reference has more than {LONGEST_REFERENCE} characters",
        "Send the target's own reference.",
        field="reference",
    )


def _check_over(draft: Draft, view: RunView, effect: EffectRow, judged: Judged) -> None:
    """Nobody can have seen that a call which may still arrive didn't happen, nor that its target refused it."""
    until = horizon(effect, view.targets[effect.target_id])
    if judged.outcome is EffectState.FAILED and until is not None and draft.at < until:
        raise LedgerError(
            "wrong-state",
            "the call may still arrive, or not show yet",
            "Look once more after the time given here, and say then what you found.",
            until=until.isoformat(),
        )


def _judge(
    draft: Draft, view: RunView, effect: EffectRow, judged: Judged, withdraw: Withdraw | None
) -> EffectRow | None:
    reference = judged.reference or effect.reference
    if effect.disputed and effect.state not in OPEN:
        return _resolved(draft, view, effect, judged, withdraw)
    if effect.state is EffectState.UNKNOWN:
        _check_over(draft, view, effect, judged)
        if judged.outcome is EffectState.FAILED:
            moved = fail(draft, effect, "verdict", FailCause(judged.cause), reference)
        else:
            moved = committed(draft, view, effect, "verdict", reference=reference, result_id=None)
            if effect.disputed:
                moved = move(draft, moved, disputed=False, held=EffectState.COMMITTED)
        settled(draft, view, moved, withdraw, by_person=True)
        return moved
    if judged.cause == FailCause.CONFIRMED_ABSENT and barred(
        effect, view.targets[effect.target_id], draft.at, judged.last_word
    ):
        _check_over(draft, view, effect, judged)
        moved = move(draft, effect, cause=FailCause.CONFIRMED_ABSENT, settled_at=draft.at)
        settled(draft, view, moved, withdraw, by_person=True)
        return moved
    if effect.state is EffectState.FAILED and judged.outcome is EffectState.COMMITTED:
        return reopened(draft, view, effect, reference=reference)
    if effect.state is EffectState.COMMITTED and judged.outcome is EffectState.FAILED:
        return dispute(draft, view, effect) if effect.held != EffectState.FAILED else None
    raise LedgerError(
        "wrong-state",
        f"an effect that is {effect.state} takes no such verdict",
        "Read it again: it may have been settled meanwhile.",
        state=str(effect.state),
    )


def _resolved(draft: Draft, view: RunView, effect: EffectRow, judged: Judged, withdraw: Withdraw | None) -> EffectRow:
    """Which of two accounts holds. What is recorded as done stays so, with what was found; what failed and was done after all is looked up."""
    if effect.state is EffectState.FAILED and judged.outcome is EffectState.COMMITTED:
        effect = move(draft, effect, disputed=False)
        return reopened(draft, view, effect, reference=judged.reference or effect.reference)
    _check_over(draft, view, effect, judged)
    held = str(judged.outcome) if effect.state is EffectState.COMMITTED else ""
    found = {"reference": judged.reference} if held == EffectState.COMMITTED and judged.reference else {}
    moved = move(draft, effect, disputed=False, held=held, **found)
    settled(draft, view, moved, withdraw, by_person=True)
    return moved
