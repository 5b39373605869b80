"""Health for platforms: is the process alive, is it ready, and its metrics.

An app registers what readiness means for it with `ready_check`, for instance "the append-only
triggers are installed". A check returns `None` when all is well, or one sentence saying what is
wrong; it never returns data of the record.
"""

from collections.abc import Callable
from typing import Final

import structlog
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

Check = Callable[[], str | None]

_checks: Final[dict[str, Check]] = {}
_log = structlog.get_logger(__name__)


def ready_check(name: str, check: Check) -> None:
    """Register a readiness check under a stable name; the same name again replaces it."""
    _checks[name] = check


def register_own_checks() -> None:
    """Register the checks that belong to the deployment, not to one app."""
    ready_check("database", database_answers)
    ready_check("migrations", migrations_are_applied)


def database_answers() -> str | None:
    """One round trip to the database."""
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute("SELECT 1")
        cursor.fetchone()
    return None


def migrations_are_applied() -> str | None:
    """Names how many migrations are still to run; code and tables must agree before serving."""
    executor = MigrationExecutor(connections[DEFAULT_DB_ALIAS])
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return f"{len(plan)} migrations are not applied: run `manage.py migrate`" if plan else None


def run_ready_checks() -> dict[str, str]:
    """Every registered check's answer: `ok` or what is wrong. Errors are named, not detailed."""
    answers: dict[str, str] = {}
    for name, check in _checks.items():
        try:
            answers[name] = check() or "ok"
        except DatabaseError as fault:
            _log.warning("readiness_check_failed", check=name, error=type(fault).__name__)
            answers[name] = "the database does not answer"
    return answers


@require_safe
@never_cache
def healthz(request: HttpRequest) -> HttpResponse:
    """200 while the process answers; looks at nothing else."""
    return JsonResponse({"status": "ok"})


@require_safe
@never_cache
def readyz(request: HttpRequest) -> HttpResponse:
    """200 when every registered check is well, else 503 with each check's answer."""
    answers = run_ready_checks()
    ready = all(answer == "ok" for answer in answers.values())
    body = {"status": "ready" if ready else "not ready", "checks": answers}
    return JsonResponse(body, status=200 if ready else 503)


@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """Prometheus text format of this process's metrics."""
    return HttpResponse(generate_latest(), content_type=CONTENT_TYPE_LATEST)
