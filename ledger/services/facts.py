"""Facts: what a rule is told, read in one statement, with the database's clock.

On PostgreSQL all parts of a reading come from one SELECT and therefore one snapshot and one round trip. On SQLite they are read one after
the other, the head first; a change in between is caught by the head's sequence when the writer applies what the rule made of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from functools import cache, lru_cache
from itertools import chain
from typing import Any, TypeVar, get_type_hints
from uuid import UUID

import orjson
from django.db import connection

from ledger.models.tables import tables
from ledger.services import statements

T = TypeVar("T")
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of one table: `where` in SQL over `t` with %s for `params`, or the anchor's `own` row of that alias.

    `many` answers a list, otherwise one row or None. A part that is read at an anchor may speak of the anchor's aliases.
    """

    table: str
    where: str = ""
    params: tuple[Any, ...] = ()
    many: bool = False
    order: str = ""
    limit: int | None = None
    own: str = ""


@dataclass(frozen=True, slots=True)
class Anchor:
    """The rows that parts are read of: `source` in SQL, tables joined under aliases, and `where` that picks some of them."""

    source: str
    where: str
    params: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """One reading: the clock (UTC) and what the database said of each part, decoded when somebody asks for it."""

    now: datetime
    parts: Mapping[str, Part]
    found: Mapping[str, Any]
    vendor: str

    def row(self, part: str) -> Row | None:
        found = self.found[part]
        return None if found is None else self._decoded(part, [found])[0]

    def value(self, part: str, column: str) -> Any:
        """One column of the part's row; None without one."""
        found, decode = self.found[part], _decoders(self.parts[part].table, self.vendor)[column]
        if found is None or decode is None or found[column] is None:
            return None if found is None else found[column]
        return decode(found[column])

    def many(self, part: str) -> Sequence[Row]:
        return self._decoded(part, self.found[part] or ())

    def one(self, part: str, kind: type[T]) -> T | None:
        """The part's row as a domain value, or None."""
        found = self.found[part]
        return None if found is None else _decode(self.parts[part].table, kind, self.vendor, found)

    def all(self, part: str, kind: type[T]) -> Sequence[T]:
        """The part's rows as domain values."""
        table = self.parts[part].table
        return [_decode(table, kind, self.vendor, row) for row in self.found[part] or ()]

    def _decoded(self, part: str, rows: Sequence[Row]) -> list[Row]:
        columns = _decoders(self.parts[part].table, self.vendor).items()
        return [
            {name: decode(row[name]) if decode and row[name] is not None else row[name] for name, decode in columns}
            for row in rows
        ]


def read(**parts: Part) -> Facts:
    """Read all parts and the clock: one round trip on PostgreSQL."""
    if connection.vendor == "postgresql":
        pieces, params = _pieces(parts)
        return _facts(_document(["ledger_clock()", *pieces], params), parts)
    return _read_sqlite(parts)


def read_at(anchor: Anchor, parts: Mapping[str, Part]) -> Facts | None:
    """Read all parts at the one row of the anchor, and the clock: one round trip on PostgreSQL. None where there is no such row."""
    if connection.vendor == "postgresql":
        pieces, params = _pieces(parts)
        document = _document(["ledger_clock()", *pieces], params, anchor)
        return None if document is None else _facts(document, parts)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT 1 FROM {anchor.source} WHERE {anchor.where}", list(map(to_sqlite, anchor.params)))
        there = cursor.fetchone()
    return None if there is None else _read_sqlite(parts, anchor)


def read_each(anchor: Anchor, key: str, parts: Mapping[str, Part], **beside: Part) -> tuple[Facts, dict[UUID, Facts]]:
    """Read the parts `beside`, and `parts` at each row of the anchor, by its `key`: one round trip on PostgreSQL, however many rows there are."""
    if connection.vendor == "postgresql":
        pieces, params = _pieces(parts)
        others, more = _pieces(beside)
        rows = f"(SELECT json_agg(json_build_array({', '.join([key, *pieces])})) FROM {anchor.source} WHERE {anchor.where})"
        now, found, *rest = _document(["ledger_clock()", rows, *others], [*params, *anchor.params, *more])
        return _facts([now, *rest], beside), {UUID(row[0]): _facts([now, *row[1:]], parts) for row in found or ()}
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {key} FROM {anchor.source} WHERE {anchor.where}", list(map(to_sqlite, anchor.params)))
        ids = [UUID(str(row[0])) for row in cursor.fetchall()]
    each = {each_id: _read_sqlite(parts, Anchor(anchor.source, f"{key} = %s", (each_id,))) for each_id in ids}
    return _read_sqlite(beside), each


