"""Settle, late reports, and calls whose answer never came. No clock, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from ledger.domain import wakes
from ledger.domain.canonical import Body, commit
from ledger.domain.drafts import Draft
from ledger.domain.effects.base import (
    MACHINE,
    EffectRow,
    EffectState,
    FailCause,
    LookAnswer,
    ReportKind,
    ReportRow,
    Said,
    Settled,
    move,
    report,
)
from ledger.domain.effects.endings import contradicted, dispute, settled
from ledger.domain.errors import LedgerError
from ledger.domain.runs import Fence, Status
from ledger.domain.waits.closing import Withdraw

if TYPE_CHECKING:
    from ledger.domain.views import RunView

ACCEPTED_FOR = timedelta(hours=24)
"""How long a target that accepted a call may take to finish it."""
WORKER_CAUSES = frozenset({FailCause.NOT_DISPATCHED, FailCause.THROTTLED, FailCause.REJECTED})
APPLIED = frozenset({Settled.COMMITTED, Settled.ACCEPTED})
WORKERS = frozenset({ReportKind.SETTLE, ReportKind.LATE, ReportKind.LAPSE})
"""Kinds of reports whose word is a worker's: a lapse has it where a late receipt counted."""
DONE_WORDS = frozenset({str(Settled.COMMITTED), str(LookAnswer.APPLIED)})
"""Answers by which a report says that the call did what it was for."""


@dataclass(frozen=True, slots=True)
class SettleSpec:
    """What a worker reports of its attempt. `cause` goes with failed, `ask_after` (seconds) with accepted; `result` is canonical JSON."""

    attempt: int
    outcome: Settled
    cause: str = ""
    reference: str = ""
    result: bytes | None = None
    ask_after: int | None = None


def check_spec(spec: SettleSpec) -> None:
    """Refuse a report that contradicts itself. Raises LedgerError `invalid`."""
    if (spec.outcome is Settled.FAILED) != bool(spec.cause):
        raise LedgerError(
            "invalid", "cause belongs to failed, and failed needs one", "Send outcome failed with a cause."
        )
    if spec.cause and spec.cause not in WORKER_CAUSES:
        raise LedgerError(
            "invalid",
            "a worker can't say that",
            f"Send one of {', '.join(sorted(WORKER_CAUSES))}; anything else is unknown.",
        )
    if len(spec.reference) > 200:
        raise LedgerError(
            "invalid", "the reference has more than 200 characters", "Send the target's own short reference."
        )
    if spec.ask_after is not None and (spec.outcome is not Settled.ACCEPTED or spec.ask_after < 0):
        raise LedgerError("invalid", "ask_after goes with accepted, in seconds from 0", "Leave it out.")


def replayed(
    spec: SettleSpec, reports: Sequence[ReportRow], evidence: Mapping[UUID, tuple[bytes, bytes]]
) -> ReportRow | None:
    """The earlier report that this one repeats, by attempt and content; `evidence` maps a body's id to (salt, commitment)."""
    return next(
        (
            row
            for row in reports
            if row.attempt == spec.attempt
            and row.kind in (ReportKind.SETTLE, ReportKind.LATE)
            and (row.answer, row.cause, row.reference) == (str(spec.outcome), spec.cause, spec.reference)
            and _same_result(spec.result, row, evidence)
        ),
        None,
    )


def _same_result(result: bytes | None, row: ReportRow, evidence: Mapping[UUID, tuple[bytes, bytes]]) -> bool:
    if row.evidence_id is None or result is None:
        return row.evidence_id is None and result is None
    salt, commitment = evidence[row.evidence_id]
    return commit(salt, result) == commitment


@dataclass(frozen=True, slots=True)
class _Report:
    """A settle on its way through the table."""

    draft: Draft
    view: RunView
    effect: EffectRow
    spec: SettleSpec
    holder: bool
    result_id: UUID | None
    withdraw: Withdraw | None
    told: Sequence[ReportRow]

    @property
    def unkeyed(self) -> bool:
        """Does its target take every attempt for a call of its own?"""
        return not self.view.targets[self.effect.target_id].keyed

    def standing(self) -> frozenset[int]:
        """The attempts that workers said were carried out, and no person has found undone since."""
        attempts: set[int] = set()
        for row in self.told:
            if row.counted and row.kind is ReportKind.VERDICT and row.answer == EffectState.FAILED:
                attempts.clear()
            elif row.counted and row.kind in WORKERS and row.answer == Settled.COMMITTED:
                attempts.add(row.attempt)
        return frozenset(attempts)

    def settling(self) -> int:
        """The attempt that the last word counted as done was about."""
        words = (row.attempt for row in reversed(self.told) if row.counted and row.answer in DONE_WORDS)
        return next(words, self.effect.attempt)


