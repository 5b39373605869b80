"""Hints: "there is something to do", sent to the queue after the commit, by the dotted name of a task.

A hint carries nothing. Losing every one of them changes nothing but how soon the sweep finds the rows. A process may do a wake itself, at
once, instead of hinting at it (`serve`); what it can't take now goes to the queue.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import StrEnum
from typing import Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db import DatabaseError, transaction
from django_q.tasks import async_task

from ledger.domain.change import Change
from ledger.domain.effects import EffectState
from ledger.domain.runs import Status
from ledger.domain.wakes import WakeState
from ledger.services import bell

COALESCED_SECONDS: Final = 0.2

_log = structlog.get_logger(__name__)
_sent: Final[dict[str, float]] = {}
_served: Final[list[Callable[[UUID], bool]]] = []


class Hint(StrEnum):
    """The tasks that may be hinted at."""

    WAKES = "ledger.tasks.drain_wakes"
    EFFECTS = "ledger.tasks.reconcile_due"
    SWEEP = "ledger.tasks.sweep"
    CHECKS = "ledger.tasks.check_due"


def after(*changes: Change) -> None:
    """Hint at what changes left to do that were written together."""
    for change in changes:
        values = [(insert.table, insert.row.get("state")) for insert in change.inserts]
        values += [(move.table, move.set.get("state")) for move in change.moves]
        if ("wake", WakeState.QUEUED) in values:
            _wake(change.stream.id)
        if ("effect", EffectState.UNKNOWN) in values:
            send(Hint.EFFECTS)
    if any(change.head.get("status") == Status.READY for change in changes) and settings.RESUMEAPP_HINTS:
        transaction.on_commit(bell.ring)


def serve(wake: Callable[[UUID], bool]) -> None:
    """Offer queued wakes to `wake` first, by the run's id after the commit; where it answers False, the queue is told. Called once a process."""
    _served[:] = [wake]


def _wake(run_id: UUID) -> None:
    if not _served:
        send(Hint.WAKES)
    elif settings.RESUMEAPP_HINTS:
        wake = _served[0]
        transaction.on_commit(lambda: None if wake(run_id) else _send(Hint.WAKES))


def send(hint: Hint) -> None:
    """Queue a hint once the transaction at hand has committed; one of a kind in a burst."""
    if settings.RESUMEAPP_HINTS:
        transaction.on_commit(lambda: _send(hint))


def _send(hint: Hint) -> None:
    now = time.monotonic()
    if now - _sent.get(hint, -COALESCED_SECONDS) < COALESCED_SECONDS:
        return
    _sent[hint] = now
    try:
        async_task(str(hint))
    except DatabaseError as fault:
        _log.warning("hint_lost", hint=str(hint), error=type(fault).__name__)
