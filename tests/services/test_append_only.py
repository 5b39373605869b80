"""Rows of the record stay as written: every append-only table, with rows in it, refuses each statement that could rewrite or remove one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection, models, transaction
from django.db.migrations import AddField, Migration
from django.db.migrations.executor import MigrationExecutor

from ledger.models import triggers
from ledger.models.tables import tables
from tests.database import chosen
from tests.services.filled import fill
from tests.tamper import run_sql
from tests.world import World

GUARDED = [*sorted(table.name for table in tables().values() if table.append_only), "ledger_body"]
NAMED_BY_DESIGN = {
    "run", "workflow_version", "checkpoint", "journal_entry", "permit", "effect_report", "observation", "event_delivery", "wake_check",
    "decision", "policy_version", "revision", "vote",
}  # fmt: skip


def test_every_table_that_must_be_append_only_says_so() -> None:
    assert {table.record for table in tables().values() if table.append_only} >= NAMED_BY_DESIGN


def test_every_guarded_table_has_its_triggers(committed: None) -> None:
    assert triggers.missing() == []


# What is written stays ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rows:
    """A guarded table in a database where every one of them has rows."""

    table: str
    columns: tuple[str, ...]
    key: str

    def all(self) -> list[tuple[Any, ...]]:
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {', '.join(self.columns)} FROM {self.table} ORDER BY {self.key}")
            return list(cursor.fetchall())

    def unique(self) -> list[list[str]]:
        """The columns of each key by which a row can be taken for another, as the database says."""
        with connection.cursor() as cursor:
            known = connection.introspection.get_constraints(cursor, self.table)
        found = [one["columns"] for one in known.values() if one["unique"] or one["primary_key"]]
        assert [self.key] in found
        return found


def rows_of(table: str) -> Rows:
    """The table with its columns as they are in the database now. It has rows: a trigger for rows is proved by nothing else."""
    with connection.cursor() as cursor:
        columns = tuple(one.name for one in connection.introspection.get_table_description(cursor, table))
    rows = Rows(table, columns, next(one.key for one in tables().values() if one.name == table))
    assert rows.all(), f"nothing of {table} is tried"
    return rows


def _updated(rows: Rows) -> list[str]:
    same = [f"UPDATE {rows.table} SET {column} = {column}" for column in rows.columns]
    return [*same, f"UPDATE {rows.table} SET tenant_id = NULL"]


def _deleted(rows: Rows) -> list[str]:
    return [f"DELETE FROM {rows.table}", f"DELETE FROM {rows.table} WHERE tenant_id IS NOT NULL"]


def _truncated(rows: Rows) -> list[str]:
    return [f"TRUNCATE {rows.table} CASCADE", f"TRUNCATE {rows.table} RESTART IDENTITY CASCADE"]


def _copy(rows: Rows, verb: str = "INSERT", fresh: Sequence[str] = ()) -> str:
    """Insert every row once more, with other values in these columns."""
    names = ", ".join(rows.columns)
    values = ", ".join(_FRESH[connection.vendor] if name in fresh else name for name in rows.columns)
    return f"{verb} INTO {rows.table} ({names}) SELECT {values} FROM {rows.table} WHERE {rows.key} IS NOT NULL"


_FRESH = {"postgresql": "gen_random_uuid()", "sqlite": "lower(hex(randomblob(16)))"}


def _upserted(rows: Rows) -> list[str]:
    found = []
    for unique in rows.unique():
        fresh = [rows.key] if rows.key not in unique and rows.table != "ledger_journal_entry" else []
        does = f"ON CONFLICT ({', '.join(unique)}) DO UPDATE SET tenant_id = excluded.tenant_id"
        found.append(f"{_copy(rows, fresh=fresh)} {does}")
    return found


def _replaced(rows: Rows) -> list[str]:
    found = [_copy(rows, verb) for verb in ("INSERT OR REPLACE", "REPLACE")]
    for unique in rows.unique():
        if rows.key not in unique and rows.table != "ledger_journal_entry":
            found.append(_copy(rows, "INSERT OR REPLACE", [rows.key]))
    return [*found, f"UPDATE OR REPLACE {rows.table} SET tenant_id = tenant_id"]


def _merged(rows: Rows) -> list[str]:
    into = f"MERGE INTO {rows.table} t USING (SELECT {rows.key} AS wanted FROM {rows.table}) s ON t.{rows.key} = s.wanted WHEN MATCHED THEN"
    return [f"{into} DELETE", f"{into} UPDATE SET tenant_id = t.tenant_id"]


WRITES: Mapping[str, Mapping[str, Callable[[Rows], list[str]]]] = {
    "postgresql": {
        "update": _updated,
        "delete": _deleted,
        "truncate": _truncated,
        "upsert": _upserted,
        "merge": _merged,
    },
    "sqlite": {"update": _updated, "delete": _deleted, "upsert": _upserted, "replace": _replaced},
}


def _refusal(rows: Rows, sql: str) -> str:
    """What refuses: the trigger of this very table, and of none that hangs on it. Where another key than the one in question is taken too,
    PostgreSQL may notice that first."""
    by_another = "ON CONFLICT" in sql and f"ON CONFLICT ({rows.key})" not in sql
    own = f"{rows.table} is append-only|UNIQUE constraint failed: {rows.table}"
    return own + ("|duplicate key value" if by_another else "")


@contextmanager
def as_anybody_connects() -> Iterator[None]:
    """SQLite as it is where nobody asked for recursive triggers: what is replaced goes without a word to the trigger for deleting."""
    run_sql("PRAGMA recursive_triggers = OFF")
    try:
        yield
    finally:
        run_sql("PRAGMA recursive_triggers = ON")


def refuse_every_write(table: str, only: str = "") -> int:
    """Try each statement of this database on rows that are there. Answers how many were refused; fails for one that wasn't."""
    rows = rows_of(table)
    before = rows.all()
    tried = 0
    for kind, statements in WRITES[connection.vendor].items():
        for sql in statements(rows) if only in ("", kind) else ():
            for connected in (nullcontext, as_anybody_connects) if kind == "replace" else (nullcontext,):
                with connected(), pytest.raises(DatabaseError, match=_refusal(rows, sql)), transaction.atomic():
                    run_sql(sql)
            tried += 1
    assert rows.all() == before
    return tried


