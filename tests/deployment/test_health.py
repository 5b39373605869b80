"""Health: alive, ready, and metrics, for platforms that know nothing of the product."""

from collections.abc import Iterator

import pytest
from django.db import DatabaseError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client

from resumeapp import health


@pytest.fixture
def extra_check() -> Iterator[str]:
    """A check of this test's own, taken away afterwards."""
    name = "extra"
    yield name
    health._checks.pop(name, None)


@pytest.mark.django_db
def test_readiness_names_the_check_that_fails(client: Client, extra_check: str) -> None:
    health.ready_check(extra_check, lambda: "the triggers are gone")
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["checks"]["extra"] == "the triggers are gone"
    assert answer.json()["checks"]["database"] == "ok"


@pytest.mark.django_db
def test_a_database_error_is_not_told_to_strangers(client: Client, extra_check: str) -> None:
    def broken() -> str | None:
        raise DatabaseError("password=hunter2")

    health.ready_check(extra_check, broken)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert b"hunter2" not in answer.content


@pytest.mark.django_db
def test_an_unapplied_migration_makes_it_not_ready(client: Client) -> None:
    MigrationRecorder(connection).record_unapplied("sessions", "0001_initial")
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert "manage.py migrate" in answer.json()["checks"]["migrations"]


@pytest.mark.django_db
def test_a_trigger_that_guards_the_record_no_more_makes_it_not_ready(client: Client) -> None:
    name = "ledger_permit_kept" if connection.vendor == "postgresql" else "ledger_permit_not_updated"
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TRIGGER {name}" + (" ON ledger_permit" if connection.vendor == "postgresql" else ""))
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["checks"]["append-only"].startswith("1 trigger")


@pytest.mark.django_db
def test_it_is_ready_when_every_check_is_well(client: Client) -> None:
    answer = client.get("/readyz")
    assert answer.status_code == 200, answer.content
    assert answer.json()["checks"]["durability"] == "ok"


def test_the_process_answers_without_a_database(client: Client) -> None:
    answer = client.get("/healthz")
    assert answer.status_code == 200
    assert answer["Cache-Control"].endswith("private")


def test_health_takes_no_post(client: Client) -> None:
    assert client.post("/healthz").status_code == 405


def test_metrics_are_in_prometheus_format(client: Client) -> None:
    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert b"# TYPE python_info gauge" in answer.content


def test_every_answer_forbids_inline_code_and_framing(client: Client) -> None:
    answer = client.get("/healthz")
    policy = answer["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert answer["X-Frame-Options"] == "DENY"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Referrer-Policy"] == "same-origin"
