"""What somebody with the database's own rights can do: switch the triggers off, change rows, switch them on again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

from ledger.models import triggers


@contextmanager
def triggers_off(table: str) -> Iterator[None]:
    """The table's triggers don't act inside; they are back at the end."""
    names = triggers.expected()[table]
    with connection.cursor() as cursor:
        for name in names:
            if connection.vendor == "postgresql":
                cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER {name}")
            else:
                cursor.execute(f"DROP TRIGGER {name}")
    try:
        yield
    finally:
        triggers.install()


def run_sql(sql: str, *params: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