def _pieces(parts: Mapping[str, Part]) -> tuple[list[str], list[Any]]:
    texts = [_json(part.table, part.where, part.many, part.order, part.limit, part.own) for part in parts.values()]
    return texts, list(chain.from_iterable(part.params for part in parts.values()))


@lru_cache(maxsize=1024)
def _json(table: str, where: str, many: bool, order: str, limit: int | None, own: str) -> str:
    """A part as one JSON value, null for no rows."""
    if own:
        return f"row_to_json({own})"
    sort = f" ORDER BY {order}" if order else ""
    among = f"FROM {tables()[table].name} t WHERE {where}"
    if not many:
        return f"(SELECT row_to_json(t) {among}{sort} LIMIT 1)"
    if limit is not None:
        return f"(SELECT json_agg(q) FROM (SELECT t.* {among}{sort} LIMIT {limit}) q)"
    return f"(SELECT json_agg(t{sort}) {among})"


def _document(pieces: Sequence[str], params: Sequence[Any], anchor: Anchor | None = None) -> Any:
    sql = f"SELECT json_build_array({', '.join(pieces)})::text"
    if anchor is not None:
        sql += f" FROM {anchor.source} WHERE {anchor.where} LIMIT 1"
        params = [*params, *anchor.params]
    found = statements.rows(sql, params)
    return orjson.loads(found[0][0]) if found else None


def _facts(document: Sequence[Any], parts: Mapping[str, Part]) -> Facts:
    """A document of the clock and one value a part."""
    return Facts(datetime.fromisoformat(document[0]), parts, dict(zip(parts, document[1:], strict=True)), "postgresql")


def _read_sqlite(parts: Mapping[str, Part], anchor: Anchor | None = None) -> Facts:
    found: dict[str, Any] = {}
    with connection.cursor() as cursor:
        cursor.execute("SELECT ledger_clock()")
        now = datetime.fromisoformat(cursor.fetchone()[0])
        for name, part in parts.items():
            sql, params = _sqlite(part, anchor)
            cursor.execute(sql, list(map(to_sqlite, params)))
            columns = [column[0] for column in cursor.description]
            rows = [dict(zip(columns, values, strict=True)) for values in cursor.fetchall()]
            found[name] = rows if part.many else (rows[0] if rows else None)
    return Facts(now, parts, found, "sqlite")


def _sqlite(part: Part, anchor: Anchor | None) -> tuple[str, tuple[Any, ...]]:
    table = tables()[part.table].name
    limit = 1 if not part.many else part.limit
    tail = (f" ORDER BY {part.order}" if part.order else "") + (f" LIMIT {limit}" if limit is not None else "")
    if anchor is None:
        return f"SELECT t.* FROM {table} t WHERE {part.where}{tail}", part.params
    if part.own:
        key = tables()[part.table].key
        return (
            f"SELECT {part.own}.* FROM {anchor.source} WHERE {anchor.where} AND {part.own}.{key} IS NOT NULL LIMIT 1",
            anchor.params,
        )
    # The anchor comes last: SQLite 3.40 sorts the wrong way round what it joins after a LEFT JOIN that it found to be needless.
    return (
        f"SELECT t.* FROM {table} t, {anchor.source} WHERE ({part.where}) AND {anchor.where}{tail}",
        part.params + anchor.params,
    )


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


Decoder = Callable[[Any], Any] | None


@cache
def _decoders(record: str, vendor: str) -> Mapping[str, Decoder]:
    """The columns of a table, each with what makes its value of what this database says (but null); None where nothing has to."""
    columns = tables()[record].columns.items()
    return {name: column.from_json if vendor == "postgresql" else column.from_sqlite for name, column in columns}


_FIELDS: dict[tuple[str, Any, str], tuple[tuple[str, Decoder], ...]] = {}


def _decode(record: str, kind: type[T], vendor: str, row: Row) -> T:
    """A row as a domain value, of which only the fields are decoded."""
    if (record, kind, vendor) not in _FIELDS:
        columns = _decoders(record, vendor)
        _FIELDS[record, kind, vendor] = tuple((name, enum or columns[name]) for name, enum in _shape(kind))
    fields = _FIELDS[record, kind, vendor]
    return kind(*[decode(row[name]) if decode and row[name] is not None else row[name] for name, decode in fields])


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
