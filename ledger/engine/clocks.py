"""The record's clock, watched by whoever sweeps: a jump is said aloud, and what a clock that went back leaves behind is mended.

Times that somebody was told (deadlines, timers, decide-by) hold as they stand: they come when the clock says so, and once. What is to happen at
once, a wake or the end of a dead worker's lease, must not wait as long as the clock went back.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import structlog
from django.db import connection

from ledger.domain.errors import LedgerError
from ledger.services import facts, leases, wakes
from ledger.services.contracts import writes

SUDDEN: Final = timedelta(seconds=5)
"""What two clocks may differ by between two looks."""

_log = structlog.get_logger(__name__)


class Watch:
    """One process's looks at the record's clock, beside a clock of its own that nobody sets."""

    def __init__(self) -> None:
        self._last: tuple[datetime, float] | None = None

    def jump(self) -> timedelta | None:
        """How far the record's clock has jumped since the last look; None at the first."""
        now, here = facts.read().now, time.monotonic()
        last, self._last = self._last, (now, here)
        return None if last is None else now - last[0] - timedelta(seconds=here - last[1])

    def forget(self) -> None:
        """The next look is as the first: what had to be mended after this one wasn't, or not all of it."""
        self._last = None


@writes(
    moves="Where the clock has jumped, and at a process's first look: what `leases.shorten` and `wakes.hurry` move.",
    twice="Nothing is left to mend.",
    dies="The next process's first look mends what is left.",
)
def look(watch: Watch, limit: int) -> None:
    """Look at the clock once. A jump, whichever way, is logged as an error. After one, and at the first look, at most `limit` wakes are mended."""
    jump = watch.jump()
    if jump is not None:
        if abs(jump) <= SUDDEN:
            return
        _log.error("clock_jumped", seconds=round(jump.total_seconds()))
    try:
        leases.shorten()
        late = wakes.far(limit)
    except Exception:
        watch.forget()
        raise
    if len(late) == limit:
        watch.forget()
    for run_id in late:
        _hurry(run_id)


def _hurry(run_id: UUID) -> None:
    """Whatever one row raises, the others have their turn, and so has the sweep after them."""
    try:
        wakes.hurry(run_id)
    except LedgerError as refusal:
        _log.warning("sweep_item_refused", what="clock", item=str(run_id), code=refusal.code)
    except Exception as fault:
        _log.error("sweep_item_failed", what="clock", item=str(run_id), error=type(fault).__name__)
        connection.close_if_unusable_or_obsolete()
