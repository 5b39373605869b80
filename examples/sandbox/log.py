"""The raw request log: append-only, written before a request is acted on.

This module imports nothing of the package, so a judge can load it, or run it as a program, beside a
service that runs or was killed. ``python -m examples.sandbox.log DIR`` prints one JSON object for
each key.
"""

import argparse
import base64
import hashlib
import json
import sqlite3
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

FILE_NAME = "sandbox.sqlite3"
RESET = "RESET"
LOOK_UP_PATHS = ("/refunds", "/wires", "/notes")
MUTATING = ("POST", "PUT", "PATCH", "DELETE")
KEPT_HEADERS = ("idempotency-key", "if-match", "content-type", "user-agent", "traceparent")

_APPEND_ONLY = """
CREATE TRIGGER IF NOT EXISTS {table}_no_update BEFORE UPDATE ON {table}
BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END;
CREATE TRIGGER IF NOT EXISTS {table}_no_delete BEFORE DELETE ON {table}
BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END;
CREATE TRIGGER IF NOT EXISTS {table}_no_replace BEFORE INSERT ON {table}
WHEN EXISTS (SELECT 1 FROM {table} WHERE seq = NEW.seq)
BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END;
"""

SCHEMA = """
CREATE TABLE IF NOT EXISTS request (
  seq INTEGER PRIMARY KEY,
  at TEXT NOT NULL,
  method TEXT NOT NULL,
  path TEXT NOT NULL,
  query TEXT NOT NULL,
  key TEXT NOT NULL,
  headers TEXT NOT NULL,
  body_sha256 TEXT NOT NULL,
  body BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS request_applied (
  seq INTEGER PRIMARY KEY,
  at TEXT NOT NULL,
  service TEXT NOT NULL,
  key TEXT NOT NULL,
  reference TEXT NOT NULL,
  order_id TEXT NOT NULL,
  amount_minor INTEGER NOT NULL,
  currency TEXT NOT NULL,
  status TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS request_end (
  seq INTEGER PRIMARY KEY,
  at TEXT NOT NULL,
  applied INTEGER NOT NULL,
  status INTEGER,
  fault TEXT NOT NULL
);
""" + "".join(_APPEND_ONLY.format(table=name) for name in ("request", "request_applied", "request_end"))


@dataclass(frozen=True, slots=True)
class Applied:
    """One change that the service made, in the transaction that made it; minor units."""

    seq: int
    at: str
    service: str
    key: str
    reference: str
    order_id: str
    amount_minor: int
    currency: str
    status: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One request as it came in, and what became of it.

    ``ended`` is false when the service died, or still works, on it; ``applied`` is true from the
    commit of the change on, also then. ``status`` is what was sent, or None where no reply was.
    """

    seq: int
    at: str
    method: str
    path: str
    query: str
    key: str
    headers: dict[str, str]
    body_sha256: str
    body: bytes
    applied: bool
    ended: bool
    status: int | None
    fault: str

    @property
    def mutating(self) -> bool:
        """Whether the request's method may change something at the service."""
        return self.method in MUTATING

    def as_json(self) -> str:
        """One line of JSON; a body that isn't UTF-8 goes into ``body_base64``."""
        fields = asdict(self)
        try:
            fields["body"] = self.body.decode()
        except UnicodeDecodeError:
            fields["body"] = None
            fields["body_base64"] = base64.b64encode(self.body).decode()
        return json.dumps(fields, ensure_ascii=False, sort_keys=True)


@dataclass(frozen=True, slots=True)
class KeyHistory:
    """What the service saw and did for one key, in the order of arrival."""

    key: str
    mutating: list[Entry]
    lookups: list[Entry]
    applied: list[Applied]


def write_request(
    tx: sqlite3.Connection,
    *,
    at: str,
    method: str,
    path: str,
    query: str,
    key: str,
    headers: dict[str, str],
    body: bytes,
) -> int:
    """Append a request and return its sequence; the caller commits before it acts on it."""
    kept = {name: value for name, value in headers.items() if name in KEPT_HEADERS}
    row = (at, method, path, query, key, json.dumps(kept), hashlib.sha256(body).hexdigest(), body)
    cursor = tx.execute(
        "INSERT INTO request (at, method, path, query, key, headers, body_sha256, body)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        row,
    )
    return int(cursor.lastrowid or 0)


def write_applied(tx: sqlite3.Connection, applied: Applied) -> None:
    """Append a change, in the transaction that makes it."""
    tx.execute(
        "INSERT INTO request_applied"
        " (seq, at, service, key, reference, order_id, amount_minor, currency, status) VALUES"
        " (:seq, :at, :service, :key, :reference, :order_id, :amount_minor, :currency, :status)",
        asdict(applied),
    )


