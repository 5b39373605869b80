"""Append-only triggers and the database's clock, on both databases.

They are installed after every migration: on SQLite a later AlterField or AddField rebuilds the table and drops its
triggers silently. Readiness asks `missing()`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.db import connections, models
from django.db.backends.base.base import BaseDatabaseWrapper

from ledger.models.tables import Table, tables

FUNCTIONS = Path(__file__).resolve().parent.parent / "sql" / "functions.sql"


def process_clock() -> str:
    """SQLite's clock is the process's: RFC 3339, UTC, microseconds."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def register_clock(connection: BaseDatabaseWrapper, **_: Any) -> None:
    """Make `ledger_clock()` known to a new SQLite connection."""
    if connection.vendor == "sqlite":
        connection.connection.create_function("ledger_clock", 0, lambda: process_clock())


def install(using: str = "default", **_: Any) -> None:
    """Create functions and triggers; what exists is replaced."""
    connection = connections[using]
    present = set(connection.introspection.table_names())
    guarded = [
        table for table in tables().values() if table.name in present and (table.append_only or table.record == "body")
    ]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            if "ledger_tenant_head" in present:
                cursor.execute(FUNCTIONS.read_text())
                for statement in (line for table in guarded for line in _postgres(table)):
                    cursor.execute(statement)
        else:
            for statement in (line for table in guarded for line in _sqlite(table)):
                cursor.execute(statement)


def expected() -> dict[str, set[str]]:
    """For each guarded table, the names of its triggers on the default database."""
    vendor = connections["default"].vendor
    found = {}
    for table in tables().values():
        if table.append_only or table.record == "body":
            found[table.name] = {f"{table.name}_{suffix}" for suffix in _suffixes(vendor, table)}
    return found


def _suffixes(vendor: str, table: Table) -> tuple[str, ...]:
    if vendor != "postgresql":
        return ("not_updated", "not_deleted", "not_replaced")
    return ("kept", "not_truncated", *(("not_deleted",) if table.record == "body" else ()))


def missing() -> list[str]:
    """Names of triggers that should guard the record and aren't there or aren't always enabled."""
    connection = connections["default"]
    if connection.vendor == "postgresql":
        query = "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgenabled = 'A'"
    else:
        query = "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    with connection.cursor() as cursor:
        cursor.execute(query)
        present = {row[0] for row in cursor.fetchall()}
    return sorted(name for names in expected().values() for name in names - present)


def _postgres(table: Table) -> list[str]:
    name = table.name
    body = table.record == "body"
    kept = f"{name}_kept"
    event, function = ("UPDATE", "ledger_body_erased_once") if body else ("UPDATE OR DELETE", "ledger_append_only")
    statements = [
        f"CREATE OR REPLACE TRIGGER {kept} BEFORE {event} ON {name} FOR EACH ROW EXECUTE FUNCTION {function}()",
        f"ALTER TABLE {name} ENABLE ALWAYS TRIGGER {kept}",
        f"CREATE OR REPLACE TRIGGER {name}_not_truncated BEFORE TRUNCATE ON {name} FOR EACH STATEMENT EXECUTE FUNCTION ledger_append_only()",
        f"ALTER TABLE {name} ENABLE ALWAYS TRIGGER {name}_not_truncated",
    ]
    if body:
        statements += [
            f"CREATE OR REPLACE TRIGGER {name}_not_deleted BEFORE DELETE ON {name} FOR EACH ROW EXECUTE FUNCTION ledger_append_only()",
            f"ALTER TABLE {name} ENABLE ALWAYS TRIGGER {name}_not_deleted",
        ]
    return statements


def _sqlite(table: Table) -> list[str]:
    name = table.name
    refuse = f"SELECT RAISE(ABORT, '{name} is append-only')"
    unless = ""
    if table.record == "body":
        same = " AND ".join(
            f"NEW.{column} IS OLD.{column}" for column in ("id", "tenant_id", "commitment", "media", "size")
        )
        unless = f" WHEN NOT (OLD.erased_at IS NULL AND NEW.erased_at IS NOT NULL AND NEW.content IS NULL AND NEW.salt IS NULL AND {same})"
    # UPDATE and DELETE triggers don't see INSERT OR REPLACE: what would replace a row by any unique key is refused first.
    taken = " ".join(
        f"SELECT RAISE(ABORT, 'UNIQUE constraint failed: {', '.join(f'{name}.{column}' for column in columns)}')"
        f" WHERE EXISTS (SELECT 1 FROM {name} WHERE {' AND '.join(f'{column} = NEW.{column}' for column in columns)});"
        for columns in _unique(table)
    )
    statements = {
        "not_updated": f"BEFORE UPDATE ON {name}{unless} BEGIN {refuse}; END",
        "not_deleted": f"BEFORE DELETE ON {name} BEGIN {refuse}; END",
        "not_replaced": f"BEFORE INSERT ON {name} BEGIN {taken} END",
    }
    return [
        line
        for suffix, text in statements.items()
        for line in (f"DROP TRIGGER IF EXISTS {name}_{suffix}", f"CREATE TRIGGER {name}_{suffix} {text}")
    ]


def _unique(table: Table) -> list[tuple[str, ...]]:
    meta = table.model._meta
    named = [
        tuple(str(getattr(meta.get_field(field), "column", field)) for field in constraint.fields)
        for constraint in meta.constraints
        if isinstance(constraint, models.UniqueConstraint) and constraint.condition is None
    ]
    return [(table.key,), *named]
