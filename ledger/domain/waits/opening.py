"""Open a wait: what may be waited for, and what is met already. No clock, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from ledger.domain import runs, wakes
from ledger.domain.drafts import Draft
from ledger.domain.errors import LedgerError
from ledger.domain.waits.closing import due, state_of, verdict
from ledger.domain.waits.rows import SET, MemberKind, MemberRow, MemberState, OnDeadline, Outcome, SetMode, SetState

if TYPE_CHECKING:
    from ledger.domain.effects import EffectRow
    from ledger.domain.views import RunView

PROPOSED, FAILED = "proposed", "failed"
UNSETTLED = frozenset({PROPOSED, "in_flight", "unknown"})

MAX_MEMBERS = 20
LONGEST_WAIT = timedelta(days=3_660)


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of asking: the outcome where nobody needs to be asked, otherwise until when it must be decided."""

    outcome: str = ""
    decide_by: datetime | None = None


Ask = Callable[["EffectRow", datetime], Asked]
"""Ask for leave for an effect, to be decided by a time at the latest."""


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """One thing to wait for: `at` for a timer (a length of time counts from when the wait opens), `effect` (its name) for an approval or an
    outcome, the rest for an event."""

    kind: MemberKind
    at: datetime | timedelta | None = None
    effect: str = ""
    source: str = ""
    type: str = ""
    subject: str = ""
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class WaitSpec:
    """What a run is to wait for, at the latest until `deadline` (a length of time counts from when the wait opens). `internal` names one of the
    engine's own waits."""

    mode: SetMode
    members: tuple[MemberSpec, ...]
    deadline: datetime | timedelta
    on_deadline: OnDeadline = OnDeadline.WAKE
    internal: str = ""


def open_set(
    draft: Draft,
    view: RunView,
    spec: WaitSpec,
    effects: Mapping[str, EffectRow],
    ask: Ask,
) -> UUID:
    """Open a wait set for a run that the draft has moved to waiting; one that is met already wakes it at once.

    One of the engine's own is opened by a wake, which its draft closes, and a run has one open wake: met already, it is due at once instead, and
    closes when it is looked at.
    `effects` are those that the members may name, as the same draft leaves them. Raises LedgerError `invalid` or `wrong-state`.
    """
    check(spec, effects, draft.at)
    wait_id = draft.mint()
    deadline = moment(spec.deadline, draft.at)
    decide_by = min([deadline, *_enough(spec, draft.at)])
    members = [
        _member(draft, view, wait_id, ordinal, member, effects, ask, decide_by)
        for ordinal, member in enumerate(spec.members)
    ]
    met = verdict(spec.mode, members)
    closing = None if spec.internal else met
    state, cause = (SET.step(SetState.OPEN, closing[0]), closing[1]) if closing else (SetState.OPEN, "")
    draft.insert(
        "wait_set",
        id=wait_id,
        run_id=view.run.id,
        instance_id=draft.heads("instance_id", view.head.instance_id),
        mode=spec.mode,
        state=state,
        internal=spec.internal,
        cause=cause,
        deadline=deadline,
        on_deadline=spec.on_deadline,
        due_at=draft.at if met else due(deadline, members),
        opened_at=draft.at,
        closed_at=draft.at if closing else None,
    )
    for member in members:
        if closing and member.state is MemberState.OPEN:
            member = replace(member, state=MemberState.CLOSED)
        draft.insert("wait_member", run_id=view.run.id, **member.columns())
    if closing:
        runs.to_status(draft, view, "wait_closed")
        wakes.queue(draft, view, f"wait_{state}")
    return wait_id


def _enough(spec: WaitSpec, now: datetime) -> list[datetime]:
    """When timers close a set for which any member is enough: nothing can be decided for it after that."""
    if spec.mode is not SetMode.ANY:
        return []
    return [max(now, moment(member.at, now)) for member in spec.members if member.at is not None]


def moment(at: datetime | timedelta, now: datetime) -> datetime:
    """A time; a length of time counts from `now`."""
    return now + at if isinstance(at, timedelta) else at


