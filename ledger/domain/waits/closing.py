"""Close a wait: members that come to their outcome, timers, deadlines with their actions. No clock, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from ledger.domain import handoffs, runs, wakes
from ledger.domain.drafts import Draft
from ledger.domain.handoffs import HandoffRow
from ledger.domain.runs import Intent, Status
from ledger.domain.waits.rows import (
    DEAD,
    MEMBER,
    SET,
    Inaction,
    Internal,
    MemberKind,
    MemberRow,
    MemberState,
    OnDeadline,
    Outcome,
    SetMode,
    SetRow,
    SetState,
)

if TYPE_CHECKING:
    from ledger.domain.views import RunView

OUT = frozenset({"in_flight", "unknown"})
"""States of effects whose outcome isn't known; effects say to waits what became of them, so that waits know their states by name only."""

Withdraw = Callable[[frozenset[UUID], str], None]
"""Withdraw the open requests of these effects, with the cause."""


def state_of(outcome: str) -> MemberState:
    """Open without an outcome; closed by one that can no longer become what was waited for; otherwise met."""
    if not outcome:
        return MemberState.OPEN
    return MEMBER.step(MemberState.OPEN, "close" if outcome in DEAD else "meet")


def verdict(mode: SetMode, members: Sequence[MemberRow]) -> tuple[str, str] | None:
    """(the set's event, the cause) when these members close their set, otherwise None. Pure."""
    for member in members:
        if member.state is MemberState.CLOSED:
            return "expire" if member.outcome == Outcome.EXPIRED else "cancel", member.outcome
    met = [member for member in members if member.state is MemberState.MET]
    if met and mode is SetMode.ANY:
        return "satisfy", met[0].outcome
    return ("satisfy", "all_met") if met and len(met) == len(members) else None


def due(deadline: datetime, members: Sequence[MemberRow]) -> datetime:
    """When a set must be looked at next: its earliest open timer, at the latest its deadline."""
    timers = [
        member.due_at
        for member in members
        if member.kind is MemberKind.TIMER and member.state is MemberState.OPEN and member.due_at is not None
    ]
    return min([deadline, *timers])


def closes_at(wait: SetRow, members: Iterable[MemberRow]) -> datetime:
    """When time alone closes an open set: at its deadline, before it when an approval runs out, and, where any is enough, when a timer is due."""
    kinds = {MemberKind.APPROVAL, MemberKind.TIMER} if wait.mode is SetMode.ANY else {MemberKind.APPROVAL}
    times = [
        member.due_at
        for member in members
        if member.kind in kinds and member.state is MemberState.OPEN and member.due_at is not None
    ]
    return min([wait.deadline, *times])


def overdue(view: RunView, at: datetime) -> bool:
    """Has time alone closed the run's open wait by then, though nobody has acted on it yet? Whatever comes now comes too late for it."""
    return view.wait is not None and view.wait.state is SetState.OPEN and at >= closes_at(view.wait, view.members)


def in_time(draft: Draft, view: RunView) -> None:
    """What is drafted comes in time for the run's open wait, so that it must be written before time closes that."""
    if view.wait is not None and view.wait.state is SetState.OPEN and not overdue(view, draft.at):
        draft.before(closes_at(view.wait, view.members))


def fired(view: RunView, by: datetime) -> bool:
    """Has a timer closed the run's open wait by then, though nobody has acted on it yet?"""
    wait = view.wait
    if wait is None or wait.mode is not SetMode.ANY or view.head.status is not Status.WAITING:
        return False
    return any(
        member.kind is MemberKind.TIMER
        and member.state is MemberState.OPEN
        and member.due_at is not None
        and member.due_at <= by
        for member in view.members
    )


class Ending(Protocol):
    """A set's end, on a rule's row and on a model's alike."""

    @property
    def internal(self) -> str: ...
    @property
    def mode(self) -> str: ...
    @property
    def deadline(self) -> datetime: ...
    @property
    def on_deadline(self) -> str: ...


