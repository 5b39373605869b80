"""The yardstick: one psycopg connection that inserts and commits one 1 KiB row, on the same PostgreSQL with full durability."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

import psycopg

CREATE = "CREATE TABLE IF NOT EXISTS yard (id bigserial PRIMARY KEY, run_id bigint, seq int, state jsonb, at timestamptz DEFAULT now())"
INSERT = "INSERT INTO yard (run_id, seq, state) VALUES (%s, %s, %s::jsonb)"


@dataclass(frozen=True, slots=True)
class Rate:
    """Completed per second, with the median and the 99th percentile of one in milliseconds, and Python's CPU per one in milliseconds."""

    per_second: float
    p50: float
    p99: float
    cpu: float


def document(size: int = 1024) -> dict[str, object]:
    """A state of about `size` bytes of JSON."""
    lines = [
        {"id": f"line-{number:04d}", "amount": number * 100, "note": "x" * 40} for number in range(max(1, size // 90))
    ]
    return {"order": "17", "amount_minor": 4200, "currency": "EUR", "lines": lines}


def rate(times: list[float], elapsed: float, cpu: float) -> Rate:
    ordered = sorted(times)
    return Rate(
        per_second=len(times) / elapsed,
        p50=ordered[len(ordered) // 2] * 1000,
        p99=ordered[int(len(ordered) * 0.99)] * 1000,
        cpu=cpu / len(times) * 1000,
    )


def measure(dsn: str, seconds: float) -> Rate:
    """Insert and commit for so long on one connection."""
    content = json.dumps(document())
    times: list[float] = []
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(CREATE)
        began, cpu = time.perf_counter(), time.process_time()
        while (now := time.perf_counter()) - began < seconds:
            connection.execute(INSERT, (1, len(times), content))
            times.append(time.perf_counter() - now)
    return rate(times, time.perf_counter() - began, time.process_time() - cpu)
