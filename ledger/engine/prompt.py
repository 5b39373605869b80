"""Wakes at once, in the process that wrote their cause: a thread of its own takes them while there are few, the queue gets the others.

Nothing depends on it. A wake that dies with the process, or waits behind a slow target, is a due row that the sweep finds.
"""

from __future__ import annotations

import time
from queue import Empty, Full, Queue
from threading import Lock, Thread
from typing import Final
from uuid import UUID

import structlog
from django.db import connection

from ledger.engine import wakes
from ledger.services import hints

LENGTH: Final = 4
"""Wakes that may stand in line; more come from a crowd, which the queue's processes share."""
SLOW: Final = 0.2
"""Seconds after which the wake at hand counts as slow, and the next goes to the queue."""
IDLE: Final = 60.0
"""Seconds without work after which the thread gives its connection back."""

_log = structlog.get_logger(__name__)


class Prompt:
    """One line of runs and the thread that wakes them; the thread begins with the first."""

    def __init__(self) -> None:
        self._line: Queue[UUID] = Queue(LENGTH)
        self._starting = Lock()
        self._thread: Thread | None = None
        self._since: float | None = None

    def take(self, run_id: UUID) -> bool:
        """Will it be woken here, soon?"""
        since = self._since
        if since is not None and time.monotonic() - since > SLOW:
            return False
        try:
            self._line.put_nowait(run_id)
        except Full:
            return False
        self._begin()
        return True

    def _begin(self) -> None:
        with self._starting:
            if self._thread is None:
                self._thread = Thread(target=self._work, name="prompt", daemon=True)
                self._thread.start()

    def _work(self) -> None:
        while True:
            try:
                run_id = self._line.get(timeout=IDLE)
            except Empty:
                connection.close()
                continue
            self._since = time.monotonic()
            self._wake(run_id)
            self._since = None

    def _wake(self, run_id: UUID) -> None:
        try:
            connection.close_if_unusable_or_obsolete()
            wakes.run(run_id)
        except Exception as fault:
            _log.warning("prompt_wake_failed", run=str(run_id), error=type(fault).__name__)
            connection.close()


def serve() -> None:
    """From now on this process wakes runs at once. Called where a web process begins."""
    hints.serve(Prompt().take)
