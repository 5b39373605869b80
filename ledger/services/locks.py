"""Row locks for a transaction that must read what other tables say after it holds its head. On SQLite the transaction itself is the lock."""

from __future__ import annotations

from uuid import UUID

from django.db import connection

from ledger.models import User


def run_head(run_id: UUID) -> None:
    """Wait for whoever else writes to the run."""
    _lock("ledger_run_head", "run_id", run_id)


def tenant_head(tenant_id: UUID) -> None:
    """Wait for the tenant's other administrative acts."""
    _lock("ledger_tenant_head", "tenant_id", tenant_id)


def person(user_id: UUID) -> None:
    """Wait for whoever writes a row about a person, such as a membership; from here on nobody does until the transaction ends. After the heads of
    tenants: whoever writes such a row holds one."""
    _lock(User._meta.db_table, "id", user_id)


def effects() -> None:
    """Wait for whoever writes effects, of any run; from here on nobody does until the transaction ends. For rare acts that must be sure of them."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("LOCK TABLE ledger_effect IN SHARE MODE")


def _lock(table: str, key: str, value: UUID) -> None:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT 1 FROM {table} WHERE {key} = %s FOR UPDATE", [value])
