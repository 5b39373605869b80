"""A breaker per target: one that stays silent isn't asked for a while, so that nobody waits for it. Of this process alone; no row rests on it."""

from __future__ import annotations

from threading import Lock
from typing import Final
from uuid import UUID

SILENCES = 3
PAUSE = 30.0
"""Seconds that a target isn't asked after so many silences in a row; then one question finds out whether it answers again."""
OPEN: Final = "breaker-open"
"""The reason of a question that wasn't asked."""
SILENT: Final = frozenset({"timed-out", "not-connected", "no-reply", "not-resolved"})
"""Reasons of `http.Unreachable` that are silence. Anything else is an answer, also one that can't be used."""


class Breakers:
    """What is known of silent targets. `now` is a monotonic clock's, in seconds."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._silences: dict[UUID, int] = {}
        self._until: dict[UUID, float] = {}

    def allows(self, target_id: UUID, now: float) -> bool:
        """May the target be asked? Once its pause is over one question may, and the next only after another pause or an answer."""
        with self._lock:
            if self._silences.get(target_id, 0) < SILENCES:
                return True
            if now < self._until[target_id]:
                return False
            self._until[target_id] = now + PAUSE
            return True

    def note(self, target_id: UUID, reason: str, now: float) -> None:
        """What came of a question: '' or the code of why its answer was no use."""
        if reason in SILENT:
            self.silent(target_id, now)
        else:
            self.answered(target_id)

    def answered(self, target_id: UUID) -> None:
        """It said something: whatever was held against it is forgotten."""
        with self._lock:
            self._silences.pop(target_id, None)
            self._until.pop(target_id, None)

    def silent(self, target_id: UUID, now: float) -> None:
        """It said nothing."""
        with self._lock:
            self._silences[target_id] = self._silences.get(target_id, 0) + 1
            self._until[target_id] = now + PAUSE


BREAKERS: Final = Breakers()
"""What this process knows, whatever it asked: wakes, proposals, permits and look-ups share it."""
