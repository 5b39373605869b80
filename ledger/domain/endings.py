"""Why a run failed or was cancelled: the last thing before its end that says so. No clock, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum


class Kind(StrEnum):
    """What ended it: a call that was refused, a denial, silence of those asked, an empty wait, a handoff, or its agent."""

    REFUSED = "refused"
    DENIED = "denied"
    UNDECIDED = "undecided"
    UNMET = "unmet"
    CLOSED = "closed"
    AGENT = "agent"


@dataclass(frozen=True, slots=True)
class Reason:
    """One candidate: `who` are names of people, who acted in `teams`, or of a target; `what` an effect or a transition; `note` a code, a deadline as
    text, or the agent's own words."""

    kind: Kind
    at: datetime
    what: str = ""
    who: tuple[str, ...] = ()
    note: str = ""
    teams: tuple[str, ...] = ()


def last(reasons: Sequence[Reason], since: datetime, ended_at: datetime) -> Reason | None:
    """The reason nearest before the end, not older than the last checkpoint that went on (`since`); the agent's own only where there is no other."""
    known = [reason for reason in reasons if since <= reason.at <= ended_at]
    outer = [reason for reason in known if reason.kind is not Kind.AGENT]
    return max(outer or known, key=lambda reason: reason.at, default=None)


def why(reason: Reason, names: bool = True) -> str:
    """The reason as the end of a sentence, without its full stop. Without `names` people are counted, and only their teams are named."""
    if not names and reason.kind in _OF_PEOPLE:
        reason = replace(reason, who=_counted(reason))
    return _WORDS[reason.kind](reason)


def _counted(reason: Reason) -> tuple[str, ...]:
    people = f"{len(reason.who)} people" if len(reason.who) > 1 else "a person"
    if not reason.teams:
        return (people,)
    return (f"{people} of the team{'s' if len(reason.teams) > 1 else ''} {' and '.join(reason.teams)}",)


def _refused(reason: Reason) -> str:
    note = f" ({reason.note.replace('_', ' ')})" if reason.note else ""
    return f"{reason.who[0]} refused “{reason.what}”{note}"


def _denied(reason: Reason) -> str:
    by = " and ".join(reason.who) or "a person"
    return f"“{reason.what}” was denied by {by}; the reason is on its approval"


def _by_agent(reason: Reason) -> str:
    said = f", and said: “{reason.note}”" if reason.note else ""
    return f"its agent ended it in “{reason.what}”{said}"


_OF_PEOPLE = frozenset({Kind.DENIED, Kind.CLOSED})
_WORDS: Mapping[Kind, Callable[[Reason], str]] = {
    Kind.REFUSED: _refused,
    Kind.DENIED: _denied,
    Kind.UNDECIDED: lambda reason: f"nobody decided on “{reason.what}” by {reason.note}",
    Kind.UNMET: lambda reason: f"what it waited for had not come by {reason.note}",
    Kind.CLOSED: lambda reason: f"{' and '.join(reason.who) or 'a person'} closed its handoff and asked for that",
    Kind.AGENT: _by_agent,
}
