"""The bell: who waits for a ready run is told at once that one may be there, in this process and, on PostgreSQL, in all others.

It carries nothing and may be lost: whoever waits looks from time to time anyway. NOTIFY stays outside the transaction that made the run ready,
because transactions that notify commit one after the other.
"""

from __future__ import annotations

import time
from contextlib import closing
from threading import Condition, Thread
from typing import Any, Final

import structlog
from django.db import DatabaseError, connection

CHANNEL: Final = "resumeapp_ready"
PAUSE: Final = 5.0
"""Seconds between two attempts to listen."""
QUIET: Final = 15.0
"""Seconds without a notice after which a listener looks whether anybody is still there."""

_log = structlog.get_logger(__name__)


class Bell:
    """Counts its rings, so that one between a look and the wait after it isn't missed."""

    def __init__(self) -> None:
        self._rings = 0
        self._rung = Condition()

    def heard(self) -> int:
        """The rings so far: read it before looking."""
        return self._rings

    def ring(self) -> None:
        with self._rung:
            self._rings += 1
            self._rung.notify_all()

    def wait(self, seconds: float, heard: int) -> None:
        """Until it rings again after `heard`, at most so long."""
        with self._rung:
            self._rung.wait_for(lambda: self._rings != heard, seconds)


_bell: Final = Bell()


def ring() -> None:
    """A run is ready: tell this process and the others."""
    _bell.ring()
    if connection.vendor != "postgresql":
        return
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_notify(%s, '')", [CHANNEL])
    except DatabaseError as fault:
        _log.warning("bell_not_rung", error=type(fault).__name__)


def heard() -> int:
    """The rings so far: read it before looking."""
    return _bell.heard()


def wait(seconds: float, since: int) -> None:
    """Until the bell rings after `since` (see `heard`), at most so long. Holds no transaction."""
    _bell.wait(seconds, since)


def listen() -> None:
    """From now on other processes' rings are heard here too, on a connection of its own. Called once, where a web process begins."""
    if connection.vendor == "postgresql":
        Thread(target=_listen, name="bell", daemon=True).start()


def _listen() -> None:
    while True:
        try:
            with closing(connection.get_new_connection(connection.get_connection_params())) as listening:
                hear(listening)
        except Exception as fault:
            _log.warning("bell_not_heard", error=type(fault).__name__)
        time.sleep(PAUSE)


def hear(listening: Any, quiet: float = QUIET) -> None:
    """Ring here for each notice on this psycopg connection, until it ends or its other end doesn't answer any more.

    After so many seconds without a notice it asks to listen once more, which changes nothing where it does.
    """
    listening.autocommit = True
    while True:
        listening.execute(f"LISTEN {CHANNEL}")
        for _ in listening.notifies(timeout=quiet):
            _bell.ring()
