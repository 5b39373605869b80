"""The one writer: applies a Change in one transaction. No other module writes tables of the record.

On PostgreSQL it is one guarded statement. A materialised CTE locks the stream's head; the next one reads the clock and
the tenant's version, so both are read after the lock; every insert and update draws from a third, which is empty unless
head, version and `not_after` are as the rule read them. On SQLite, which has one writer at a time, it is a plain
transaction behind the same call.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TypeVar
from uuid import UUID

from django.db import IntegrityError, connection, transaction
from django.db.utils import DatabaseError

from ledger.domain import journal
from ledger.domain.change import Change, Kind, Written
from ledger.domain.errors import Late, LedgerError, Moved
from ledger.models.tables import Table, journalled, tables
from ledger.services import hints, several, statements
from ledger.services.conflicts import Conflict, conflict
from ledger.services.shapes import Rows, Shape, by_table, shape_of

F = TypeVar("F")
A = TypeVar("A")
TRIES = 12
MOVED_SQLSTATE = "LM001"
_ABOUT = "ledger_entry_target (tenant_id, target_id, at, entry_id) SELECT entry.tenant_id, t.id, entry.at, entry.id"
_TARGETS = "SELECT unnest(%s::uuid[]) UNION SELECT e.target_id FROM ledger_effect e WHERE e.id = ANY(%s::uuid[])"


def settle(
    read: Callable[[], F],
    rule: Callable[[F], tuple[Change | None, A]],
    *,
    first: F | None = None,
    again: frozenset[str] = frozenset(),
) -> tuple[A, Written | None]:
    """Read, decide, write; start again when the record moved in between or one of the named constraints was hit.

    `first` is a reading that the caller has already: the first try goes by it, since the writer compares it with the record anyway.
    Raises LedgerError from the rule, and `busy` when the record kept moving.
    """
    for _ in range(TRIES):
        change, answer = rule(read() if first is None else first)
        first = None
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


def apply_each(changes: Sequence[Change]) -> list[Written | None]:
    """Apply Changes of different streams, each for itself: None for one whose record moved, whose time has passed, or that hit a constraint.

    One round trip on PostgreSQL, for streams that are there already. There a head that somebody else holds at that moment counts as moved: nobody
    waits while holding another.
    """
    if connection.vendor == "postgresql" and changes and all(change.expect_seq for change in changes):
        contents = [journal.entry(change, journalled) for change in changes]
        try:
            written = several.apply(changes, contents, _rows)
        except (Moved, IntegrityError):
            pass  # A single one spoils the statement for all; one by one, only it is refused.
        else:
            hints.after(*[change for change, done in zip(changes, written, strict=True) if done is not None])
            return written
    return [_applied(change) for change in changes]


def _applied(change: Change) -> Written | None:
    try:
        return apply(change)
    except (Moved, Late, Conflict):
        return None


# PostgreSQL ---------------------------------------------------------------------------------


def _apply_postgres(change: Change, content: bytes) -> Written:
    rows = by_table(change.inserts)
    found = _rows(_text(shape_of(change, rows)), _params(change, content, rows))
    if not found:
        raise Moved
    digest, moment, seq, _ = found[0]
    clock = datetime.fromisoformat(moment)
    if digest is None:
        if seq == change.expect_seq and change.not_after is not None and clock >= change.not_after:
            raise Late
        raise Moved
    return Written(change.expect_seq + 1, digest, clock)


def _rows(sql: str, params: list[Any]) -> list[Any]:
    try:
        return statements.rows(sql, params)
    except DatabaseError as error:
        if getattr(error.__cause__, "sqlstate", None) == MOVED_SQLSTATE:
            raise Moved from None
        raise


def _params(change: Change, content: bytes, rows: Rows) -> list[Any]:
    """The values of a Change, in the order of the holes in the text of its shape. What isn't bytes goes as text, which the text casts: then one
    text has one plan, whatever the size of a number and whichever value is null."""
    stream, known = change.stream, tables()
    key, tenant, seq = stream.id.hex, stream.tenant.hex, str(change.expect_seq)
    params: list[Any] = [key if change.expect_seq else journal.GENESIS]
    if change.tenant_seq is not None:
        params.append(tenant)
    params.append(seq)
    if change.tenant_seq is not None:
        params.append(str(change.tenant_seq))
    if change.not_after is not None:
        params.append(change.not_after.isoformat())
    for record, each in rows.items():
        for row in each:
            params += known[record].bound_row(row)
    for move in change.moves:
        table = known[move.table]
        params += [*table.bound(move.set), move.key.hex, *table.bound(move.expect)]
    params += [tenant, str(stream.kind), key, str(change.expect_seq + 1), change.at.isoformat()]
    params += [change.actor, change.verb, content]
    if any(about := journal.concerned(journal.written(change))):
        params += [f"{{{','.join([each.hex for each in ids])}}}" for ids in about]
    if stream.kind is not Kind.EVENT:
        head = known[journal.HEAD_TABLE[stream.kind]]
        if change.expect_seq:
            params += [*head.bound(change.head), key]
        else:
            params += head.bound_row(_opened(change, journal.link(journal.GENESIS, content)))
    return params


@lru_cache(maxsize=256)
def _text(shape: Shape) -> str:
    """The statement that writes one Change of this shape."""
    pieces = _guard(shape)
    pieces += [_insert(tables()[record], f"i_{n}", count) for n, (record, count) in enumerate(shape.inserts)]
    moved = [f"m_{n}" for n in range(len(shape.moves))]
    pieces += [_move(name, *move) for name, move in zip(moved, shape.moves, strict=True)]
    pieces.append(
        "entry AS (INSERT INTO ledger_journal_entry (tenant_id, kind, stream_id, seq, at, actor, verb, content, digest)"
        " SELECT %s::uuid, %s::text, %s::uuid, %s::bigint, %s::timestamptz, %s::text, %s::text, n.content, sha256(ok.head_digest || n.content)"
        " FROM ok, (VALUES (%s::bytea)) n(content) RETURNING tenant_id, id, at, digest)"
    )
    if shape.about:
        pieces.append(f"about AS (INSERT INTO {_ABOUT} FROM entry, ({_TARGETS}) t(id))")
    pieces += _head(shape)
    missed = " + ".join(f"(SELECT count(*) FROM {name})" for name in moved) or "0"
    return (
        f"WITH {', '.join(pieces)} SELECT (SELECT digest FROM entry), to_json(seen.clock) #>> '{{}}', seen.head_seq,"
        f" CASE WHEN EXISTS (SELECT 1 FROM ok) AND {missed} <> {len(moved)} THEN ledger_moved() END FROM seen"
    )


def _guard(shape: Shape) -> list[str]:
    head = "head AS MATERIALIZED (SELECT 0::bigint AS head_seq, %s::bytea AS head_digest)"
    if not shape.opens:
        table = tables()[journal.HEAD_TABLE[shape.kind]]
        head = f"head AS MATERIALIZED (SELECT h.head_seq, h.head_digest FROM {table.name} h WHERE h.{table.key} = %s::uuid FOR UPDATE)"
    version = "ledger_tenant_seq(%s::uuid)" if shape.by_tenant else "NULL::bigint"
    conditions = ["head_seq = %s::bigint"]
    if shape.by_tenant:
        conditions.append("tenant_seq = %s::bigint")
    if shape.by_time:
        conditions.append("clock < %s::timestamptz")
    return [
        head,
        f"seen AS MATERIALIZED (SELECT h.*, ledger_clock() AS clock, {version} AS tenant_seq FROM head h)",
        f"ok AS MATERIALIZED (SELECT * FROM seen WHERE {' AND '.join(conditions)})",
    ]


def _insert(table: Table, name: str, count: int) -> str:
    rows = ", ".join([table.holes] * count)
    return f"{name} AS (INSERT INTO {table.name} ({table.names}) SELECT v.* FROM ok, (VALUES {rows}) v)"


def _move(name: str, record: str, values: tuple[str, ...], expect: tuple[str, ...]) -> str:
    table = tables()[record]
    expected = "".join(f" AND t.{column} IS NOT DISTINCT FROM {table.columns[column].hole}" for column in expect)
    sets = f"UPDATE {table.name} t SET {_sets(table, values)} FROM ok"
    return f"{name} AS ({sets} WHERE t.{table.key} = %s::uuid{expected} RETURNING 1)"


def _sets(table: Table, names: tuple[str, ...]) -> str:
    return ", ".join(f"{name} = {table.columns[name].hole}" for name in names)


def _head(shape: Shape) -> list[str]:
    """Open the stream's head, or move it on to the entry."""
    if shape.kind is Kind.EVENT:
        return []
    table = tables()[journal.HEAD_TABLE[shape.kind]]
    if shape.opens:
        return [_insert(table, "h", 1)]
    own = ["head_seq = ok.head_seq + 1", "head_digest = entry.digest"]
    sets = ", ".join([*own, _sets(table, shape.head)] if shape.head else own)
    moved = f"UPDATE {table.name} t SET {sets} FROM ok, entry"
    return [f"h AS ({moved} WHERE t.{table.key} = %s::uuid)"]


def _opened(change: Change, digest: bytes) -> Mapping[str, Any]:
    """The head of a stream that this change opens. Its salt stands here alone, and in no entry."""
    return {**change.head, "head_seq": 1, "head_digest": digest, "salt": change.stream.salt}


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
            if change.expect_seq:
                advanced = {**change.head, "head_seq": change.expect_seq + 1, "head_digest": digest}
                _sqlite_update(cursor, table, change.stream.id, advanced, {})
            else:
                _sqlite_insert(cursor, table, _opened(change, digest))
        _sqlite_entry(cursor, change, content, digest)
        _sqlite_about(cursor, change, cursor.lastrowid)
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
    full = table.full(row)
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


def _sqlite_about(cursor: Any, change: Change, entry_id: int) -> None:
    named, effects = journal.concerned(journal.written(change))
    for ids, table, column in ((named, "target", "id"), (effects, "effect", "target_id")):
        for each in ids:
            cursor.execute(
                f"INSERT OR IGNORE INTO {_ABOUT} FROM ledger_journal_entry entry, (SELECT {column} AS id FROM ledger_{table} WHERE id = %s) t"
                " WHERE entry.id = %s",
                [each.hex, entry_id],
            )
