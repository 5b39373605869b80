"""The service's database: one SQLite file that survives ``kill -9``, one writer at a time."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from examples.sandbox import log

SCHEMA = """
CREATE TABLE IF NOT EXISTS orders (
  id TEXT PRIMARY KEY,
  customer TEXT NOT NULL,
  amount_minor INTEGER NOT NULL,
  currency TEXT NOT NULL,
  refunded_minor INTEGER NOT NULL,
  status TEXT NOT NULL,
  version INTEGER NOT NULL,
  CHECK (refunded_minor BETWEEN 0 AND amount_minor)
);
CREATE TABLE IF NOT EXISTS payment (
  n INTEGER PRIMARY KEY AUTOINCREMENT,
  service TEXT NOT NULL,
  key TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  remembered INTEGER NOT NULL,
  order_id TEXT NOT NULL,
  amount_minor INTEGER NOT NULL,
  currency TEXT NOT NULL,
  reason TEXT NOT NULL,
  status TEXT NOT NULL,
  error TEXT NOT NULL,
  created_at TEXT NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS payment_one_per_key ON payment (key) WHERE remembered;
CREATE TABLE IF NOT EXISTS note (
  n INTEGER PRIMARY KEY AUTOINCREMENT,
  key TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  remembered INTEGER NOT NULL,
  recipient TEXT NOT NULL,
  subject TEXT NOT NULL,
  text TEXT NOT NULL,
  created_at TEXT NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS note_one_per_key ON note (key) WHERE remembered;
"""


def now() -> str:
    """The time in UTC as RFC 3339 with microseconds, of fixed width so that it sorts as text."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


class Store:
    """The one connection, shared by all threads under a lock."""

    def __init__(self, data: Path) -> None:
        data.mkdir(parents=True, exist_ok=True)
        self.file = data / log.FILE_NAME
        self._lock = threading.Lock()
        self._db = sqlite3.connect(self.file, isolation_level=None, check_same_thread=False, timeout=20)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.executescript(SCHEMA + log.SCHEMA)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A transaction: on disk once the block has ended, rolled back when it raised."""
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")
