"""A clock that stands still until it is moved: a sequence that is played again must see the same times."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from django.db import connection

from ledger.models import triggers
from tests.clock import Clock

_STANDING = """
CREATE OR REPLACE FUNCTION ledger_clock() RETURNS timestamptz LANGUAGE sql VOLATILE AS
$$ SELECT timestamptz '{at}' $$
"""


class FrozenClock(Clock):
    """`seconds` after the moment at which it was made."""

    def __init__(self) -> None:
        super().__init__()
        self.made = datetime.now(UTC)

    def set(self, seconds: float) -> None:
        self.seconds = seconds
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute(_STANDING.format(at=self.now().isoformat(timespec="microseconds")))

    def now(self) -> datetime:
        return self.made + timedelta(seconds=self.seconds)


@contextmanager
def frozen_clock() -> Iterator[FrozenClock]:
    """The record's clock, standing; the machine's again at the end."""
    clock, real = FrozenClock(), triggers.process_clock
    triggers.process_clock = lambda: clock.now().isoformat(timespec="microseconds")
    try:
        clock.set(0.0)
        yield clock
    finally:
        triggers.process_clock = real
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute(triggers.FUNCTIONS.read_text())
