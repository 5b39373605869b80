"""The settings file: production refuses to start half configured; connections are durable."""

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection

from resumeapp.databases import database
from tests.conventions.sources import ROOT


def manage(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run manage.py in a bare environment with only `environment` in it."""
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env={"PATH": os.defpath, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_production_without_a_secret_key_does_not_start(tmp_path: Path) -> None:
    result = manage("check", RESUMEAPP_VAR=str(tmp_path), RESUMEAPP_LEASE_SECONDS="soon")
    assert result.returncode == 78
    assert "RESUMEAPP_SECRET_KEY: missing" in result.stderr
    assert "RESUMEAPP_LEASE_SECONDS: expected a whole number" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_bad_database_address_is_refused_without_showing_it(tmp_path: Path) -> None:
    result = manage(
        "check",
        RESUMEAPP_MODE="demo",
        RESUMEAPP_VAR=str(tmp_path),
        DATABASE_URL="mysql://root:hunter2@db/x",
    )
    assert result.returncode == 78
    assert "DATABASE_URL: expected postgres://" in result.stderr
    assert "hunter2" not in result.stderr


def test_production_refuses_debug_pages_and_any_host(tmp_path: Path) -> None:
    result = manage(
        "check",
        RESUMEAPP_VAR=str(tmp_path),
        RESUMEAPP_SECRET_KEY="a" * 40,
        RESUMEAPP_DEBUG="true",
        RESUMEAPP_ALLOWED_HOSTS="*",
    )
    assert result.returncode == 1
    for identity in ("resumeapp.E001", "resumeapp.E002", "resumeapp.E003"):
        assert identity in result.stderr


def test_a_pool_is_used_only_where_nothing_forks() -> None:
    url = "postgres://u@127.0.0.1:5/x"
    made = {kind: database(url, Path("x"), kind, timedelta(seconds=30)) for kind in ("web", "asgi", "cluster")}
    assert "pool" in made["asgi"]["OPTIONS"]
    assert made["asgi"]["CONN_MAX_AGE"] == 0
    assert "pool" not in made["cluster"]["OPTIONS"]
    assert made["cluster"]["CONN_MAX_AGE"] == 60
    assert made["web"]["CONN_MAX_AGE"] is None


def test_the_admin_site_is_not_installed() -> None:
    assert "django.contrib.admin" not in settings.INSTALLED_APPS


def test_the_queue_never_starts_a_task_again_while_it_may_still_run() -> None:
    queue = settings.Q_CLUSTER
    assert queue["retry"] > 2 * queue["timeout"] + 30
    assert queue["queue_limit"] == queue["workers"]


@pytest.mark.sqlite_only
@pytest.mark.django_db
def test_sqlite_waits_syncs_and_checks_foreign_keys() -> None:
    with connection.cursor() as cursor:
        answers = {}
        for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout"):
            answers[name] = cursor.execute(f"PRAGMA {name}").fetchone()[0]
    assert answers == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "busy_timeout": 20_000,
    }


@pytest.mark.postgres_only
@pytest.mark.django_db
def test_postgresql_is_durable_and_frees_the_locks_of_lost_clients() -> None:
    expected = {
        "synchronous_commit": "on",
        "fsync": "on",
        "transaction_isolation": "read committed",
        "idle_in_transaction_session_timeout": "30s",
        "statement_timeout": "30s",
        "tcp_user_timeout": "30000",
        "TimeZone": "UTC",
    }
    with connection.cursor() as cursor:
        answers = {}
        for name in expected:
            cursor.execute("SELECT current_setting(%s)", [name])
            answers[name] = cursor.fetchone()[0]
    assert answers == expected
    assert connection.connection.prepare_threshold == 3