def settle(
    draft: Draft,
    view: RunView,
    effect: EffectRow,
    spec: SettleSpec,
    *,
    holder: bool,
    called: bool,
    fence: Fence,
    result: Body | None = None,
    withdraw: Withdraw | None = None,
    told: Sequence[ReportRow] = (),
) -> tuple[EffectRow, bool]:
    """Record what a worker says of its attempt, and let it count where the table allows. Answers the effect and whether it counted.

    `holder` is whether the worker owns the run under its present fence, `called` whether it was permitted this attempt: what anybody else says
    is evidence and moves nothing. `told` is what workers and all that counted said before, oldest first.
    Raises LedgerError `wrong-state` for an attempt that was never permitted
    to the holder.
    """
    check_spec(spec)
    if holder and (spec.attempt < 1 or spec.attempt > effect.attempt):
        raise LedgerError(
            "wrong-state",
            f"attempt {spec.attempt} of the effect was never permitted",
            "Ask for a permit before the call.",
            attempt=effect.attempt,
        )
    if result is not None:
        draft.body(result)
    current = holder and spec.attempt == effect.attempt
    asked = _Report(draft, view, effect, spec, current, result.id if result else None, withdraw, told)
    moved = _TABLE.get(effect.state, _evidence)(asked) if called else None
    counted = moved is not None
    said = Said(
        kind=ReportKind.SETTLE if current else ReportKind.LATE,
        answer=str(spec.outcome),
        attempt=spec.attempt,
        cause=spec.cause,
        reference=spec.reference,
        evidence=(result.id, result.commitment) if result else None,
        fence=fence,
    )
    report(draft, effect, said, counted=counted)
    return moved or effect, counted


def _evidence(asked: _Report) -> EffectRow | None:
    return None


def _earlier(asked: _Report) -> EffectRow | None:
    """An earlier attempt was held to be absent and has been carried out after all, at a target that takes each attempt for a call of its own."""
    if not (asked.unkeyed and asked.spec.outcome in APPLIED and asked.spec.attempt < asked.effect.attempt):
        return None
    return dispute(asked.draft, asked.view, asked.effect)


def _twice(asked: _Report) -> EffectRow | None:
    """It is recorded as done, and another attempt than the one that this was taken from was carried out as well."""
    if not asked.unkeyed or asked.spec.outcome not in APPLIED:
        return None
    attempt, standing = asked.spec.attempt, asked.standing()
    other = attempt not in standing if standing else attempt != asked.settling()
    return dispute(asked.draft, asked.view, asked.effect) if other else None


def _in_flight(asked: _Report) -> EffectRow | None:
    if not asked.holder:
        return _earlier(asked)
    draft, effect, spec = asked.draft, asked.effect, asked.spec
    reference = spec.reference or effect.reference
    if spec.outcome is Settled.COMMITTED:
        return committed(draft, asked.view, effect, "settle", reference=reference, result_id=asked.result_id)
    if spec.outcome is Settled.FAILED:
        state = MACHINE.step(effect.state, "settle", EffectState.FAILED)
        return move(
            draft,
            effect,
            state=state,
            cause=spec.cause,
            reference=reference,
            result_id=asked.result_id,
            due_at=None,
            settled_at=draft.at,
        )
    if spec.outcome is Settled.UNKNOWN:
        return unknown(draft, effect, "settle", reference=reference)
    until = draft.at + ACCEPTED_FOR
    due = draft.at + timedelta(seconds=spec.ask_after or 0)
    return move(draft, effect, accepted=True, reference=reference, answer_by=until, due_at=min(due, until), looks=0)


def _unknown(asked: _Report) -> EffectRow | None:
    """A receipt counts where nobody else can be asked. That of an earlier attempt says nothing about this one where each is a call of its own."""
    draft, effect, spec = asked.draft, asked.effect, asked.spec
    if asked.unkeyed and spec.outcome in APPLIED and spec.attempt < effect.attempt:
        return _earlier(asked)
    if spec.outcome is Settled.COMMITTED and asked.view.targets[effect.target_id].lookup is None:
        return _receipt(asked)
    move(draft, effect, due_at=draft.at, reference=effect.reference or spec.reference)
    return None


def _receipt(asked: _Report) -> EffectRow:
    reference = asked.spec.reference or asked.effect.reference
    moved = committed(asked.draft, asked.view, asked.effect, "receipt", reference=reference, result_id=asked.result_id)
    twice = asked.unkeyed and asked.standing() - {asked.spec.attempt}
    disputed = dispute(asked.draft, asked.view, moved) if twice else None
    if disputed is not None:
        return disputed
    settled(asked.draft, asked.view, moved, asked.withdraw)
    return moved


