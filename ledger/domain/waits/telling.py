"""What became of a wait, as it is told to whoever goes on with the run: people's last word, not the one that facts overtook. No clock, no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from uuid import UUID

from ledger.domain.waits.closing import state_of, verdict
from ledger.domain.waits.rows import DEAD, SET, MemberKind, MemberRow, Outcome, SetRow, SetState

_WITHDRAWN: Mapping[str, Outcome] = {"denied": Outcome.DENIED, "expired": Outcome.EXPIRED}
"""Causes of a withdrawal that are the word of people, or their silence."""


@dataclass(frozen=True, slots=True)
class Since:
    """What happened since the agent's last wait: the waits in which the engine asked again, oldest first, with their members; by effect, the
    cause of those that were `withdrawn`; and those for which leave is `given`."""

    sets: Sequence[SetRow]
    members: Sequence[MemberRow]
    withdrawn: Mapping[UUID, str]
    given: Set[UUID]


def newest(row: SetRow, members: Sequence[MemberRow], since: Since) -> tuple[SetRow, list[MemberRow]]:
    """The wait with each approval as people decided on it last, also after it had closed; what the engine asked besides stands at its end.

    Where that contradicts how the set closed, the set closed as its members say.
    """
    asked = _asked_again(since)
    known = {member.effect_id for member in members}
    all_of_them = [*members, *(member for effect_id, member in asked.items() if effect_id not in known)]
    told = [_told(member, asked, since) for member in all_of_them]
    return (row, list(members)) if told == list(members) else (_closed(row, told), told)


def _asked_again(since: Since) -> dict[UUID, MemberRow]:
    """The last asking of each effect."""
    order = {each.id: number for number, each in enumerate(since.sets)}
    expired = {each.id for each in since.sets if each.state is SetState.EXPIRED}
    found: dict[UUID, MemberRow] = {}
    for member in sorted(since.members, key=lambda each: order[each.wait_id]):
        if member.kind is MemberKind.APPROVAL and member.effect_id is not None:
            silent = not member.outcome and member.wait_id in expired
            found[member.effect_id] = _with(member, Outcome.EXPIRED) if silent else member
    return found


def _told(member: MemberRow, asked: Mapping[UUID, MemberRow], since: Since) -> MemberRow:
    effect_id = member.effect_id
    if member.kind is not MemberKind.APPROVAL or effect_id is None:
        return member
    last = asked.get(effect_id, member)
    outcome = last.outcome
    if outcome not in DEAD:
        outcome = _WITHDRAWN.get(since.withdrawn.get(effect_id, ""), outcome)
    if not outcome and effect_id in since.given:
        outcome = Outcome.APPROVED
    return member if outcome == member.outcome else _with(replace(member, met_at=last.met_at), outcome)


def _with(member: MemberRow, outcome: str) -> MemberRow:
    return replace(member, outcome=outcome, state=state_of(outcome))


def _closed(row: SetRow, members: Sequence[MemberRow]) -> SetRow:
    closing = verdict(row.mode, members)
    if closing is None:
        undecided = row.state is SetState.SATISFIED
        return replace(row, state=SetState.OPEN, cause="", closed_at=None) if undecided else row
    event, cause = closing
    state = SET.step(SetState.OPEN, event)
    return row if state is row.state else replace(row, state=state, cause=cause)
