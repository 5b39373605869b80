"""Is a queue cluster really working? Only a task that goes all the way through it can tell.

A cluster whose idle worker was killed looks alive, ignores SIGTERM and runs nothing. So heartbeat tasks are sent through the queue, and a worker of
this very cluster must have run one within a time, or the cluster is replaced.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Final

import structlog
from django.conf import settings
from django.db import DatabaseError, close_old_connections
from django_q.tasks import async_task

from ledger.models import Heartbeat
from ledger.services.hints import Hint
from ledger.tasks import cluster_name
from resumeapp.processes import Program

SENT_EVERY: Final = 2.0
SILENT_AFTER: Final = 15.0
SWEPT_EVERY: Final = 15.0
"""With the timer process down, what is due is acted on by the queue within so many seconds. Its own schedule knows no less than a minute."""
BEAT: Final = "ledger.tasks.beat"

_log = structlog.get_logger(__name__)


class Heart:
    """Listens to one cluster at a time, by the session that its first process leads. Times are in seconds of the monotonic clock."""

    def __init__(self, silent_after: float = SILENT_AFTER) -> None:
        self.silent_after = silent_after
        self._session = 0
        self._beats = -1
        self._heard = 0.0
        self._sent = 0.0
        self._swept = 0.0

    def healthy(self, session: int) -> bool:
        """Has a worker of this cluster run a heartbeat lately? A database that can't be asked counts as nothing heard and nothing missed."""
        now = time.monotonic()
        if session != self._session:
            self._session, self._beats, self._heard, self._sent = session, -1, now, 0.0
        try:
            close_old_connections()
            if now - self._sent >= SENT_EVERY:
                async_task(BEAT)
                self._sent = now
            if now - self._swept >= SWEPT_EVERY:
                async_task(str(Hint.SWEEP))
                self._swept = now
            beats = Heartbeat.objects.filter(name=cluster_name(session)).values_list("beats", flat=True).first() or 0
        except DatabaseError as fault:
            _log.warning("heartbeat_not_asked", error=type(fault).__name__)
            self._heard = now
            return True
        if beats != self._beats:
            self._beats, self._heard = beats, now
        return now - self._heard < self.silent_after


def manage(*arguments: str) -> list[str]:
    """The command line of a management command in this very environment."""
    return [sys.executable, str(Path(settings.BASE_DIR) / "manage.py"), *arguments]


def cluster(name: str = "cluster", silent_after: float = SILENT_AFTER) -> Program:
    """A queue cluster under a heart. SIGTERM goes to its first process alone: to the group it would kill workers in the middle of a task."""
    heart = Heart(silent_after)
    return Program(name, manage("qcluster"), env={"RESUMEAPP_PROCESS": "cluster"}, grace=5.0, healthy=heart.healthy)


def timer(name: str = "timer") -> Program:
    """A timer process."""
    return Program(name, manage("timer"), env={"RESUMEAPP_PROCESS": "timer"})


def web(host: str, port: int, workers: int = 2, name: str = "web") -> Program:
    """The web server."""
    argv = [
        sys.executable,
        "-m",
        "granian",
        "--interface",
        "wsgi",
        "--host",
        host,
        "--port",
        str(port),
        "--workers",
        str(workers),
        "--blocking-threads",
        "4",
        "resumeapp.wsgi:application",
    ]
    return Program(name, argv, env={"RESUMEAPP_PROCESS": "web"})
