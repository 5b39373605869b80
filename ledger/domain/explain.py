"""Why is this run not moving? One sentence and a list: what it waits for, since when, who or what can act, what silence does and when.

Pure, from facts alone. Pages, API and commands say the same words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from ledger.domain.decisions import given_up
from ledger.domain.effects import EffectRow, EffectState
from ledger.domain.endings import Reason, why
from ledger.domain.handoffs import HandoffState
from ledger.domain.health import lacking, late, unclaimed
from ledger.domain.phrases import clause, reason, unseen, words
from ledger.domain.runs import ENDED, Intent, Status
from ledger.domain.views import RunView
from ledger.domain.waits import Inaction, Internal, MemberKind, MemberRow, MemberState, SetMode, silence
from ledger.domain.wakes import WakeState


@dataclass(frozen=True, slots=True)
class Item:
    """One fact: `code` is stable, `text` is for people, `at` is when it began or will happen."""

    code: str
    text: str
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """`actor` is who or what can move it, '' when nobody has to."""

    sentence: str
    items: tuple[Item, ...]
    actor: str = ""


def explain(view: RunView, ending: Reason | None = None, names: bool = True, owner: str = "") -> Explanation:
    """The run as of the view's moment; `ending` is why it ended, where that is known, `owner` the name of the person who took its handoff.

    Without `names` it counts people and names their teams.
    """
    if view.head.status in ENDED:
        sentence = _ended(view, ending, names)
    elif view.head.status is Status.BLOCKED:
        sentence = _blocked(view, owner if names else "")
    else:
        sentence = _SENTENCES[view.head.status](view)
    since = Item("since", f"{view.head.status} since {at(view.head.moved_at)}", view.head.moved_at)
    return Explanation(sentence, (since, *_items(view)), _actor(view, owner if names else ""))


def _actor(view: RunView, owner: str) -> str:
    """Who or what can move it now."""
    status = view.head.status
    if status in ENDED:
        return "an operator" if any(_doubts(view)) else ""
    if status is Status.BLOCKED:
        taken = view.handoff is not None and view.handoff.state is HandoffState.ACCEPTED
        return (owner or "the person who took it") if taken else "an operator"
    if status is Status.READY and view.clearance is not None:
        return f"a worker of version {' or '.join(view.clearance.versions)}"
    if status is Status.WAITING:
        if lacking(view):
            return "an administrator"
        if view.unseen:
            return f"the engine, or whoever runs {' and '.join(sorted({each.target for each in view.unseen}))}"
        kinds = {member.kind for member in view.members if member.state is MemberState.OPEN}
        return next((who for kind, who in _WHO.items() if kind in kinds), "")
    if status is Status.WAKING:
        queued = view.wake is None or view.wake.state is WakeState.QUEUED
        overdue = queued and (view.wake is None or late(view.wake.due_at, view.now))
        return "whoever runs the timer and queue processes" if overdue else "the engine"
    silent = view.lease is not None and view.lease.expires_at <= view.now
    return {Status.RUNNING: "the engine" if silent else "the worker"}.get(status, "")


_WHO: Mapping[MemberKind, str] = {
    MemberKind.APPROVAL: "an approver",
    MemberKind.EVENT: "whoever sends the event",
    MemberKind.EFFECT: "the engine, or an operator",
}


def at(moment: datetime) -> str:
    """A time as sentences write it: UTC to the second."""
    return f"{moment:%-d %b %Y, %H:%M:%S} UTC"


def _running(view: RunView) -> str:
    lease, transition = view.lease, view.head.transition
    if lease is None:
        return f"Somebody works on “{transition}”, but no lease says until when: verify this run."
    if lease.expires_at <= view.now:
        return (
            f"The worker on “{transition}” has been silent since its lease ended at {at(lease.expires_at)};"
            " the engine takes the run back and finds out what its calls did."
        )
    if view.head.intent is not Intent.NONE:
        return (
            f"A worker finishes its call in “{transition}” before the run is ended as asked ({view.head.intent});"
            f" if it falls silent, the run is taken back at {at(lease.expires_at)}."
        )
    return f"A worker has worked on “{transition}” since {at(lease.claimed_at)}; if it falls silent, the run is taken back at {at(lease.expires_at)}."


def _waiting(view: RunView) -> str:
    wait = view.wait
    if wait is None:
        return "It waits, but nothing says for what: verify this run."
    if wait.internal:
        return _INTERNAL[Internal(wait.internal)](view)
    still = [member for member in view.members if member.state is MemberState.OPEN]
    joined = (" or " if wait.mode is SetMode.ANY else " and ").join(_wanted(view, member) for member in still)
    begun = f"It has waited for {joined or 'nothing any more'} since {at(wait.opened_at)}"
    if late(wait.due_at, view.now):
        return f"{begun}; its time passed at {at(wait.due_at)} and nobody has acted on that: see that timer and queue processes run."
    return f"{begun}; {_otherwise(view)}."


def _wanted(view: RunView, member: MemberRow) -> str:
    if member.kind is MemberKind.TIMER and member.due_at is not None:
        return f"{at(member.due_at)} to come"
    if member.kind is MemberKind.EVENT:
        about = f" about {member.event_subject}" if member.event_subject else ""
        source = f" from {member.event_source}" if member.event_source else ""
        return f"an event {member.event_type}{about}{source}"
    effect = view.effect(member.effect_id) if member.effect_id else None
    name = effect.name if effect else "an effect"
    if member.kind is MemberKind.APPROVAL:
        return f"{_approvers(view, effect)} to decide on “{name}”"
    return f"the outcome of “{name}” to become known"


def _approvers(view: RunView, effect: EffectRow | None) -> str:
    wanted = (view.wanted or {}).get(effect.id) if effect else None
    if wanted is None or not wanted.groups:
        return "people who may approve"
    teams = "the team " + " and the team ".join(wanted.groups)
    if not wanted.lacking:
        return teams
    short = " and ".join(wanted.lacking)
    return (
        f"{teams} (too few people of {short} may do that: an administrator has to add some, or nobody can approve it)"
    )


def _silence(view: RunView) -> str:
    if view.wait is None:
        return "nothing happens"
    action, when = silence(view.wait, view.members, failed(view.effects))
    return f"{ON_DEADLINE[action]} at {at(when)}"


def _otherwise(view: RunView) -> str:
    fires = view.wait is not None and silence(view.wait, view.members)[0] is Inaction.FIRE
    return f"if nothing {'else ' if fires else ''}comes, {_silence(view)}"


def failed(effects: Iterable[EffectRow]) -> frozenset[UUID]:
    """Effects of which only another attempt can be asked for."""
    return frozenset(effect.id for effect in effects if effect.state is EffectState.FAILED)


ON_DEADLINE: Mapping[Inaction, str] = {
    Inaction.WAKE: "the agent goes on and is told that it expired",
    Inaction.CANCEL: "the run is cancelled",
    Inaction.FAIL: "the run fails",
    Inaction.HAND_OFF: "an operator gets it",
    Inaction.FIRE: "its timer lets the agent go on",
    Inaction.ASK: "the engine asks again",
}


NAMED = 2
"""Resources that a sentence names; it counts the others."""


def _retry_later(view: RunView) -> str:
    told = [f"{each.target} couldn't be asked about {each.resource} ({unseen(each.reason)})" for each in view.unseen]
    if len(told) > NAMED:
        told = [*told[:NAMED], f"{len(told) - NAMED} more couldn't either"]
    what = " and ".join(told) or "what it depends on couldn't be asked"
    because = f"“{view.head.transition}” can't go on: {what}"
    if view.wait is None:
        return f"{because}."
    _, again = silence(view.wait, view.members)
    times, by = given_up(view.wait.opened_at, again)
    if times == 1:
        return f"{because}; the engine asks for the last time at {at(again)}, and an operator gets it then if that doesn't help."
    more = f"{times - 1} more time{'s' if times > 2 else ''}"
    return f"{because}; the engine asks again at {at(again)} and {more}, and an operator gets it at about {at(by)} if none of that helps."


def _reconcile(view: RunView) -> str:
    names = ", ".join(
        f"“{effect.name}”" for effect in view.effects if effect.state in {EffectState.UNKNOWN, EffectState.IN_FLIGHT}
    )
    told = f"It isn't known whether {names or 'its last call'} happened"
    return f"{told}; {_found_out(view)}, nothing is sent again, and {_silence(view)}."


def _found_out(view: RunView) -> str:
    """How open outcomes come to be known: by asking, where a target can be asked, or by a person."""
    out = [effect for effect in view.effects if effect.state in {EffectState.UNKNOWN, EffectState.IN_FLIGHT}]
    asked = not out or any(_can_be_asked(view, effect) for effect in out)
    return "the target is asked" if asked else "the target can't be asked, so that an operator has to find out"


def _can_be_asked(view: RunView, effect: EffectRow) -> bool:
    target = view.targets.get(effect.target_id)
    return target is None or target.lookup is not None


def _ask_again(view: RunView) -> str:
    still = [_wanted(view, member) for member in view.members if member.state is MemberState.OPEN]
    return f"What was asked before no longer counts, so it waits for {' and '.join(still) or 'a decision'} anew; if nobody does, {_silence(view)}."


_INTERNAL: Mapping[Internal, Callable[[RunView], str]] = {
    Internal.RETRY_LATER: _retry_later,
    Internal.RECONCILE: _reconcile,
    Internal.ASK_AGAIN: _ask_again,
}


def _waking(view: RunView) -> str:
    wake, transition = view.wake, view.head.transition
    if wake is None:
        return "It should be checked, but no wake is queued: verify this run."
    if wake.state is WakeState.CHECKING and wake.until is not None and wake.until > view.now:
        return f"The engine is checking whether “{transition}” may go on (attempt {wake.attempt}); a dead checker is replaced at {at(wake.until)}."
    if late(wake.due_at, view.now):
        return f"A check of “{transition}” has been due since {at(wake.due_at)} and nobody has made it: see that timer and queue processes run."
    return f"The engine checks at {at(wake.due_at)} whether “{transition}” may go on; nobody has to act."


def _ready(view: RunView) -> str:
    clearance, transition = view.clearance, view.head.transition
    if clearance is None:
        return "It is ready, but no clearance says for what: verify this run."
    versions = " or ".join(clearance.versions)
    if unclaimed(view):
        heard = f" (the last was heard at {at(view.heard)})" if view.heard is not None else ""
        return (
            f"“{transition}” has been cleared since {at(view.head.moved_at)} and no worker with version {versions} has claimed it:"
            f" see that one runs{heard}; at {at(clearance.ready_by)} it is checked again."
        )
    return (
        f"“{transition}” is cleared and waits for a worker with version {versions} to claim it;"
        f" if none does by {at(clearance.ready_by)}, it is checked again."
    )


def _blocked(view: RunView, owner: str = "") -> str:
    handoff = view.handoff
    if handoff is None:
        return "It is blocked, but no handoff says why: verify this run."
    effect = view.effect(handoff.effect_id) if handoff.effect_id else None
    because = (f"“{effect.name}”: " if effect else "") + clause(reason(handoff.reason))
    if handoff.state is HandoffState.ACCEPTED:
        escalated = f"; it was escalated at {at(handoff.escalated_at)}" if handoff.escalated_at is not None else ""
        return f"{owner or 'A person'} has taken it ({because}) and it moves when they close the handoff, due {at(handoff.due_at)}{escalated}."
    if handoff.escalated_at is not None:
        return (
            f"Nobody has it ({because}), though it was due {at(handoff.due_at)} and has waited for an operator since"
            f" {at(handoff.opened_at)}: it was escalated at {at(handoff.escalated_at)}, and never moves by itself."
        )
    return (
        f"An operator has to take it ({because}), since {at(handoff.opened_at)};"
        f" it never moves by itself and {'has been overdue since' if handoff.due_at <= view.now else 'is overdue at'} {at(handoff.due_at)}."
    )


def _ended(view: RunView, ending: Reason | None = None, names: bool = True) -> str:
    ended = at(view.head.ended_at or view.head.moved_at)
    because = f": {why(ending, names)}" if ending is not None else ""
    disputed, unknown = _doubts(view)
    then = "nothing more happens"
    if disputed:
        then = f"it is disputed what became of {', '.join(disputed)}, and a person has to say which account holds"
    elif unknown:
        then = f"it isn't known what became of {', '.join(unknown)}, and {_found_out(view)}"
    return f"It {_ENDED[view.head.status]} at {ended}{because}; {then}."


def _doubts(view: RunView) -> tuple[list[str], list[str]]:
    """The effects of which two accounts contradict each other, and those whose outcome isn't known."""
    unknown = [effect for effect in view.effects if effect.state in {EffectState.UNKNOWN, EffectState.IN_FLIGHT}]
    disputed = [effect for effect in view.effects if effect.disputed]
    return [f"“{effect.name}”" for effect in disputed], [f"“{effect.name}”" for effect in unknown]


