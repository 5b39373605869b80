"""The clock seam: moves the record's one clock, on both databases, for every connection of the test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from django.db import connection

from ledger.models import triggers

_SHIFTED = """
CREATE OR REPLACE FUNCTION ledger_clock() RETURNS timestamptz LANGUAGE sql VOLATILE AS
$$ SELECT {base} + make_interval(secs => {seconds}) $$
"""


class Clock:
    """How far the record's clock is ahead, in seconds."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._held: datetime | None = None

    def shift(self, seconds: float) -> None:
        """Move the clock on by this much more."""
        self.seconds += seconds
        self.set(self.seconds)

    def set(self, seconds: float) -> None:
        """Put the clock this far ahead of the machine's (behind, when negative)."""
        self.seconds = seconds
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                base = f"timestamptz '{self._held.isoformat()}'" if self._held else "clock_timestamp()"
                cursor.execute(_SHIFTED.format(base=base, seconds=seconds))

    def hold(self) -> None:
        """Let it stand still from now on but for what it is moved by: for margins that a slow machine must not use up."""
        self._held = datetime.now(UTC)
        self.set(self.seconds)

    def now(self) -> datetime:
        return (self._held or datetime.now(UTC)) + timedelta(seconds=self.seconds)


@contextmanager
def moved_clock() -> Iterator[Clock]:
    """A clock that can be moved, put back at the end."""
    clock = Clock()
    real = triggers.process_clock

    def shifted() -> str:
        return clock.now().isoformat(timespec="microseconds")

    triggers.process_clock = shifted
    try:
        yield clock
    finally:
        triggers.process_clock = real
        clock.set(0.0)
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute(triggers.FUNCTIONS.read_text())