@pytest.fixture(scope="module")
def filled(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    with django_db_blocker.unblock():
        fill(World())
        yield


@pytest.mark.parametrize("kind", WRITES["postgresql" if chosen() == "postgres" else "sqlite"])
@pytest.mark.parametrize("table", GUARDED)
def test_no_row_is_rewritten_by_any_statement(filled: None, committed: None, table: str, kind: str) -> None:
    assert refuse_every_write(table, kind)


@pytest.mark.postgres_only
def test_a_session_that_plays_replica_is_refused_too(world: World) -> None:
    world.start_run()
    with transaction.atomic():
        run_sql("SET LOCAL session_replication_role = replica")
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            run_sql("DELETE FROM ledger_journal_entry")


@pytest.mark.sqlite_only
@pytest.mark.parametrize("pragma", ["ON", "OFF"])
def test_replacing_a_row_by_any_of_its_keys_is_refused(world: World, pragma: str) -> None:
    run_id = world.start_run()
    (checkpoint,) = world.checkpoints(run_id)
    names = [field.column for field in checkpoint._meta.concrete_fields]
    other_key = ", ".join("?" if name == "id" else name for name in names).replace("?", "%s")
    run_sql(f"PRAGMA recursive_triggers = {pragma}")
    try:
        for columns, params in ((", ".join(names), []), (other_key, [uuid4().hex])):
            into = f"ledger_checkpoint ({', '.join(names)})"
            sql = f"INSERT OR REPLACE INTO {into} SELECT {columns} FROM ledger_checkpoint WHERE id = %s"
            with pytest.raises(DatabaseError, match="UNIQUE"), transaction.atomic():
                run_sql(sql, *params, checkpoint.pk.hex)
    finally:
        run_sql("PRAGMA recursive_triggers = ON")
    assert [row.pk for row in world.checkpoints(run_id)] == [checkpoint.pk]


def test_a_body_can_be_erased_once_and_changed_in_no_other_way(world: World) -> None:
    run_id = world.start_run()
    body_id = world.checkpoints(run_id)[0].state_id
    key = body_id if connection.vendor == "postgresql" else body_id.hex
    for sql in ("content = NULL", "salt = NULL, content = NULL", "size = 1", "erased_at = '2026-01-01'"):
        with pytest.raises(DatabaseError), transaction.atomic():
            run_sql(f"UPDATE ledger_body SET {sql} WHERE id = %s", key)
    run_sql("UPDATE ledger_body SET content = NULL, salt = NULL, erased_at = '2026-01-01 00:00:00' WHERE id = %s", key)
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        run_sql(
            "UPDATE ledger_body SET content = NULL, salt = NULL, erased_at = '2026-01-02 00:00:00' WHERE id = %s", key
        )


def _migrated(forwards: bool) -> None:
    """Give every guarded table a field by a migration, or take it away again."""
    field = models.IntegerField(default=7)
    for app in ("ledger", "approvals"):
        state = MigrationExecutor(connection).loader.project_state()
        names = [
            one.model._meta.model_name
            for one in tables().values()
            if one.name in GUARDED and app == one.model._meta.app_label
        ]
        adding = Migration("9999_added_later", app)
        adding.operations = [AddField(name, "added_later", field) for name in names]
        with connection.schema_editor() as editor:
            adding.apply(state, editor) if forwards else adding.unapply(state, editor)


def test_after_a_field_was_added_to_every_table_by_a_migration_each_write_is_refused_again(
    filled: None, committed: None
) -> None:
    """SQLite rebuilds a table for that and drops its triggers without a word: the next `migrate` brings them back."""
    _migrated(forwards=True)
    try:
        gone = triggers.missing()
        assert len(gone) == 3 * len(GUARDED) if connection.vendor == "sqlite" else not gone
        call_command("migrate", verbosity=0)
        assert triggers.missing() == []
        for table in GUARDED:
            assert "added_later" in rows_of(table).columns
            assert refuse_every_write(table)
    finally:
        _migrated(forwards=False)
        call_command("migrate", verbosity=0)
    assert triggers.missing() == [] and not any("added_later" in rows_of(table).columns for table in GUARDED)


@pytest.mark.postgres_only
def test_a_trigger_that_is_merely_enabled_counts_as_missing(committed: None) -> None:
    run_sql("ALTER TABLE ledger_permit ENABLE TRIGGER ledger_permit_kept")
    try:
        assert triggers.missing() == ["ledger_permit_kept"]
    finally:
        triggers.install()
    assert triggers.missing() == []
