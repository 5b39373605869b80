"""10,000 waits that are due in the same second: how many are decided a second, and whether any is left behind."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.db import connection

from benchmarks import processes
from benchmarks.figures import Figure
from benchmarks.loader import golden, load, reckon
from benchmarks.scene import Scene
from benchmarks.yard import Yard
from ledger.services import facts

LONGEST = 60.0
"""Seconds after which what is left counts as left behind."""
HEAD_START = timedelta(seconds=30)


def names(count: int) -> list[str]:
    return [f"{count:,} waits due at once"]


def measure(count: int, logs: Path, yard: Yard) -> Iterator[Figure]:
    """With all of the product's processes, as they are by default."""
    scene = Scene()
    made = golden(scene.timed(1024))
    with processes.everything(logs):
        now = facts.read().now
        due = made.rows["wait_member"][0]["due_at"]
        load(made, count, shift=lambda number: now + HEAD_START - due)
        reckon()
        rate = yard.measure()
        began = now + HEAD_START
        if facts.read().now >= began:
            raise AssertionError(
                f"{count:,} waits weren't loaded in {HEAD_START}: they were due before they were all there"
            )
        before = _one("SELECT count(*) FROM ledger_decision")
        time.sleep((began - facts.read().now).total_seconds())
        left, until = count, time.monotonic() + LONGEST
        while left and time.monotonic() < until:
            time.sleep(0.25)
            left = count + before - _one("SELECT count(*) FROM ledger_decision")
    yield _figure(count, began, left, rate)


def _figure(count: int, began: datetime, left: int, rate: float) -> Figure:
    last = _one("SELECT max(decided_at) FROM ledger_decision WHERE decided_at >= %s", began)
    took = max((last - began).total_seconds(), 0.001) if last else LONGEST
    per_second = (count - left) / took
    return Figure(
        names(count)[0],
        ratio=per_second / rate,
        per_second=per_second,
        p50=_late(began, 0.5),
        p99=_late(began, 0.99),
        calls=count - left,
        note=f"{left} left after {LONGEST:.0f} s" if left else f"all in {took:.1f} s",
    )


def _late(began: datetime, part: float) -> float | None:
    """How long after they were due they were decided, in milliseconds."""
    sql = "SELECT percentile_disc(%s) WITHIN GROUP (ORDER BY decided_at) FROM ledger_decision WHERE decided_at >= %s"
    found = _one(sql, part, began)
    return (found - began).total_seconds() * 1000 if found else None


def _one(sql: str, *params: Any) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return cursor.fetchone()[0]
