"""System checks: combinations of settings that would be unsafe, each with an id and a remedy.

The database checks run with `manage.py check --database default`, in `migrate`, and as the
readiness check `durability`.
"""

from collections.abc import Sequence
from typing import Any, Final

from django.apps import AppConfig
from django.conf import settings
from django.core import checks
from django.db import DEFAULT_DB_ALIAS, connections

from ledger.models import triggers
from resumeapp.health import ready_check

_WEAK_COMMIT: Final = frozenset({"off", "local"})


def register() -> None:
    """Register every check of this module with Django."""
    checks.register(check_security, checks.Tags.security)
    checks.register(check_queue, "queue")
    checks.register(check_durability, checks.Tags.database)
    ready_check("durability", durability_fault)
    ready_check("append-only", append_only_fault)


def check_security(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[Any]:
    """E001 to E004: what production must not run with."""
    if settings.MODE != "production":
        return []
    found: list[Any] = []
    if settings.DEBUG:
        found.append(
            checks.Error(
                "Debug pages are on in production: they show settings and payloads.",
                hint="Unset RESUMEAPP_DEBUG.",
                id="resumeapp.E001",
            )
        )
    if len(settings.SECRET_KEY) < 32 or len(set(settings.SECRET_KEY)) < 8:
        found.append(
            checks.Error(
                "The secret key can be guessed.",
                hint="Set RESUMEAPP_SECRET_KEY to 50 random characters.",
                id="resumeapp.E002",
            )
        )
    if not settings.ALLOWED_HOSTS or "*" in settings.ALLOWED_HOSTS:
        found.append(
            checks.Error(
                "No host names are set, or any is accepted.",
                hint="Set RESUMEAPP_ALLOWED_HOSTS to the names people and agents use.",
                id="resumeapp.E003",
            )
        )
    if not settings.HTTPS:
        found.append(
            checks.Warning(
                "Cookies and keys may travel without TLS.",
                hint="Unset RESUMEAPP_HTTPS, or make sure nothing but loopback reaches this.",
                id="resumeapp.W001",
            )
        )
    return found


def check_queue(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[Any]:
    """E005: a task that is pulled again while it still runs would run twice at once."""
    queue: dict[str, Any] = settings.Q_CLUSTER
    if queue["retry"] > 2 * queue["timeout"] + 30 and queue["queue_limit"] <= queue["workers"]:
        return []
    return [
        checks.Error(
            "The queue would start tasks again while they still run.",
            hint="Keep retry above 2 × timeout + 30 and queue_limit at most the workers.",
            id="resumeapp.E005",
        )
    ]


def check_durability(
    app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[Any]:
    """E006: what was acknowledged must survive a crash of the database."""
    if not databases or DEFAULT_DB_ALIAS not in databases:
        return []
    fault = durability_fault()
    if fault is None:
        return []
    return [checks.Error(fault, hint="Restore the setting at the database server.", id="resumeapp.E006")]


def durability_fault() -> str | None:
    """Which setting of the connected database gives durability away, or None.

    `fsync=off` can't be seen by killing processes, only by asking.
    """
    connection = connections[DEFAULT_DB_ALIAS]
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("PRAGMA synchronous")
            row = cursor.fetchone()
            return None if row and row[0] >= 2 else "SQLite runs with synchronous below FULL."
        cursor.execute(
            "SELECT current_setting('fsync'), current_setting('full_page_writes'),"
            " current_setting('synchronous_commit'),"
            " current_setting('idle_in_transaction_session_timeout')"
        )
        fsync, pages, commit, idle = cursor.fetchone()
    if fsync != "on" or pages != "on" or commit in _WEAK_COMMIT:
        return "PostgreSQL runs with fsync, full_page_writes or synchronous_commit weakened."
    if idle == "0":
        return "PostgreSQL lets a lost client keep its locks: idle_in_transaction_session_timeout."
    return None


def append_only_fault() -> str | None:
    """How many triggers that keep the record append-only are gone; the next migration brings them back."""
    gone = triggers.missing()
    return f"{len(gone)} trigger(s) that guard the record are missing: run `manage.py migrate`" if gone else None
