"""What a run can wait for, and how long."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from resumeapp_client.records import Effect

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"(\d+)([smhd])")
ON_DEADLINE = ("wake", "cancel", "fail", "hand_off")


@dataclass(frozen=True, slots=True)
class Member:
    """One thing waited for, as the contract writes it."""

    fields: Mapping[str, Any]


def approval(effect: Effect | str) -> Member:
    """Until a person decides on a proposed effect."""
    return Member({"kind": "approval", "effect": _name(effect)})


def settled(effect: Effect | str) -> Member:
    """Until an effect's outcome is known."""
    return Member({"kind": "effect", "effect": _name(effect)})


def event(type: str, *, source: str | None = None, subject: str | None = None, since: datetime | None = None) -> Member:
    """Until a CloudEvent of this type arrives, maybe from one source and about one subject; early ones count from `since`."""
    fields = {"source": source, "subject": subject, "since": None if since is None else _time(since, "since")}
    return Member(
        {"kind": "event", "type": type} | {name: value for name, value in fields.items() if value is not None}
    )


def timer(at: datetime | timedelta | str | int) -> Member:
    """Until a time with offset, or after a duration (`"90m"`, timedelta, or seconds)."""
    if isinstance(at, datetime):
        return Member({"kind": "timer", "at": _time(at, "at")})
    return Member({"kind": "timer", "after_seconds": seconds(at)})


def deadline(when: datetime | timedelta | str | int) -> dict[str, Any]:
    """A wait's deadline as the contract writes it: a time, or seconds that the server counts from its own clock."""
    if isinstance(when, datetime):
        return {"deadline": _time(when, "deadline")}
    return {"deadline_seconds": seconds(when)}


def seconds(duration: timedelta | str | int) -> int:
    """Whole seconds of a timedelta, of a number of seconds, or of text such as `24h`, `1d12h`, `90s`. Raises ValueError."""
    if isinstance(duration, timedelta):
        total = int(duration.total_seconds())
    elif isinstance(duration, int):
        total = duration
    else:
        parts = _DURATION.findall(duration)
        if not parts or "".join(number + unit for number, unit in parts) != duration:
            raise ValueError(f"{duration!r} is no duration; write it like 90s, 15m, 24h or 1d12h")
        total = sum(int(number) * _UNITS[unit] for number, unit in parts)
    if total <= 0:
        raise ValueError("a duration is longer than nothing")
    return total


def _name(effect: Effect | str) -> str:
    return effect if isinstance(effect, str) else effect.name


def _time(at: datetime, what: str) -> str:
    if at.tzinfo is None:
        raise ValueError(f"{what} has no offset; use an aware datetime")
    return at.isoformat()
