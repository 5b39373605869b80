"""A tenant's administration and events are verified too: a policy, a target or a key that was altered past the journal is found."""

from __future__ import annotations

import io
from contextlib import nullcontext
from uuid import UUID

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection

from ledger.domain import journal
from ledger.domain.journal import StoredEntry
from ledger.domain.workflows import VersionSpec
from ledger.models.tables import tables
from ledger.services import events, facts, verify, workflows
from ledger.services.events import EventSpec
from ledger.services.facts import Part
from tests.documents import TRANSITIONS
from tests.tamper import run_sql, triggers_off
from tests.world import World

HASH = "'\\x00'" if connection.vendor == "postgresql" else "x'00'"


def key_of(value: UUID) -> object:
    return value if connection.vendor == "postgresql" else value.hex


def codes(world: World) -> set[str]:
    return {fault.code for fault in verify.tenant(world.tenant.pk).faults}


@pytest.fixture
def told(world: World) -> World:
    """A tenant whose record is intact, with an event."""
    events.receive(world.caller, EventSpec("https://shop.example", "e1", "order.paid"))
    report = verify.tenant(world.tenant.pk)
    assert report.intact and report.entries > 10 and report.rows > 8
    return world


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("ledger_target", "base_url = 'http://evil.example'"),
        ("ledger_policy_version", "rules = '[]'"),
        ("ledger_api_key", "scopes = '[\"operate\"]'"),
        ("ledger_api_key", "workflows = '[\"payroll\"]'"),
        ("ledger_api_key", "emits = '[]'"),
        ("ledger_api_key", f"hash = {HASH}"),
        ("ledger_agent", "active = false"),
        ("ledger_event", "type = 'order.cancelled'"),
    ],
)
def test_an_administrative_row_that_was_altered_is_found(told: World, table: str, change: str) -> None:
    with triggers_off(table) if table == "ledger_policy_version" else nullcontext():
        run_sql(f"UPDATE {table} SET {change} WHERE tenant_id = %s", key_of(told.tenant.pk))
    assert "row-differs" in codes(told)


def test_a_key_of_before_its_hash_stood_in_entries_is_no_fault(told: World) -> None:
    table, of = tables()["api_key"], (told.tenant.pk,)
    read = facts.read(
        keys=Part("api_key", "t.tenant_id = %s", of, many=True),
        head=Part("tenant_head", "t.tenant_id = %s", of),
        entries=Part("journal_entry", "t.stream_id = %s", of, many=True, order="t.seq"),
    )
    entries = [StoredEntry(row["seq"], row["content"], row["digest"]) for row in read.many("entries")]
    key, head = read.many("keys")[0], read.row("head")
    assert head is not None
    salt = head["salt"]
    said = journal.replay(entries)[f"api_key:{key['id']}"]
    before = {name: value for name, value in said.items() if name != "hash"}
    assert said.keys() - before.keys() == {"hash"}
    assert not verify.compare(table, "a key", key, before, salt) and not verify.compare(table, "a key", key, said, salt)
    assert verify.compare(table, "a key", {**key, "hash": bytes(32)}, said, salt)


def test_a_key_that_stands_in_no_entry_is_found(told: World) -> None:
    run_sql(
        "INSERT INTO ledger_api_key (id, tenant_id, prefix, hash, label, scopes, workflows, emits, agent_id, created_at)"
        " SELECT %s, tenant_id, %s, hash, label, scopes, workflows, emits, agent_id, created_at FROM ledger_api_key WHERE tenant_id = %s LIMIT 1",
        key_of(UUID(int=told.tenant.pk.int ^ 1)),
        told.tenant.slug[1:11],
        key_of(told.tenant.pk),
    )
    assert "row-unknown" in codes(told)


@pytest.mark.parametrize("column", ["kind", "tenant_id"])
def test_an_event_whose_entry_was_hidden_from_its_tenant_is_found(told: World, column: str) -> None:
    other = "'run'" if column == "kind" else f"'{key_of(UUID(int=told.tenant.pk.int ^ 1))}'"
    with triggers_off("ledger_journal_entry"):
        run_sql(f"UPDATE ledger_journal_entry SET {column} = {other} WHERE kind = 'event'")
    assert codes(told) == {"row-unknown"}


def test_a_deleted_entry_of_the_administration_is_missed(told: World) -> None:
    with triggers_off("ledger_journal_entry"):
        run_sql("DELETE FROM ledger_journal_entry WHERE stream_id = %s AND seq = 3", key_of(told.tenant.pk))
    assert "gap" in codes(told)


def test_a_schema_with_fractions_is_registered_and_verifies(told: World) -> None:
    schema = {"type": "object", "properties": {"price": {"type": "number", "multipleOf": 0.01}}}
    workflows.register(told.caller, "priced", "1", VersionSpec(schema, "assess", TRANSITIONS))
    assert verify.tenant(told.tenant.pk).intact


def test_the_command_names_the_fault_and_ends_with_an_error(told: World) -> None:
    told.start_run()
    out = io.StringIO()
    call_command("verify", told.tenant.slug, stdout=out)
    assert out.getvalue() == "2 streams verified, 0 with faults\n"
    run_sql("UPDATE ledger_target SET base_url = 'http://evil.example' WHERE tenant_id = %s", key_of(told.tenant.pk))
    with pytest.raises(CommandError, match="not intact"):
        call_command("verify", told.tenant.slug, stdout=out)
    assert "row-differs" in out.getvalue() and "base_url" in out.getvalue()
