"""Facts: what a rule is told, read in one statement, with the database's clock.

On PostgreSQL all parts of a reading come from one SELECT and therefore one snapshot and one round trip. On SQLite they are read one after
the other, the head first; a change in between is caught by the head's sequence when the writer applies what the rule made of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from enum import StrEnum
from itertools import chain
from typing import Any, TypeVar, get_type_hints
from uuid import UUID

import orjson
from django.db import connection

from ledger.models.tables import Table, tables

T = TypeVar("T")
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of one table: `where` in SQL over `t` with %s for `params`. `many` answers a list, otherwise one row or None."""

    table: str
    where: str
    params: tuple[Any, ...] = ()
    many: bool = False
    order: str = ""
    limit: int | None = None

    def sql(self) -> str:
        text = f"SELECT t.* FROM {tables()[self.table].name} t WHERE {self.where}"
        if self.order:
            text += f" ORDER BY {self.order}"
        if not self.many:
            text += " LIMIT 1"
        elif self.limit is not None:
            text += f" LIMIT {self.limit}"
        return text

    def about(self, marker: UUID, sql: str, *params: Any) -> Part:
        """The same part with `sql` and its `params` wherever it has `marker` for a parameter: asked of what the database finds there."""
        pieces = self.where.split("%s")
        holes = [sql if param == marker else "%s" for param in self.params]
        where = "".join(text + hole for text, hole in zip(pieces, [*holes, ""], strict=True))
        given = [params if param == marker else (param,) for param in self.params]
        return replace(self, where=where, params=tuple(chain.from_iterable(given)))


@dataclass(frozen=True, slots=True)
class Each:
    """The same parts of several rows: `ids` is SQL that selects `id`, and `parts` have `marker` where each of these ids belongs."""

    ids: str
    params: tuple[Any, ...]
    marker: UUID
    parts: Mapping[str, Part]


@dataclass(frozen=True, slots=True)
class Facts:
    """One reading: the clock (UTC) and the rows of each part."""

    now: datetime
    rows: Mapping[str, Any]

    def row(self, part: str) -> Row | None:
        found: Row | None = self.rows[part]
        return found

    def many(self, part: str) -> Sequence[Row]:
        found: Sequence[Row] = self.rows[part]
        return found

    def one(self, part: str, kind: type[T]) -> T | None:
        """The part's row as a domain value, or None."""
        found = self.rows[part]
        return None if found is None else load(kind, found)

    def all(self, part: str, kind: type[T]) -> Sequence[T]:
        """The part's rows as domain values."""
        return [load(kind, row) for row in self.rows[part]]


def read(**parts: Part) -> Facts:
    """Read all parts and the clock: one round trip on PostgreSQL."""
    return _read_postgres(parts) if connection.vendor == "postgresql" else _read_sqlite(parts)


def read_each(each: Each, **parts: Part) -> tuple[Facts, dict[UUID, Facts]]:
    """Read all parts, and those of each row by its id: one round trip on PostgreSQL, however many rows there are."""
    return _each_postgres(each, parts) if connection.vendor == "postgresql" else _each_sqlite(each, parts)


def _read_postgres(parts: Mapping[str, Part]) -> Facts:
    document = _document([_wrapped(part) for part in parts.values()], [part.params for part in parts.values()])
    return _facts(datetime.fromisoformat(document[0]), parts, document[1:])


def _each_postgres(each: Each, parts: Mapping[str, Part]) -> tuple[Facts, dict[UUID, Facts]]:
    of_row = [part.about(each.marker, "each_row.id") for part in each.parts.values()]
    rows = (
        f"(SELECT coalesce(json_agg(json_build_array({', '.join(['each_row.id', *map(_wrapped, of_row)])})), '[]')"
        f" FROM ({each.ids}) each_row)"
    )
    document = _document(
        [rows, *map(_wrapped, parts.values())],
        [*(part.params for part in of_row), each.params, *(part.params for part in parts.values())],
    )
    now = datetime.fromisoformat(document[0])
    found = {UUID(row[0]): _facts(now, each.parts, row[1:]) for row in document[1]}
    return _facts(now, parts, document[2:]), found


