"""Time limits of the server, kept by a local clock that nobody sets.

Deadlines are differences: what the server said is left, counted from the moment before its reply was asked for. Neither
machine's wall clock matters, and the error is at most one round trip, to the careful side.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

# Goes on while the machine sleeps, where the platform has such a clock: a permit ages in a suspended laptop too.
_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_DATE_RESOLUTION = 1.0


def monotonic() -> float:
    """Seconds on a clock that only goes forward, suspension included."""
    return time.clock_gettime(_CLOCK)


def local_deadline(at: datetime, server_now: datetime, asked_at: float) -> float:
    """When `at` of the server has come, as a `monotonic()` time, never too late; `asked_at` is from before the call was sent."""
    return asked_at + (at - server_now).total_seconds()


def server_now(stated: datetime | None, date_header: str | None) -> datetime:
    """The server's time as it answered: its `now`, else its Date header, which cuts off up to a second.

    With neither, the local wall clock: wrong by the skew, as everything would be that has nothing else.
    """
    if stated is not None:
        return stated
    if date_header:
        try:
            at = parsedate_to_datetime(date_header)
        except (TypeError, ValueError):
            at = None
        if at is not None and at.tzinfo is not None:
            return datetime.fromtimestamp(at.timestamp() + _DATE_RESOLUTION, UTC)
    return datetime.now(UTC)