def check(spec: WaitSpec, effects: Mapping[str, EffectRow], now: datetime) -> None:
    """Refuse a wait that could never end or names what isn't there. Raises LedgerError `invalid` or `wrong-state`."""
    if not 0 < len(spec.members) <= MAX_MEMBERS:
        raise _invalid(
            f"a wait has 1 to {MAX_MEMBERS} members; this one has {len(spec.members)}", "Name what to wait for."
        )
    deadline = moment(spec.deadline, now)
    if deadline <= now:
        raise _invalid("the wait's deadline has passed", "Give a deadline in the future.")
    if deadline - now > LONGEST_WAIT:
        raise _invalid("the wait's deadline is more than ten years away", "Give a deadline that somebody will see.")
    named: set[tuple[str, str]] = set()
    for member in spec.members:
        _check_member(member, effects, deadline, now, asked_by_engine=bool(spec.internal))
        if member.effect:
            if (member.kind, member.effect) in named:
                raise _invalid(f"the wait names {member.kind} {member.effect!r} twice", "Name each once.")
            named.add((member.kind, member.effect))


def _check_member(
    member: MemberSpec, effects: Mapping[str, EffectRow], deadline: datetime, now: datetime, *, asked_by_engine: bool
) -> None:
    if member.kind is MemberKind.TIMER:
        if member.at is None or moment(member.at, now) > deadline:
            raise _invalid(
                "a timer needs a time that isn't after the wait's deadline", "Move the timer or the deadline."
            )
    elif member.kind is MemberKind.EVENT:
        if not member.type:
            raise _invalid("a wait for an event needs the event's type", "Add its type.")
    elif member.effect not in effects:
        raise _invalid(
            f"there is no effect named {member.effect[:80]!r} to wait for", "Propose it in the same commit, or before."
        )
    elif member.kind is MemberKind.APPROVAL and not _askable(effects[member.effect], asked_by_engine):
        state = effects[member.effect].state
        raise LedgerError(
            "wrong-state",
            f"the effect {member.effect[:80]!r} is {state}: there is nothing left to approve",
            "Wait for its outcome, or take it.",
            state=str(state),
        )
    elif member.kind is MemberKind.EFFECT:
        _check_outcome(member, effects[member.effect])


def _check_outcome(member: MemberSpec, effect: EffectRow) -> None:
    """Nobody performs a proposed effect while its run waits, so that its outcome would never come."""
    if effect.state == PROPOSED:
        raise LedgerError(
            "wrong-state",
            f"the effect {member.effect[:80]!r} is only proposed: nobody performs it while the run waits",
            "Wait for its approval, or perform it first and wait for its outcome then.",
            state=PROPOSED,
        )


def _askable(effect: EffectRow, asked_by_engine: bool) -> bool:
    """The engine asks again for what failed and may be tried once more, too. What a replan carried along needs no leave where it has happened or may
    have: a wait for it is met by what became of it."""
    if effect.carried_to and effect.done:
        return True
    return effect.state == PROPOSED or (asked_by_engine and effect.state == FAILED)


def _invalid(reason: str, remedy: str) -> LedgerError:
    return LedgerError("invalid", reason, remedy)


def _member(
    draft: Draft,
    view: RunView,
    wait_id: UUID,
    ordinal: int,
    spec: MemberSpec,
    effects: Mapping[str, EffectRow],
    ask: Ask,
    decide_by: datetime,
) -> MemberRow:
    effect = effects.get(spec.effect) if spec.effect else None
    due_at = None if spec.at is None else moment(spec.at, draft.at)
    outcome = ""
    if spec.kind is MemberKind.TIMER and due_at is not None and due_at <= draft.at:
        outcome = Outcome.DUE
    elif effect is not None and spec.kind is MemberKind.APPROVAL and effect.carried_to and effect.done:
        outcome = effect.state
    elif effect is not None and spec.kind is MemberKind.APPROVAL:
        asked = ask(effect, decide_by)
        outcome, due_at = asked.outcome, asked.decide_by
    elif effect is not None and effect.state not in UNSETTLED:
        outcome = effect.state
    since = spec.since or view.instance_opened_at or view.run.created_at
    return MemberRow(
        id=draft.mint(),
        wait_id=wait_id,
        ordinal=ordinal,
        kind=spec.kind,
        state=state_of(outcome),
        outcome=outcome,
        due_at=due_at,
        effect_id=effect.id if effect else None,
        event_source=spec.source,
        event_type=spec.type,
        event_subject=spec.subject,
        since=since if spec.kind is MemberKind.EVENT else None,
        event_id=None,
        met_at=draft.at if outcome else None,
        not_from=own_agents(view) if spec.kind is MemberKind.EVENT else [],
    )


def own_agents(view: RunView) -> list[str]:
    """Whose events a wait of this run doesn't take: those of every agent that has held it, since whoever waits must not be able to answer itself.

    None, where the version that its holder works under was registered with `own_events`.
    """
    if view.lease is None or (view.holder is not None and view.holder.own_events):
        return []
    return list(view.lease.agents)
