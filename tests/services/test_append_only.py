"""Rows of the record stay as written: every append-only table refuses UPDATE, DELETE, TRUNCATE and INSERT OR REPLACE."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection, models, transaction

from ledger.domain.effects import ProposalSpec
from ledger.domain.waits import MemberKind, MemberSpec, OnDeadline, SetMode, WaitSpec
from ledger.models import triggers
from ledger.models.tables import tables
from ledger.services import facts
from tests.documents import REQUEST
from tests.tamper import run_sql

if TYPE_CHECKING:
    from tests.world import World

APPEND_ONLY = sorted(table.name for table in tables().values() if table.append_only)
NAMED_BY_DESIGN = {
    "run", "workflow_version", "checkpoint", "journal_entry", "permit", "effect_report", "observation", "event_delivery", "wake_check",
    "decision", "policy_version", "revision", "vote",
}  # fmt: skip


def test_every_table_that_must_be_append_only_says_so() -> None:
    assert {table.record for table in tables().values() if table.append_only} >= NAMED_BY_DESIGN


def test_every_guarded_table_has_its_triggers(committed: None) -> None:
    assert triggers.missing() == []


@pytest.mark.parametrize("table", [*APPEND_ONLY, "ledger_body"])
def test_no_row_is_updated_deleted_or_emptied(world: World, table: str) -> None:
    """A table without rows proves nothing with row triggers: its triggers are asked for by name, and the rest is tried on rows."""
    column = "size" if table == "ledger_body" else "tenant_id"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {table}")
        rows = cursor.fetchone()[0]
    if rows:
        for sql in (f"UPDATE {table} SET {column} = {column}", f"DELETE FROM {table}"):
            with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
                run_sql(sql)
    if connection.vendor == "postgresql":
        with pytest.raises(DatabaseError, match=r"append-only|foreign key"), transaction.atomic():
            run_sql(f"TRUNCATE {table}")


@pytest.mark.postgres_only
@pytest.mark.parametrize("table", [*APPEND_ONLY, "ledger_body"])
def test_truncating_with_everything_that_hangs_on_it_is_refused_too(world: World, table: str) -> None:
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        run_sql(f"TRUNCATE {table} CASCADE")


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


@pytest.mark.sqlite_only
def test_a_field_added_later_drops_the_triggers_and_the_next_migration_brings_them_back(world: World) -> None:
    from ledger.models import Permit

    field = models.IntegerField(null=True)
    field.set_attributes_from_name("added_later")
    altered = models.CharField(max_length=201, blank=True)
    altered.set_attributes_from_name("precondition")
    with connection.schema_editor() as editor:
        editor.alter_field(Permit, Permit._meta.get_field("precondition"), altered)
    assert [name for name in triggers.missing() if name.startswith("ledger_permit")], "SQLite rebuilt the table"
    call_command("migrate", verbosity=0)
    assert triggers.missing() == []


@pytest.mark.postgres_only
def test_a_trigger_that_is_merely_enabled_counts_as_missing(committed: None) -> None:
    run_sql("ALTER TABLE ledger_permit ENABLE TRIGGER ledger_permit_kept")
    try:
        assert triggers.missing() == ["ledger_permit_kept"]
    finally:
        triggers.install()
    assert triggers.missing() == []


PAY = ProposalSpec("pay", "payments.refund", "payments", "", REQUEST)


def test_a_run_that_waits_has_rows_in_the_tables_that_are_tried(world: World) -> None:
    deadline = facts.read().now + timedelta(hours=1)
    world.waiting_run(
        WaitSpec(SetMode.ANY, (MemberSpec(MemberKind.APPROVAL, effect="pay"),), deadline, OnDeadline.WAKE),
        propose=(PAY,),
    )
    with connection.cursor() as cursor:
        for table in ("ledger_run", "ledger_checkpoint", "ledger_journal_entry", "ledger_body", "approvals_revision"):
            cursor.execute(f"SELECT count(*) FROM {table}")
            assert cursor.fetchone()[0], f"{table} has rows to protect"