_ENDED: Mapping[Status, str] = {
    Status.COMPLETED: "completed",
    Status.FAILED: "failed",
    Status.CANCELLED: "was cancelled",
}

_SENTENCES: Mapping[Status, Callable[[RunView], str]] = {
    Status.RUNNING: _running,
    Status.WAITING: _waiting,
    Status.WAKING: _waking,
    Status.READY: _ready,
}


def _items(view: RunView) -> list[Item]:
    items = []
    if view.head.intent is not Intent.NONE and view.head.ended_at is None:
        items.append(Item("intent", f"it is to be ended: {view.head.intent}"))
    if view.wait is not None:
        items.append(Item("deadline", _otherwise(view), silence(view.wait, view.members)[1]))
    items += [_member(view, member) for member in view.members]
    items += [_effect(view, effect) for effect in view.effects]
    return items


def _member(view: RunView, member: MemberRow) -> Item:
    if member.state is MemberState.OPEN:
        return Item(f"waits_{member.kind}", f"waits for {_wanted(view, member)}", member.due_at)
    return Item(
        f"{member.state}_{member.kind}", f"{member.kind}: {member.outcome or 'no longer waited for'}", member.met_at
    )


def _effect(view: RunView, effect: EffectRow) -> Item:
    text = f"“{effect.name}” ({effect.tool}) is {effect.state}"
    if effect.cause:
        text += f": {words(effect.cause)}"
    if effect.state is EffectState.UNKNOWN and effect.due_at is not None:
        asked = _can_be_asked(view, effect)
        text += f"; its target is asked at {at(effect.due_at)}" if asked else "; its target can't be asked"
    return Item(f"effect_{effect.state}", text, effect.due_at)