class Member(Protocol):
    @property
    def kind(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def due_at(self) -> datetime | None: ...
    @property
    def effect_id(self) -> UUID | None: ...


def silence(wait: Ending, members: Iterable[Member], failed: Collection[UUID] = ()) -> tuple[Inaction, datetime]:
    """What happens, and when, if nobody does anything: where any member is enough, a timer lets the agent go on; an approval that runs out before
    the deadline is told to the agent, who goes on; otherwise it is the deadline's action. Leave for another attempt of one of the effects that
    `failed` lets nobody go on without an operator. A back-off of the engine's ends with its timer, and then the target is asked again."""
    still = [member for member in members if member.state == MemberState.OPEN]
    approvals = [member for member in still if member.kind == MemberKind.APPROVAL]
    decide_by = min((each.due_at for each in approvals if each.due_at is not None), default=wait.deadline)
    timers = [each.due_at for each in still if each.kind == MemberKind.TIMER and each.due_at is not None]
    first = min(decide_by, wait.deadline)
    if wait.internal == Internal.RETRY_LATER:
        return Inaction.ASK, min([first, *timers])
    if wait.mode == SetMode.ANY and timers and min(timers) <= first:
        return Inaction.FIRE, min(timers)
    action = Inaction.WAKE if first < wait.deadline else Inaction(wait.on_deadline)
    if action is Inaction.WAKE and any(each.effect_id in failed for each in approvals):
        return Inaction.HAND_OFF, first
    return action, first


def meet(
    draft: Draft,
    view: RunView,
    member: MemberRow | None = None,
    outcome: str = "",
    event_id: UUID | None = None,
    *,
    effect_id: UUID | None = None,
    withdraw: Withdraw | None = None,
) -> bool:
    """A member came to its outcome; with `effect_id`, an effect did (see `effect_settled`). True when that closed the set.

    A member that isn't open any more, or isn't of the open set, changes nothing. Whoever calls this has acted on an `overdue` wait before; that it
    doesn't become so until the Change is written, the writer sees to.
    """
    if member is None:
        return effect_id is not None and effect_settled(draft, view, effect_id, outcome, withdraw)
    return _meet(draft, view, {member.id: outcome}, event_id, withdraw)


def _meet(
    draft: Draft, view: RunView, outcomes: Mapping[UUID, str], event_id: UUID | None, withdraw: Withdraw | None
) -> bool:
    wait = view.wait
    if wait is None or wait.state is not SetState.OPEN:
        return False
    if outcomes:
        in_time(draft, view)
    after = []
    for member in view.members:
        outcome = outcomes.get(member.id, "")
        if outcome and member.state is MemberState.OPEN:
            state = state_of(outcome)
            draft.move(
                "wait_member",
                member.id,
                {"state": MemberState.OPEN},
                state=state,
                outcome=outcome,
                event_id=event_id,
                met_at=draft.at,
            )
            member = replace(member, state=state, outcome=outcome)
        after.append(member)
    closing = verdict(wait.mode, after)
    if closing is None:
        if (due_at := due(wait.deadline, after)) != wait.due_at:
            draft.move("wait_set", wait.id, {"state": SetState.OPEN}, due_at=due_at)
        return False
    event, cause = closing
    if event == "expire" and draft.at >= wait.deadline and not _ran_out_before(wait.deadline, after):
        # Silence until the deadline, whichever of the two clocks was looked at first: the declared action holds.
        _expire(draft, view, after, withdraw)
    else:
        _close(draft, view, after, SET.step(SetState.OPEN, event), cause, withdraw)
        _wake(draft, view, f"wait_{SET.step(SetState.OPEN, event)}")
    return True


def _ran_out_before(deadline: datetime, members: Sequence[MemberRow]) -> bool:
    """Did the first member that is dead have an earlier time of its own, so that the deadline was never come to?"""
    dead = next(member for member in members if member.state is MemberState.CLOSED)
    return dead.due_at is not None and dead.due_at < deadline


def decide_by(draft: Draft, view: RunView, effect_id: UUID, at: datetime) -> None:
    """The request about an effect is to be decided by another time: what waits for its answer goes by the same."""
    for member in view.members:
        if member.kind is MemberKind.APPROVAL and member.effect_id == effect_id and member.state is MemberState.OPEN:
            draft.move("wait_member", member.id, {"state": MemberState.OPEN}, due_at=at)


def look(
    draft: Draft, view: RunView, withdraw: Withdraw | None = None, outcomes: Mapping[UUID, str] | None = None
) -> bool:
    """Act on what is due: timers, and a set that was met as it was opened, first, then the deadline with its action. True when something was.

    `outcomes` are those that other members have come to meanwhile.
    """
    wait = view.wait
    if wait is None or wait.state is not SetState.OPEN or view.head.status is not Status.WAITING:
        return False
    past = {
        member.id: str(Outcome.DUE)
        for member in view.members
        if member.kind is MemberKind.TIMER
        and member.state is MemberState.OPEN
        and member.due_at is not None
        and member.due_at <= draft.at
    }
    if _meet(draft, view, {**past, **(outcomes or {})}, None, withdraw):
        return True
    if draft.at >= wait.deadline:
        _expire(draft, view, [m for m in view.members if m.id not in past], withdraw)
        return True
    return bool(past)


def _expire(draft: Draft, view: RunView, members: Sequence[MemberRow], withdraw: Withdraw | None) -> None:
    assert view.wait is not None
    action = view.wait.on_deadline
    _close(draft, view, members, SetState.EXPIRED, f"deadline_{action}", withdraw)
    if action is OnDeadline.CANCEL and view.head.intent is Intent.NONE:
        draft.head(intent=Intent.CANCEL)
    elif action is OnDeadline.FAIL and view.head.intent is Intent.NONE:
        draft.head(intent=Intent.FAIL)
    _wake(draft, view, f"deadline_{action}")


def close(draft: Draft, view: RunView, state: SetState, cause: str, withdraw: Withdraw | None = None) -> None:
    """Close the open set, if there is one, without waking the run: the caller moves it. Its open requests are withdrawn."""
    if view.wait is not None and view.wait.state is SetState.OPEN:
        _close(draft, view, view.members, state, cause, withdraw)


def _close(
    draft: Draft,
    view: RunView,
    members: Sequence[MemberRow],
    state: SetState,
    cause: str,
    withdraw: Withdraw | None,
) -> None:
    assert view.wait is not None
    draft.move("wait_set", view.wait.id, {"state": SetState.OPEN}, state=state, cause=cause, closed_at=draft.at)
    unasked = set()
    for member in members:
        if member.state is MemberState.OPEN:
            draft.move("wait_member", member.id, {"state": MemberState.OPEN}, state=MemberState.CLOSED)
            if member.kind is MemberKind.APPROVAL and member.effect_id is not None:
                unasked.add(member.effect_id)
    if withdraw is not None and unasked:
        withdraw(frozenset(unasked), "wait_closed")


def _wake(draft: Draft, view: RunView, reason: str) -> None:
    runs.to_status(draft, view, "wait_closed")
    wakes.queue(draft, view, reason)


def _over(view: RunView, handoff: HandoffRow, effect_id: UUID) -> bool:
    """Is a handoff over now that this effect is settled: it was about it, or about outcomes of which no other is open."""
    others = [effect for effect in view.effects if effect.state in OUT and effect.id != effect_id]
    return not others if handoff.reason == handoffs.UNRECONCILED else handoff.effect_id == effect_id


def effect_settled(
    draft: Draft, view: RunView, effect_id: UUID, outcome: str, withdraw: Withdraw | None = None
) -> bool:
    """An effect's outcome came to be known while nobody worked on the run: what that moves. True when the run moved."""
    status = view.head.status
    if status is Status.WAITING:
        waiting = {
            member.id: outcome
            for member in view.members
            if member.kind is MemberKind.EFFECT and member.effect_id == effect_id
        }
        return look(draft, view, withdraw, {} if overdue(view, draft.at) else waiting)
    if status is Status.WAKING:
        wakes.queue(draft, view, "effect_settled")
        return True
    if status is Status.READY:
        runs.close_clearance(draft, view, runs.ClearanceState.STALE)
        runs.to_status(draft, view, "effect_settled")
        wakes.queue(draft, view, "effect_settled")
        return True
    handoff = view.handoff
    if status is Status.BLOCKED and handoff is not None and _over(view, handoff, effect_id):
        if not handoffs.withdraw(draft, handoff):
            return False
        runs.to_status(draft, view, "effect_settled", Status.WAKING)
        wakes.queue(draft, view, "effect_settled")
        return True
    return False
