"""The tables of the record, by the name that Changes and journal entries use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any
from uuid import UUID, SafeUUID

import orjson
from django.apps import apps
from django.db import models

from ledger.domain.journal import Journalled
from ledger.models.base import Record


@dataclass(frozen=True, slots=True)
class Column:
    """`name` in the database; `default` for rows that leave it out; how PostgreSQL's JSON and SQLite's values become ours (None where they are the
    same), and ours what the drivers are given (but null); `hole` is the placeholder of a value in PostgreSQL's SQL, with a cast."""

    name: str
    kind: str
    default: Any
    from_json: Callable[[Any], Any] | None
    from_sqlite: Callable[[Any], Any] | None
    to_sqlite: Callable[[Any], Any]
    to_postgres: Callable[[Any], str | bytes]
    hole: str


@dataclass(frozen=True, slots=True)
class Table:
    record: str
    model: type[Record]
    name: str
    key: str
    columns: Mapping[str, Column]
    names: str
    holes: str
    """The names of all columns, and their holes, in SQL."""
    writes: tuple[Callable[[Any], str | bytes], ...]
    """How PostgreSQL's driver is given each of them, in the same order."""
    defaults: Mapping[str, Any]
    journalled: frozenset[str]
    """What its rows carry in the journal, as it is or as a commitment."""
    committed: frozenset[str]
    """Those of which only a commitment under the stream's salt enters an entry."""
    later: frozenset[str]
    """Those that entries of before they were journalled don't carry."""
    machine: str | None
    """The column that says where a row's machine stands."""

    @property
    def append_only(self) -> bool:
        return self.model.APPEND_ONLY

    def full(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """A new row with the defaults of what it leaves out, in the order of the columns. Raises ValueError for a column that isn't there."""
        full = {**self.defaults, **row}
        if len(full) != len(self.defaults):
            raise ValueError(f"{self.record} has no columns {sorted(full.keys() - self.defaults.keys())}")
        return full

    def bound(self, values: Mapping[str, Any]) -> list[str | bytes | None]:
        """Values of columns as PostgreSQL's driver is given them, for holes in the same order."""
        columns = self.columns
        return [None if value is None else columns[name].to_postgres(value) for name, value in values.items()]

    def bound_row(self, row: Mapping[str, Any]) -> list[str | bytes | None]:
        """A new row as PostgreSQL's driver is given it, for `holes`. Raises ValueError as `full` does."""
        values = self.full(row).values()
        return [None if value is None else write(value) for value, write in zip(values, self.writes, strict=True)]


@cache
def tables() -> Mapping[str, Table]:
    """Every table of the record, from every installed app."""
    found = {}
    for model in apps.get_models():
        if issubclass(model, Record):
            found[model.RECORD] = _table(model)
    return found


def journalled(record: str) -> Journalled:
    """The attributes of a table that its rows carry in the journal."""
    table = tables()[record]
    return Journalled(table.journalled, table.committed, table.machine)


def machine(record: str) -> str | None:
    """The machine's column of a table; None for one without, and for what is no table of the record."""
    table = tables().get(record)
    return table.machine if table else None


def _table(model: type[Record]) -> Table:
    columns = {str(field.column): _column(field) for field in model._meta.concrete_fields}
    key = model._meta.pk
    if key is None:
        raise TypeError(f"{model.__name__} has no primary key")
    return Table(
        record=model.RECORD,
        model=model,
        name=model._meta.db_table,
        key=str(key.column),
        columns=columns,
        names=", ".join(columns),
        holes=f"({', '.join(column.hole for column in columns.values())})",
        writes=tuple(column.to_postgres for column in columns.values()),
        defaults={name: column.default for name, column in columns.items()},
        journalled=frozenset(columns) - model.UNJOURNALLED,
        committed=model.COMMITTED,
        later=model.LATER,
        machine=model.MACHINE,
    )


def _same(value: Any) -> Any:
    return value


def _column(field: models.Field[Any, Any]) -> Column:
    kind = field.target_field.get_internal_type() if isinstance(field, models.ForeignKey) else field.get_internal_type()
    from_json, from_sqlite, to_sqlite = _CODECS.get(kind, (None, None, None))
    default = (
        field.get_default() if field.has_default() else ("" if field.empty_strings_allowed and not field.null else None)
    )
    if kind not in {"CharField", "TextField", "SlugField", "EmailField"} and not field.has_default():
        default = None
    return Column(
        name=str(field.column),
        kind=kind,
        default=default,
        from_json=from_json,
        from_sqlite=from_sqlite,
        to_sqlite=_or_none(to_sqlite),
        to_postgres=_TO_POSTGRES.get(kind, str),
        hole=f"%s::{_CASTS[kind]}",
    )


def _or_none(convert: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    if convert is None:
        return _same
    return lambda value: None if value is None else convert(value)


_new, _set, _UNKNOWN = object.__new__, object.__setattr__, SafeUUID.unknown
"""By their own names: to look them up in their classes takes as long as what is saved."""


def _uuid(text: str) -> UUID:
    """`UUID(text)` of what PostgreSQL wrote, in half the time: without the checks of what anybody may write, and a row has many ids."""
    found = _new(UUID)
    _set(found, "int", int(text.replace("-", ""), 16))
    _set(found, "is_safe", _UNKNOWN)
    return found


def _moment(text: str | datetime) -> datetime:
    at = text if isinstance(text, datetime) else datetime.fromisoformat(text)
    if at.tzinfo is UTC:
        return at
    return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)


def _sqlite_moment(at: datetime) -> str:
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "microseconds")


Codec = Callable[[Any], Any] | None

_CODECS: Mapping[str, tuple[Codec, Codec, Codec]] = {
    "UUIDField": (_uuid, UUID, lambda value: value.hex if isinstance(value, UUID) else UUID(str(value)).hex),
    "DateTimeField": (_moment, _moment, _sqlite_moment),
    "BinaryField": (lambda text: bytes.fromhex(text[2:]), bytes, bytes),
    "JSONField": (None, orjson.loads, lambda value: orjson.dumps(value).decode()),
    "BooleanField": (None, bool, None),
}

_TO_POSTGRES: Mapping[str, Callable[[Any], str | bytes]] = {
    "UUIDField": lambda value: value.hex if type(value) is UUID else str(value),
    "DateTimeField": datetime.isoformat,
    "BinaryField": bytes,
    "JSONField": lambda value: orjson.dumps(value).decode(),
}
"""What isn't simply the value's text. Of a text the server learns the type from the hole's cast, and the driver has nothing to find out."""

_CASTS: Mapping[str, str] = {
    "UUIDField": "uuid",
    "DateTimeField": "timestamptz",
    "BinaryField": "bytea",
    "JSONField": "jsonb",
    "BooleanField": "boolean",
    "IntegerField": "bigint",
    "BigIntegerField": "bigint",
    "BigAutoField": "bigint",
    "CharField": "text",
    "TextField": "text",
}
"""The widest type of each kind: the column's own narrows it, and refuses what doesn't fit instead of cutting it off."""
