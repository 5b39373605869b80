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
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from typing import Any, TypeVar
from uuid import UUID

from django.db import IntegrityError, connection, transaction
from django.db.utils import DatabaseError

from ledger.domain import journal
from ledger.domain.change import Change, Insert, Kind, Move, Written
from ledger.domain.errors import Late, LedgerError, Moved
from ledger.models.tables import Table, journalled, tables
from ledger.services import hints, statements
from ledger.services.conflicts import Conflict, conflict

F = TypeVar("F")
A = TypeVar("A")
TRIES = 12
MOVED_SQLSTATE = "LM001"


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

    One round trip on PostgreSQL. There a head that somebody else holds at that moment counts as moved: nobody waits while holding another.
    """
    if connection.vendor == "postgresql" and changes:
        contents = [journal.entry(change, journalled) for change in changes]
        try:
            written = _apply_each_postgres(changes, contents)
        except (Moved, IntegrityError):
            pass  # A single one spoils the statement for all; one by one, only it is refused.
        else:
            for change, done in zip(changes, written, strict=True):
                if done is not None:
                    hints.after(change)
            return written
    return [_applied(change) for change in changes]


def _applied(change: Change) -> Written | None:
    try:
        return apply(change)
    except (Moved, Late, Conflict):
        return None


# PostgreSQL ---------------------------------------------------------------------------------


@dataclass(slots=True)
class _Sql:
    """A statement in the making: its CTEs with their parameters. `tag` keeps apart the CTEs of several Changes in one statement."""

    tag: str = ""
    waits: bool = True
    pieces: list[str] = field(default_factory=list)
    params: list[Any] = field(default_factory=list)

    def name(self) -> str:
        """A name for the next CTE."""
        return f"c{self.tag}_{len(self.pieces)}"

    def add(self, piece: str, *params: Any) -> None:
        self.pieces.append(piece)
        self.params += params


def _apply_postgres(change: Change, content: bytes) -> Written:
    sql = _Sql()
    answer = _statement(change, content, sql)
    found = _rows(f"WITH {', '.join(sql.pieces)} {answer}", sql.params)
    if not found:
        raise Moved
    digest, moment, seq, *_ = found[0]
    clock = datetime.fromisoformat(moment)
    if digest is None:
        if seq == change.expect_seq and change.not_after is not None and clock >= change.not_after:
            raise Late
        raise Moved
    return Written(change.expect_seq + 1, digest, clock)


def _apply_each_postgres(changes: Sequence[Change], contents: Sequence[bytes]) -> list[Written | None]:
    pieces: list[str] = []
    params: list[Any] = []
    answers: list[str] = []
    for number, (change, content) in enumerate(zip(changes, contents, strict=True)):
        sql = _Sql(f"_{number}", waits=False)
        answers.append(_statement(change, content, sql, number))
        pieces += sql.pieces
        params += sql.params
    written: list[Written | None] = [None] * len(changes)
    for digest, moment, _, number, _ in _rows(f"WITH {', '.join(pieces)} {' UNION ALL '.join(answers)}", params):
        if digest is not None:
            written[number] = Written(changes[number].expect_seq + 1, digest, datetime.fromisoformat(moment))
    return written


def _rows(sql: str, params: list[Any]) -> list[Any]:
    try:
        return statements.rows(sql, params)
    except DatabaseError as error:
        if getattr(error.__cause__, "sqlstate", None) == MOVED_SQLSTATE:
            raise Moved from None
        raise


def _statement(change: Change, content: bytes, sql: _Sql, number: int = 0) -> str:
    """Add the CTEs that write a Change, which is the `number`th of the statement. Answers the SELECT that says what became of it."""
    tag = sql.tag
    _guard(change, sql)
    for record, rows in _by_table(change.inserts).items():
        _insert(tables()[record], rows, sql)
    moved = [_move(tables()[move.table], move, sql) for move in change.moves]
    stream = change.stream
    sql.add(
        f"entry{tag} AS (INSERT INTO ledger_journal_entry (tenant_id, kind, stream_id, seq, at, actor, verb, content, digest)"
        " SELECT %s, %s, %s, %s, %s, %s, %s, n.content, sha256(ok.head_digest || n.content)"
        f" FROM ok{tag} ok, (VALUES (%s::bytea)) n(content) RETURNING digest)",
        stream.tenant,
        str(stream.kind),
        stream.id,
        change.expect_seq + 1,
        change.at,
        change.actor,
        change.verb,
        content,
    )
    _head(change, content, sql)
    missed = " + ".join(f"(SELECT count(*) FROM {name})" for name in moved) or "0"
    return (
        f"SELECT (SELECT digest FROM entry{tag}), to_json(seen.clock) #>> '{{}}', seen.head_seq, {number},"
        f" CASE WHEN EXISTS (SELECT 1 FROM ok{tag}) AND {missed} <> {len(moved)} THEN ledger_moved() END FROM seen{tag} seen"
    )


def _guard(change: Change, sql: _Sql) -> None:
    stream, tag = change.stream, sql.tag
    if change.expect_seq:
        table = tables()[journal.HEAD_TABLE[stream.kind]]
        lock = "FOR UPDATE" if sql.waits else "FOR UPDATE SKIP LOCKED"
        sql.add(
            f"head{tag} AS MATERIALIZED (SELECT h.head_seq, h.head_digest FROM {table.name} h WHERE h.{table.key} = %s {lock})",
            stream.id,
        )
    else:
        sql.add(f"head{tag} AS MATERIALIZED (SELECT 0::bigint AS head_seq, %s::bytea AS head_digest)", journal.GENESIS)
    conditions: dict[str, Any] = {"head_seq = %s": change.expect_seq}
    version: tuple[str, tuple[Any, ...]] = ("NULL::bigint", ())
    if change.tenant_seq is not None:
        version = ("ledger_tenant_seq(%s)", (stream.tenant,))
        conditions["tenant_seq = %s"] = change.tenant_seq
    if change.not_after is not None:
        conditions["clock < %s"] = change.not_after
    sql.add(
        f"seen{tag} AS MATERIALIZED (SELECT h.*, ledger_clock() AS clock, {version[0]} AS tenant_seq FROM head{tag} h)",
        *version[1],
    )
    sql.add(f"ok{tag} AS MATERIALIZED (SELECT * FROM seen{tag} WHERE {' AND '.join(conditions)})", *conditions.values())


def _by_table(inserts: Sequence[Insert]) -> dict[str, list[Mapping[str, Any]]]:
    grouped: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for insert in inserts:
        grouped[insert.table].append(insert.row)
    return grouped


def _insert(table: Table, rows: Sequence[Mapping[str, Any]], sql: _Sql) -> None:
    sql.add(
        f"{sql.name()} AS (INSERT INTO {table.name} ({table.names})"
        f" SELECT v.* FROM ok{sql.tag}, (VALUES {', '.join([table.holes] * len(rows))}) v)",
        *chain.from_iterable(_bound(table, table.full(row)) for row in rows),
    )


def _bound(table: Table, values: Mapping[str, Any]) -> list[Any]:
    columns = table.columns
    return [
        bind(value) if value is not None and (bind := columns[name].to_postgres) else value
        for name, value in values.items()
    ]


def _move(table: Table, move: Move, sql: _Sql) -> str:
    name = sql.name()
    expected = "".join(f" AND t.{column} IS NOT DISTINCT FROM {table.columns[column].hole}" for column in move.expect)
    sql.add(
        f"{name} AS (UPDATE {table.name} t SET {_sets(table, move.set)} FROM ok{sql.tag} WHERE t.{table.key} = %s{expected} RETURNING 1)",
        *_bound(table, move.set),
        move.key,
        *_bound(table, move.expect),
    )
    return name


def _sets(table: Table, values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {table.columns[name].hole}" for name in values)


def _head(change: Change, content: bytes, sql: _Sql) -> None:
    """Open the stream's head, or move it on to the entry."""
    if change.stream.kind is Kind.EVENT:
        return
    table = tables()[journal.HEAD_TABLE[change.stream.kind]]
    if change.expect_seq == 0:
        _insert(table, [_opened(change, journal.link(journal.GENESIS, content))], sql)
        return
    sets = ", ".join(
        ["head_seq = ok.head_seq + 1", "head_digest = entry.digest", *filter(None, [_sets(table, change.head)])]
    )
    sql.add(
        f"{sql.name()} AS (UPDATE {table.name} t SET {sets} FROM ok{sql.tag} ok, entry{sql.tag} entry WHERE t.{table.key} = %s)",
        *_bound(table, change.head),
        change.stream.id,
    )


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
