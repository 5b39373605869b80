"""The yardstick: one psycopg connection that inserts and commits one 1 KiB row, on the same PostgreSQL with full durability."""

from __future__ import annotations

import time

import orjson
import psycopg

from benchmarks.scene import document

CREATE = "CREATE TABLE IF NOT EXISTS yard (id bigserial PRIMARY KEY, run_id bigint, seq int, state jsonb, at timestamptz DEFAULT now())"
INSERT = "INSERT INTO yard (run_id, seq, state) VALUES (%s, %s, %s::jsonb)"


class Yard:
    """Measured in slices, right before and after what it stands beside."""

    def __init__(self, dsn: str, seconds: float) -> None:
        self.seconds = seconds
        self.content = orjson.dumps(document(1024)).decode()
        self.connection = psycopg.connect(dsn, autocommit=True)
        self.connection.execute(CREATE)
        self.times: list[float] = []

    def measure(self) -> float:
        """Rows per second in one slice. Warm from the first one on."""
        began = now = time.perf_counter()
        count = 0
        while now - began < self.seconds:
            self.connection.execute(INSERT, (1, count, self.content))
            count += 1
            before, now = now, time.perf_counter()
            self.times.append(now - before)
        return count / (now - began)