def _wrapped(part: Part) -> str:
    """A part as one JSON value, null for no rows. Kept short: the driver remembers only statements below 4,096 characters."""
    if part.many and part.limit is not None:
        return f"(SELECT json_agg(q) FROM ({part.sql()}) q)"
    order = f" ORDER BY {part.order}" if part.order else ""
    among = f"FROM {tables()[part.table].name} t WHERE {part.where}"
    if part.many:
        return f"(SELECT json_agg(t{order}) {among})"
    return f"(SELECT row_to_json(t) {among}{order} LIMIT 1)"


def _document(pieces: Sequence[str], params: Sequence[Sequence[Any]]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT json_build_array({', '.join(['ledger_clock()', *pieces])})::text",
            list(chain.from_iterable(params)),
        )
        document: list[Any] = orjson.loads(cursor.fetchone()[0])
        return document


def _facts(now: datetime, parts: Mapping[str, Part], values: Sequence[Any]) -> Facts:
    rows = {}
    for (name, part), value in zip(parts.items(), values, strict=True):
        table = tables()[part.table]
        rows[name] = [_from_json(table, row) for row in value or ()] if part.many else _from_json(table, value)
    return Facts(now, rows)


def _from_json(table: Table, row: Row | None) -> Any:
    if row is None:
        return None
    for name, convert in table.converted:
        if row[name] is not None:
            row[name] = convert(row[name])
    return row


def _read_sqlite(parts: Mapping[str, Part]) -> Facts:
    rows: dict[str, Any] = {}
    with connection.cursor() as cursor:
        cursor.execute("SELECT ledger_clock()")
        now = datetime.fromisoformat(cursor.fetchone()[0])
        for name, part in parts.items():
            cursor.execute(part.sql(), [to_sqlite(value) for value in part.params])
            columns = tables()[part.table].columns
            names = [column[0] for column in cursor.description]
            found = [
                {key: columns[key].from_sqlite(value) for key, value in zip(names, values, strict=True)}
                for values in cursor.fetchall()
            ]
            rows[name] = found if part.many else (found[0] if found else None)
    return Facts(now, rows)


def _each_sqlite(each: Each, parts: Mapping[str, Part]) -> tuple[Facts, dict[UUID, Facts]]:
    with connection.cursor() as cursor:
        cursor.execute(each.ids, [to_sqlite(value) for value in each.params])
        ids = [UUID(str(row[0])) for row in cursor.fetchall()]
    found = {}
    for each_id in ids:
        found[each_id] = _read_sqlite(
            {name: part.about(each.marker, "%s", each_id) for name, part in each.parts.items()}
        )
    return _read_sqlite(parts), found


def clock() -> str:
    """The database's clock in SQL, comparable with stored times. Read once a statement, so that an index on times is searched and not read whole."""
    return (
        "(SELECT ledger_clock())"
        if connection.vendor == "postgresql"
        else "replace(substr(ledger_clock(), 1, 26), 'T', ' ')"
    )


def json_text(value: Any) -> str:
    """A bound JSON value, for a statement outside of the writer."""
    return orjson.dumps(value).decode()


def to_sqlite(value: Any) -> Any:
    """A bound value as SQLite stores it."""
    if isinstance(value, UUID):
        return value.hex
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(" ", "microseconds")
    return str(value) if isinstance(value, StrEnum) else value


_SHAPES: dict[Any, tuple[tuple[str, type[StrEnum] | None], ...]] = {}


def _shape(kind: Any) -> tuple[tuple[str, type[StrEnum] | None], ...]:
    """The fields of a domain value, each with its enum where it has one; worked out once a kind."""
    if kind not in _SHAPES:
        hints = get_type_hints(kind)
        _SHAPES[kind] = tuple((item.name, _enum(hints[item.name])) for item in fields(kind))
    return _SHAPES[kind]


def _enum(hint: Any) -> type[StrEnum] | None:
    return hint if isinstance(hint, type) and issubclass(hint, StrEnum) else None


def load(kind: type[T], row: Row) -> T:
    """A row as the domain's frozen value: columns by name, codes as enums."""
    return kind(**{name: enum(row[name]) if enum else row[name] for name, enum in _shape(kind)})
