"""What really happened outside: the model's own truth, which the ledger only learns by asking. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class Fate(StrEnum):
    """What becomes of a call once it was sent."""

    APPLIED = "applied"
    REFUSED = "refused"
    THROTTLED = "throttled"
    LOST = "lost"
    DELAYED = "delayed"
    """It is still under way, and may arrive until its answer is overdue."""


@dataclass
class Call:
    """One request that left a worker, under one permit."""

    key: str
    attempt: int
    fate: Fate
    until: datetime


@dataclass
class Outside:
    """A target that keeps no keys apart: whoever sends twice acts twice."""

    calls: list[Call] = field(default_factory=list)
    changes: Counter[str] = field(default_factory=Counter)

    def send(self, call: Call) -> None:
        self.calls.append(call)
        if call.fate is Fate.APPLIED:
            self.changes[call.key] += 1

    def under_way(self, now: datetime, key: str | None = None) -> list[Call]:
        """Calls that may still arrive."""
        return [
            call for call in self.calls if call.fate is Fate.DELAYED and now < call.until and key in (None, call.key)
        ]

    def arrive(self, call: Call) -> None:
        call.fate = Fate.APPLIED
        self.changes[call.key] += 1

    def sent(self, key: str, attempt: int) -> Call | None:
        return next((call for call in self.calls if (call.key, call.attempt) == (key, attempt)), None)

    def refused(self, key: str) -> bool:
        """Its last call was refused for good."""
        mine = [call for call in self.calls if call.key == key]
        return bool(mine) and mine[-1].fate is Fate.REFUSED
