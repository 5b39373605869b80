"""What the queue runs. Tasks take ids or nothing, may run twice, and do no more than the sweep would."""

from __future__ import annotations

import os
import socket
from time import monotonic
from typing import Final

from django.db import transaction
from django.db.models import F

from ledger.engine import sweep as sweeping
from ledger.models import Heartbeat
from ledger.services import facts, hints, verifications
from ledger.services.hints import Hint

BATCH: Final = 20
TURN: Final = 2.0
"""Seconds after which a task that has more to do lets others have their turn."""


def drain_wakes() -> int:
    """Decide the wakes that are due, until none is or its turn is over."""
    done, until = 0, monotonic() + TURN
    while found := sweeping.wakes_due():
        done += found
        if monotonic() > until:
            hints.send(Hint.WAKES)
            break
    return done


def reconcile_due() -> int:
    """Look up the effects whose outcome is unknown and due."""
    return sweeping.reconcile_due(BATCH)


def sweep() -> dict[str, int]:
    """Act on everything that is due."""
    return sweeping.sweep()


def check_due() -> int:
    """Go on with the checks of the record that somebody asked for, and come back while there is more to do."""
    checks = verifications.due(BATCH)
    unfinished = [check for check in checks if verifications.advance(check, verifications.SLICE)]
    if unfinished:
        hints.send(Hint.CHECKS)
    return len(checks)


def cluster_name(session: int | None = None) -> str:
    """A queue cluster by its machine and its session: every process of one has the same."""
    return f"{socket.gethostname()[:60]}:{session or os.getsid(0)}"


def beat() -> None:
    """Prove that this cluster really runs tasks: through the queue, in a worker, to the database."""
    now = facts.read().now
    with transaction.atomic():
        row, _ = Heartbeat.objects.get_or_create(name=cluster_name(), defaults={"beats": 0, "beaten_at": now})
        Heartbeat.objects.filter(pk=row.pk).update(beats=F("beats") + 1, beaten_at=now, pid=os.getpid())