def _failed(asked: _Report) -> EffectRow | None:
    """Somebody says it happened although it is recorded as not done: nothing is tried again before the target was asked."""
    if asked.spec.outcome not in APPLIED:
        return None
    return reopened(asked.draft, asked.view, asked.effect, reference=asked.effect.reference or asked.spec.reference)


_TABLE: Mapping[EffectState, Callable[[_Report], EffectRow | None]] = {
    EffectState.IN_FLIGHT: _in_flight,
    EffectState.UNKNOWN: _unknown,
    EffectState.FAILED: _failed,
    EffectState.COMMITTED: _twice,
}


def committed(
    draft: Draft, view: RunView, effect: EffectRow, event: str, *, reference: str, result_id: UUID | None
) -> EffectRow:
    """It happened. Final."""
    state = MACHINE.step(effect.state, event, EffectState.COMMITTED)
    return move(
        draft,
        effect,
        state=state,
        cause="",
        reference=reference,
        result_id=result_id or effect.result_id,
        due_at=None,
        settled_at=draft.at,
    )


def unknown(draft: Draft, effect: EffectRow, event: str, *, reference: str = "") -> EffectRow:
    """Nobody knows whether it happened; the target is asked at once."""
    state = MACHINE.step(effect.state, event, EffectState.UNKNOWN)
    return move(draft, effect, state=state, reference=reference or effect.reference, due_at=draft.at, looks=0)


def reopened(draft: Draft, view: RunView, effect: EffectRow, *, reference: str) -> EffectRow:
    """A failed effect may have happened after all."""
    state = MACHINE.step(effect.state, "contradiction")
    moved = move(draft, effect, state=state, cause="", reference=reference, due_at=draft.at, looks=0, settled_at=None)
    contradicted(draft, view, moved, blocks=False)
    return moved


def lapse_effects(draft: Draft, view: RunView) -> tuple[EffectRow, ...]:
    """Ownership ended with calls out: each becomes unknown, never failed. What a target has accepted stays with the reconciler."""
    return _lapse(draft, [e for e in view.effects if e.state is EffectState.IN_FLIGHT and not e.accepted], "lease")


def expire(
    draft: Draft, view: RunView, receipts: Mapping[UUID, ReportRow] | None = None, withdraw: Withdraw | None = None
) -> tuple[EffectRow, ...]:
    """Calls whose `answer_by` has passed become unknown, lease or no lease; or done, where nobody can be asked and `receipts` has, by effect, what a
    worker who was permitted the attempt reported while it counted for evidence only."""
    late = [
        effect
        for effect in view.effects
        if effect.state is EffectState.IN_FLIGHT and effect.answer_by is not None and effect.answer_by <= view.now
    ]
    known = {
        effect.id: receipt
        for effect in late
        if (receipt := (receipts or {}).get(effect.id)) is not None
        and receipt.attempt == effect.attempt
        and view.targets[effect.target_id].lookup is None
    }
    done = tuple(_received(draft, view, effect, known[effect.id], withdraw) for effect in late if effect.id in known)
    moved = _lapse(draft, [effect for effect in late if effect.id not in known], "answer_by")
    if moved and view.head.status is Status.WAKING:
        wakes.queue(draft, view, "effect_unknown")
    return done + moved


def _received(
    draft: Draft, view: RunView, effect: EffectRow, receipt: ReportRow, withdraw: Withdraw | None
) -> EffectRow:
    """No answer came in time, and the receipt that came before counts from here on."""
    commitment = receipt.evidence_commitment
    said = Said(
        ReportKind.LAPSE,
        str(Settled.COMMITTED),
        effect.attempt,
        cause="answer_by",
        reference=receipt.reference,
        evidence=(receipt.evidence_id, commitment) if receipt.evidence_id and commitment else None,
    )
    report(draft, effect, said, counted=True)
    moved = committed(
        draft,
        view,
        unknown(draft, effect, "lapse"),
        "receipt",
        reference=receipt.reference or effect.reference,
        result_id=receipt.evidence_id,
    )
    settled(draft, view, moved, withdraw)
    return moved


def _lapse(draft: Draft, effects: Sequence[EffectRow], cause: str) -> tuple[EffectRow, ...]:
    moved = []
    for effect in effects:
        report(draft, effect, Said(ReportKind.LAPSE, "unknown", effect.attempt, cause=cause), counted=True)
        moved.append(unknown(draft, effect, "lapse"))
    return tuple(moved)
