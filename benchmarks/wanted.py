"""What each figure is held against: the ratio, time or core share that the product set itself, so that a table shows where it falls short."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound of one column for the figures whose whole name matches."""

    name: str
    column: str
    bound: float
    least: bool

    def text(self) -> str:
        sign = "≥" if self.least else "≤"
        return f"{_TITLES[self.column]} {sign} {self.bound:,g}"

    def holds(self, value: float) -> bool:
        return value >= self.bound if self.least else value <= self.bound


_TITLES: Final = {
    "ratio": "ratio",
    "per_second": "per s",
    "p50": "p50",
    "p99": "p99",
    "cpu_ms": "CPU",
    "core_percent": "% of a core",
    "trips": "trips",
}

BOUNDS: Final = (
    Bound("commit with effect and wait in-process 1", "ratio", 0.35, True),
    Bound("commit with effect and wait in-process 4", "ratio", 0.60, True),
    Bound("commit with effect and wait http 1", "ratio", 0.16, True),
    Bound("commit with effect and wait http 8", "ratio", 0.36, True),
    Bound("commit in-process 1", "cpu_ms", 0.6, False),
    Bound("commit http 1", "cpu_ms", 1.1, False),
    Bound("commit in-process 1", "trips", 2, False),
    Bound("claim in-process 1", "trips", 3, False),
    Bound("event in-process 1", "trips", 4, False),
    Bound("wake in-process 1", "trips", 4, False),
    Bound("decide in-process 1", "trips", 9, False),
    Bound("permit \\+ settle in-process 1", "ratio", 0.25, True),
    Bound("permit \\+ settle in-process 1", "trips", 4, False),
    Bound("(event|approval) to packet among .*", "p50", 15, False),
    Bound("(event|approval) to packet among .*", "p99", 60, False),
    Bound(".* waits due at once", "per_second", 1_000, True),
    Bound("rest with .* waiting", "core_percent", 1, False),
    Bound("a worker's death to packet.*", "p99", 2_000, False),
)


def verdict(row: dict[str, Any]) -> str:
    """Each bound of a figure, and whether it was reached; '' where there is none."""
    found = [each for each in BOUNDS if re.fullmatch(each.name, row["name"]) and row[each.column] is not None]
    return "; ".join(f"{each.text()}: {'yes' if each.holds(row[each.column]) else 'no'}" for each in found)
