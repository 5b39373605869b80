"""The application's role can run the product and can't rewrite the record, also without the triggers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction

from ledger.domain.commits import Next, NextKind
from ledger.management.commands.grants import statements
from ledger.models.tables import tables
from ledger.services import verify
from tests.world import World

ROLE = "resumeapp_application"


def test_a_name_that_is_no_role_is_refused() -> None:
    with pytest.raises(CommandError):
        call_command("grants", "x; DROP TABLE ledger_run")


@pytest.fixture
def application(world: World) -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute(f"DROP ROLE IF EXISTS {ROLE}")
        cursor.execute(f"CREATE ROLE {ROLE}")
        for line in statements(ROLE):
            cursor.execute(line)
        cursor.execute(f"SET ROLE {ROLE}")
    yield
    with connection.cursor() as cursor:
        cursor.execute("RESET ROLE")
        cursor.execute(f"DROP OWNED BY {ROLE}")
        cursor.execute(f"DROP ROLE {ROLE}")


def refused(sql: str) -> str:
    """The SQLSTATE with which the database refuses, or ''."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sql)
    except DatabaseError as error:
        return str(getattr(error.__cause__, "sqlstate", "?"))
    return ""


@pytest.mark.postgres_only
def test_the_application_rewrites_nothing_and_switches_no_trigger_off(application: None) -> None:
    for table in tables().values():
        if table.append_only:
            assert refused(f"DELETE FROM {table.name}") == "42501", table.name
            assert refused(f"UPDATE {table.name} SET tenant_id = tenant_id") == "42501", table.name
            assert refused(f"TRUNCATE {table.name}") == "42501", table.name
            assert refused(f"ALTER TABLE {table.name} DISABLE TRIGGER ALL") == "42501", table.name
    assert refused("DELETE FROM ledger_body") == "42501"


@pytest.mark.postgres_only
def test_the_application_runs_a_run_from_start_to_end(application: None, world: World) -> None:
    packet = world.claimed_run()
    world.commit(packet, Next(NextKind.COMPLETE))
    assert verify.run(packet.run.id).intact
