"""What the judge of crash trials reads by itself: the database's tables, by plain SELECTs, and the sandbox's raw request log.

It shares no code with what it witnesses: standard library, sqlite3 and psycopg only.
"""

import importlib.util
import json
import sqlite3
import sys
import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Row = dict[str, Any]


class Record:
    """The record's tables on either database. Ids come as text with hyphens, times as seconds since 1970, bytes as bytes."""

    def __init__(self, kind: str, address: str) -> None:
        self.kind = kind
        if kind == "sqlite":
            file = Path(address).resolve().as_uri()
            self._db: Any = sqlite3.connect(f"{file}?mode=ro", uri=True, timeout=20, check_same_thread=False)
        else:
            import psycopg

            self._db = psycopg.connect(address, autocommit=True)

    def close(self) -> None:
        self._db.close()

    def rows(self, table: str, where: str, *values: Any, order: str = "") -> list[Row]:
        """Rows of a table; `where` uses %s, and `%s` over an id column takes the id as text."""
        sql = f"SELECT * FROM {table} WHERE {where}" + (f" ORDER BY {order}" if order else "")
        if self.kind == "sqlite":
            sql, values = sql.replace("%s", "?"), tuple(_sqlite_value(value) for value in values)
        cursor = self._db.execute(sql, values)
        names = [column[0] for column in cursor.description]
        return [{n: _plain(n, v) for n, v in zip(names, row, strict=True)} for row in cursor.fetchall()]

    def one(self, table: str, where: str, *values: Any) -> Row | None:
        found = self.rows(table, where, *values)
        return found[0] if found else None


def _sqlite_value(value: Any) -> Any:
    return uuid.UUID(value).hex if isinstance(value, str) and _is_id(value) else value


def _is_id(text: str) -> bool:
    return len(text) == 36 and text.count("-") == 4


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, datetime):
        return value.timestamp()
    if isinstance(value, bytes | memoryview):
        return bytes(value)
    if isinstance(value, str):
        if len(value) == 32 and (name == "id" or name.endswith("_id")):
            return str(uuid.UUID(value))
        if name == "at" or name == "until" or name.endswith(("_at", "_by")):
            return moment(value)
    return value


def moment(text: str) -> float:
    """A time as text (UTC where it names no zone) as seconds since 1970."""
    at = datetime.fromisoformat(text)
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


@dataclass(slots=True)
class Facts:
    """Everything the record says of one run."""

    head: Row | None
    entries: list[Row]
    checkpoints: list[Row]
    effects: list[Row]
    permits: list[Row]
    reports: list[Row]
    handoffs: list[Row]
    waits: list[Row]
    votes: list[Row]
    state: Mapping[str, Any]


def read_facts(record: Record, run: str) -> Facts:
    """Read a run's rows, table by table."""
    return Facts(
        head=record.one("ledger_run_head", "run_id = %s", run),
        entries=record.rows("ledger_journal_entry", "stream_id = %s", run, order="seq"),
        checkpoints=record.rows("ledger_checkpoint", "run_id = %s", run, order="seq"),
        effects=[
            effect | {"amount_minor": _amount(record, effect["request_id"])}
            for effect in record.rows("ledger_effect", "run_id = %s", run, order="proposed_at")
        ],
        permits=record.rows("ledger_permit", "run_id = %s", run, order="permitted_at"),
        reports=record.rows("ledger_effect_report", "run_id = %s", run, order="ordinal"),
        handoffs=record.rows("ledger_handoff", "run_id = %s", run, order="opened_at"),
        waits=record.rows("ledger_wait_set", "run_id = %s", run, order="opened_at"),
        votes=record.rows("approvals_vote", "run_id = %s", run, order="voted_at"),
        state=_state(record, run),
    )


def _state(record: Record, run: str) -> Mapping[str, Any]:
    """The run's state as of its last checkpoint."""
    checkpoints = record.rows("ledger_checkpoint", "run_id = %s", run, order="seq")
    body = record.one("ledger_body", "id = %s", checkpoints[-1]["state_id"]) if checkpoints else None
    found = json.loads(body["content"]) if body and body["content"] else {}
    return found if isinstance(found, dict) else {}


def _amount(record: Record, request: str) -> int | None:
    """What was asked for, in minor units."""
    body = record.one("ledger_body", "id = %s", request)
    found = json.loads(body["content"]) if body and body["content"] else {}
    return found.get("amount_minor") if isinstance(found, dict) else None


@dataclass(slots=True)
class Log:
    """The sandbox's request log: per idempotency key what came in, and what was applied, per key and per order."""

    mutating: Mapping[str, Sequence[Any]]
    applied: Mapping[str, Sequence[Any]]
    by_order: Mapping[str, Sequence[Any]]


def read_log(module: str | Path, place: str | Path) -> Log:
    """Read the log by the sandbox's own reader, a file of the standard library only that is loaded by its path."""
    spec = importlib.util.spec_from_file_location("sandbox_log", module)
    assert spec is not None and spec.loader is not None
    reader = importlib.util.module_from_spec(spec)
    sys.modules["sandbox_log"] = reader
    spec.loader.exec_module(reader)
    histories = reader.read_histories(place)
    by_order = defaultdict(list)
    for history in histories.values():
        for applied in (one for one in history.applied if one.service in ("refunds", "wires")):
            by_order[applied.order_id].append(applied)
    return Log(
        {key: one.mutating for key, one in histories.items()},
        {key: one.applied for key, one in histories.items()},
        by_order,
    )