def write_end(tx: sqlite3.Connection, *, seq: int, at: str, status: int | None, fault: str) -> None:
    """Append what a request came to; ``status`` is None when no reply is to be sent."""
    tx.execute(
        "INSERT INTO request_end (seq, at, applied, status, fault)"
        " VALUES (?, ?, EXISTS (SELECT 1 FROM request_applied WHERE seq = ?), ?, ?)",
        (seq, at, seq, status, fault),
    )


def last_reset(db: sqlite3.Connection) -> int:
    """The sequence of the last reset marker, 0 when there was none."""
    row = db.execute("SELECT max(seq) FROM request WHERE method = ?", (RESET,)).fetchone()
    return int(row[0] or 0)


def select_entries(db: sqlite3.Connection, after: int, limit: int | None = None) -> Iterator[Entry]:
    """Requests with a sequence above ``after``, oldest first, without reset markers."""
    rows = db.execute(
        "SELECT r.seq, r.at, method, path, query, r.key, headers, body_sha256, body,"
        " a.seq IS NOT NULL, e.seq IS NOT NULL, e.status, coalesce(e.fault, '') FROM request r"
        " LEFT JOIN request_applied a ON a.seq = r.seq LEFT JOIN request_end e ON e.seq = r.seq"
        " WHERE r.seq > ? AND method <> ? ORDER BY r.seq LIMIT ?",
        (after, RESET, -1 if limit is None else limit),
    )
    for row in rows:
        seq, at, method, path, query, key, headers, digest, body, applied, ended, status, fault = row
        kept = json.loads(headers)
        yield Entry(
            seq,
            at,
            method,
            path,
            query,
            key,
            kept,
            digest,
            body,
            bool(applied),
            bool(ended),
            status,
            fault,
        )


def select_applied(db: sqlite3.Connection, after: int) -> Iterator[Applied]:
    """Changes of requests with a sequence above ``after``, in the requests' order of arrival."""
    rows = db.execute(
        "SELECT seq, at, service, key, reference, order_id, amount_minor, currency, status"
        " FROM request_applied WHERE seq > ? ORDER BY seq",
        (after,),
    )
    for row in rows:
        yield Applied(*row)


def select_histories(db: sqlite3.Connection, after: int) -> dict[str, KeyHistory]:
    """Histories by key of what came after ``after``; under the empty key what had none."""
    histories: dict[str, KeyHistory] = {}

    def of(key: str) -> KeyHistory:
        return histories.setdefault(key, KeyHistory(key, [], [], []))

    for entry in select_entries(db, after):
        if entry.mutating:
            of(entry.key).mutating.append(entry)
        elif entry.key and entry.path in LOOK_UP_PATHS:
            of(entry.key).lookups.append(entry)
    for applied in select_applied(db, after):
        of(applied.key).applied.append(applied)
    return histories


def open_log(place: str | Path) -> sqlite3.Connection:
    """Open the log of a data directory, or a log file, for reading, be the service alive or dead.

    Raises FileNotFoundError where there is none: an absent log must not look like an idle service.
    """
    file = Path(place)
    if file.is_dir():
        file = file / FILE_NAME
    if not file.is_file():
        raise FileNotFoundError(f"no request log at {file}; give the directory that the sandbox was started with")
    return sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True, timeout=20)


def read_requests(place: str | Path, *, since_reset: bool = True) -> list[Entry]:
    """All requests in the order of arrival, by default those after the last reset."""
    db = open_log(place)
    try:
        return list(select_entries(db, last_reset(db) if since_reset else 0))
    finally:
        db.close()


def read_histories(place: str | Path, *, since_reset: bool = True) -> dict[str, KeyHistory]:
    """Per key: mutating requests, look-ups, applied changes; by default since the last reset."""
    db = open_log(place)
    try:
        db.execute("BEGIN")
        return select_histories(db, last_reset(db) if since_reset else 0)
    finally:
        db.close()


def summary(history: KeyHistory) -> dict[str, object]:
    """Counts and amounts (minor units) of one key, for people and for JSON."""
    return {
        "key": history.key,
        "mutating": len(history.mutating),
        "lookups": len(history.lookups),
        "applied": len(history.applied),
        "amounts": [one.amount_minor for one in history.applied],
        "references": [one.reference for one in history.applied],
    }


def main() -> None:
    """Print the summary of each key, one JSON object a line."""
    parser = argparse.ArgumentParser(description="Read the raw request log of a sandbox, running or dead.")
    parser.add_argument("place", help="data directory of the sandbox, or its log file")
    parser.add_argument("--all", action="store_true", help="also what came before the last reset")
    options = parser.parse_args()
    for history in read_histories(options.place, since_reset=not options.all).values():
        print(json.dumps(summary(history), ensure_ascii=False))


if __name__ == "__main__":
    main()
