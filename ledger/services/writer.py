"""The one writer: applies a Change in one transaction. No other module writes tables of the record.

On PostgreSQL it is one guarded statement. A materialised CTE locks the stream's head; the next one reads the clock and
the tenant's version, so both are read after the lock; every insert and update draws from a third, which is empty unless
head, version and `not_after` are as the rule read them. On SQLite, which has one writer at a time, it is a plain
transaction behind the same call.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import UUID

import orjson
from django.db import IntegrityError, connection, transaction
from django.db.utils import DatabaseError

from ledger.domain import journal
from ledger.domain.change import Change, Insert, Kind, Move, Written
from ledger.domain.errors import Late, LedgerError, Moved
from ledger.models.tables import Table, journalled, tables
from ledger.services import hints
from ledger.services.conflicts import Conflict, conflict

F = TypeVar("F")
A = TypeVar("A")
TRIES = 12
MOVED_SQLSTATE = "LM001"


def settle(
    read: Callable[[], F], rule: Callable[[F], tuple[Change | None, A]], *, again: frozenset[str] = frozenset()
) -> tuple[A, Written | None]:
    """Read, decide, write; start again when the record moved in between or one of the named constraints was hit.

    Raises LedgerError from the rule, and `busy` when the record kept moving.
    """
    for _ in range(TRIES):
        change, answer = rule(read())
        if change is None:
            return answer, None
        try:
            return answer, apply(change)
        except (Moved, Late):
            continue
        except Conflict as found:
            if found.constraint not in again:
                raise
    raise LedgerError("busy", "the record kept moving under this call", "Ask again.")


def apply(change: Change) -> Written:
    """Apply a Change, or nothing of it.

    Raises Moved when head, tenant version or a moved row is not as read; Late when `not_after` has passed; Conflict for a named constraint.
    """
    content = journal.entry(change, journalled)
    write = _apply_postgres if connection.vendor == "postgresql" else _apply_sqlite
    try:
        written = write(change, content)
    except IntegrityError as error:
        raise conflict(error) from error
    hints.after(change)
    return written


# PostgreSQL ---------------------------------------------------------------------------------


def _apply_postgres(change: Change, content: bytes) -> Written:
    sql, params = _statement(change, content)
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql, params)
            found = cursor.fetchone()
    except DatabaseError as error:
        if getattr(error.__cause__, "sqlstate", None) == MOVED_SQLSTATE:
            raise Moved from None
        raise
    if found is None:
        raise Moved
    digest, clock, seq, _ = found
    if digest is None:
        if seq == change.expect_seq and change.not_after is not None and clock >= change.not_after:
            raise Late
        raise Moved
    return Written(change.expect_seq + 1, bytes(digest), clock)


def _statement(change: Change, content: bytes) -> tuple[str, list[Any]]:
    pieces: list[str] = []
    params: list[Any] = []
    _guard(change, pieces, params)
    for record, rows in _by_table(change.inserts).items():
        _insert(tables()[record], rows, len(pieces), pieces, params)
    if change.expect_seq == 0:
        _open_head(change, content, pieces, params)
    moved = [
        _move(tables()[record], moves, len(pieces), pieces, params)
        for (record, _, _), moves in _by_shape(change.moves).items()
    ]
    if change.expect_seq:
        _advance_head(change, content, pieces, params)
    pieces.append(
        "entry AS (INSERT INTO ledger_journal_entry (tenant_id, kind, stream_id, seq, at, actor, verb, content, digest)"
        " SELECT %s::uuid, %s, %s::uuid, %s, %s::timestamptz, %s, %s, %s::bytea, sha256(ok.head_digest || %s::bytea)"
        " FROM ok RETURNING digest)"
    )
    stream = change.stream
    params += [
        stream.tenant,
        str(stream.kind),
        stream.id,
        change.expect_seq + 1,
        change.at,
        change.actor,
        change.verb,
        content,
        content,
    ]
    missed = " + ".join(f"(SELECT count(*) FROM {name})" for name in moved) or "0"
    sql = (
        f"WITH {', '.join(pieces)} SELECT (SELECT digest FROM entry), seen.clock, seen.head_seq,"
        f" CASE WHEN EXISTS (SELECT 1 FROM ok) AND {missed} <> %s THEN ledger_moved() END FROM seen"
    )
    params.append(len(change.moves))
    return sql, params


def _guard(change: Change, pieces: list[str], params: list[Any]) -> None:
    stream = change.stream
    if change.expect_seq:
        table = tables()[journal.HEAD_TABLE[stream.kind]]
        pieces.append(
            f"head AS MATERIALIZED (SELECT h.head_seq, h.head_digest FROM {table.name} h WHERE h.{table.key} = %s FOR UPDATE)"
        )
        params.append(stream.id)
    else:
        pieces.append("head AS MATERIALIZED (SELECT 0::bigint AS head_seq, %s::bytea AS head_digest)")
        params.append(journal.GENESIS)
    conditions = ["head_seq = %s"]
    version = "NULL::bigint"
    if change.tenant_seq is not None:
        version = "ledger_tenant_seq(%s)"
        params.append(stream.tenant)
    params.append(change.expect_seq)
    if change.tenant_seq is not None:
        conditions.append("tenant_seq = %s")
        params.append(change.tenant_seq)
    if change.not_after is not None:
        conditions.append("clock < %s")
        params.append(change.not_after)
    pieces.append(f"seen AS MATERIALIZED (SELECT head.*, ledger_clock() AS clock, {version} AS tenant_seq FROM head)")
    pieces.append(f"ok AS MATERIALIZED (SELECT * FROM seen WHERE {' AND '.join(conditions)})")


def _by_table(inserts: Sequence[Insert]) -> dict[str, list[Mapping[str, Any]]]:
    grouped: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for insert in inserts:
        grouped[insert.table].append(insert.row)
    return grouped


def _by_shape(moves: Sequence[Move]) -> dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[Move]]:
    grouped: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[Move]] = defaultdict(list)
    for move in moves:
        grouped[(move.table, tuple(sorted(move.set)), tuple(sorted(move.expect)))].append(move)
    return grouped


def _json(rows: Sequence[Mapping[str, Any]]) -> str:
    return orjson.dumps(rows, default=_json_value).decode()


def _json_value(value: Any) -> Any:
    if isinstance(value, bytes | memoryview):
        return "\\x" + bytes(value).hex()
    raise TypeError(f"{type(value).__name__} has no place in the record")


def _full(table: Table, row: Mapping[str, Any]) -> dict[str, Any]:
    unknown = row.keys() - table.columns.keys()
    if unknown:
        raise ValueError(f"{table.record} has no columns {sorted(unknown)}")
    return {name: row.get(name, column.default) for name, column in table.columns.items()}


def _insert(table: Table, rows: list[Mapping[str, Any]], number: int, pieces: list[str], params: list[Any]) -> None:
    if table.record == "body":
        # Bytes by arrays: a megabyte of state as hexadecimal JSON would be parsed under the lock.
        names = ("id", "tenant_id", "salt", "content", "commitment", "media", "size")
        pieces.append(
            f"i{number} AS (INSERT INTO ledger_body ({', '.join(names)}) SELECT u.* FROM ok, unnest(%s::uuid[], %s::uuid[], %s::bytea[],"
            " %s::bytea[], %s::bytea[], %s::text[], %s::int[]) u)"
        )
        params += [[row[name] for row in rows] for name in names]
        return
    pieces.append(
        f"i{number} AS (INSERT INTO {table.name} SELECT u.* FROM ok, json_populate_recordset(NULL::{table.name}, %s::json) u)"
    )
    params.append(_json([_full(table, row) for row in rows]))


def _open_head(change: Change, content: bytes, pieces: list[str], params: list[Any]) -> None:
    if change.stream.kind is Kind.EVENT:
        return
    table = tables()[journal.HEAD_TABLE[change.stream.kind]]
    row = _full(table, {**change.head, "head_seq": 1, "head_digest": journal.link(journal.GENESIS, content)})
    pieces.append(
        f"opened AS (INSERT INTO {table.name} SELECT u.* FROM ok, json_populate_recordset(NULL::{table.name}, %s::json) u)"
    )
    params.append(_json([row]))


def _move(table: Table, moves: list[Move], number: int, pieces: list[str], params: list[Any]) -> str:
    sets = ", ".join(f"{name} = u.{name}" for name in sorted(moves[0].set))
    expected = " AND ".join(f"t.{name} IS NOT DISTINCT FROM e.{name}" for name in sorted(moves[0].expect)) or "true"
    pieces.append(
        f"m{number} AS (UPDATE {table.name} t SET {sets} FROM ok, json_populate_recordset(NULL::{table.name}, %s::json) u"
        f" JOIN json_populate_recordset(NULL::{table.name}, %s::json) e ON e.{table.key} = u.{table.key}"
        f" WHERE t.{table.key} = u.{table.key} AND {expected} RETURNING 1)"
    )
    params.append(_json([{**move.set, table.key: move.key} for move in moves]))
    params.append(_json([{**move.expect, table.key: move.key} for move in moves]))
    return f"m{number}"


def _advance_head(change: Change, content: bytes, pieces: list[str], params: list[Any]) -> None:
    table = tables()[journal.HEAD_TABLE[change.stream.kind]]
    sets = "".join(f", {name} = n.{name}" for name in change.head)
    pieces.append(
        f"advanced AS (UPDATE {table.name} t SET head_seq = ok.head_seq + 1, head_digest = sha256(ok.head_digest || %s::bytea){sets}"
        f" FROM ok, json_populate_record(NULL::{table.name}, %s::json) n WHERE t.{table.key} = %s)"
    )
    params += [content, orjson.dumps(dict(change.head), default=_json_value).decode(), change.stream.id]


# SQLite -------------------------------------------------------------------------------------


def _apply_sqlite(change: Change, content: bytes) -> Written:
    with transaction.atomic(), connection.cursor() as cursor:
        previous = _sqlite_head(change, cursor)
        clock = _sqlite_clock(change, cursor)
        digest = hashlib.sha256(previous + content).digest()
        for insert in change.inserts:
            _sqlite_insert(cursor, tables()[insert.table], insert.row)
        for move in change.moves:
            _sqlite_update(cursor, tables()[move.table], move.key, move.set, move.expect)
        if change.stream.kind is not Kind.EVENT:
            table = tables()[journal.HEAD_TABLE[change.stream.kind]]
            advanced = {**change.head, "head_seq": change.expect_seq + 1, "head_digest": digest}
            if change.expect_seq:
                _sqlite_update(cursor, table, change.stream.id, advanced, {})
            else:
                _sqlite_insert(cursor, table, advanced)
        _sqlite_entry(cursor, change, content, digest)
    return Written(change.expect_seq + 1, digest, clock)


def _sqlite_head(change: Change, cursor: Any) -> bytes:
    if change.expect_seq == 0:
        return journal.GENESIS
    table = tables()[journal.HEAD_TABLE[change.stream.kind]]
    cursor.execute(f"SELECT head_seq, head_digest FROM {table.name} WHERE {table.key} = %s", [change.stream.id.hex])
    found = cursor.fetchone()
    if found is None or found[0] != change.expect_seq:
        raise Moved
    return bytes(found[1])


def _sqlite_clock(change: Change, cursor: Any) -> datetime:
    cursor.execute("SELECT ledger_clock()")
    clock = datetime.fromisoformat(cursor.fetchone()[0]).astimezone(UTC)
    if change.tenant_seq is not None:
        cursor.execute("SELECT head_seq FROM ledger_tenant_head WHERE tenant_id = %s", [change.stream.tenant.hex])
        found = cursor.fetchone()
        if found is None or found[0] != change.tenant_seq:
            raise Moved
    if change.not_after is not None and clock >= change.not_after:
        raise Late
    return clock


def _sqlite_insert(cursor: Any, table: Table, row: Mapping[str, Any]) -> None:
    full = _full(table, row)
    names = list(full)
    cursor.execute(
        f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({', '.join(['%s'] * len(names))})",
        [table.columns[name].to_sqlite(full[name]) for name in names],
    )


def _sqlite_update(cursor: Any, table: Table, key: UUID, values: Mapping[str, Any], expect: Mapping[str, Any]) -> None:
    sets = ", ".join(f"{name} = %s" for name in values)
    where = "".join(f" AND {name} IS %s" for name in expect)
    params = [table.columns[name].to_sqlite(value) for name, value in values.items()]
    params.append(table.columns[table.key].to_sqlite(key))
    params += [table.columns[name].to_sqlite(value) for name, value in expect.items()]
    cursor.execute(f"UPDATE {table.name} SET {sets} WHERE {table.key} = %s{where}", params)
    if cursor.rowcount != 1:
        raise Moved


def _sqlite_entry(cursor: Any, change: Change, content: bytes, digest: bytes) -> None:
    row = {
        "tenant_id": change.stream.tenant,
        "kind": str(change.stream.kind),
        "stream_id": change.stream.id,
        "seq": change.expect_seq + 1,
        "at": change.at,
        "actor": change.actor,
        "verb": change.verb,
        "content": content,
        "digest": digest,
    }
    table = tables()["journal_entry"]
    cursor.execute(
        f"INSERT INTO {table.name} ({', '.join(row)}) VALUES ({', '.join(['%s'] * len(row))})",
        [table.columns[name].to_sqlite(value) for name, value in row.items()],
    )
