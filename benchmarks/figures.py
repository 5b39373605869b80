"""What one measurement comes to: a row of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.wanted import verdict


@dataclass(frozen=True, slots=True)
class Figure:
    """A row. `ratio` is what was completed per second, divided by the yardstick's; p50, p99 and `cpu_ms` (Python's, of one call) are in milliseconds;
    `trips` are the most statements of one call; `calls` is how many single calls the percentiles are of; `core_percent` is of one core. None where a
    figure has no such number; `note` says what else was seen."""

    name: str
    ratio: float | None = None
    per_second: float | None = None
    p50: float | None = None
    p99: float | None = None
    cpu_ms: float | None = None
    trips: int | None = None
    calls: int | None = None
    memory_mb: float | None = None
    core_percent: float | None = None
    note: str = ""

    def row(self) -> dict[str, Any]:
        return asdict(self)


def percentile(times: Sequence[float], part: float) -> float:
    """In milliseconds, of times in seconds."""
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))] * 1000


COLUMNS = (
    ("ratio", "ratio", ".2f"),
    ("per_second", "per s", ",.0f"),
    ("p50", "p50 ms", ",.2f"),
    ("p99", "p99 ms", ",.2f"),
    ("cpu_ms", "CPU ms", ".2f"),
    ("trips", "trips", "d"),
    ("calls", "calls", ",d"),
)


def cell(row: dict[str, Any], column: str, form: str) -> str:
    """A value as the table shows it."""
    value = row[column]
    return "" if value is None else format(value, form)


def line(row: dict[str, Any]) -> str:
    """One row for a terminal."""
    cells = "".join(f"{cell(row, name, form):>10}" for name, _, form in COLUMNS)
    return f"{row['name']:42}{cells}  {'; '.join(filter(None, (row['note'], verdict(row))))}".rstrip()


def heading() -> str:
    return f"{'':42}" + "".join(f"{title:>10}" for _, title, _ in COLUMNS)


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """The table for the documentation."""
    lines = [
        "| | " + " | ".join(title for _, title, _ in COLUMNS) + " | | wanted |",
        "| --- |" + " ---: |" * len(COLUMNS) + " --- | --- |",
    ]
    for row in rows:
        cells = " | ".join(cell(row, name, form) for name, _, form in COLUMNS)
        lines.append(f"| {row['name']} | {cells} | {row['note']} | {verdict(row)} |")
    return "\n".join(lines)
