"""Wake a run: take it, gather, decide, apply. Each step can die on its own; the next sweep goes on from the row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from uuid import UUID

import structlog
from django.db import connection

from ledger.domain.transitions import Gathered, never_finished
from ledger.domain.wakes import ATTEMPTS, DecisionKind, WakeRow
from ledger.engine.gather import check, gather
from ledger.engine.integrity import ENTRIES
from ledger.services import batches, wakes
from ledger.services.background import backgrounds
from ledger.services.contracts import writes
from ledger.services.views import run_view

_log = structlog.get_logger(__name__)


@writes(
    moves="What `wakes.begin` and `wakes.apply` move, with the gathering between them.",
    twice="Answers None: no wake is due.",
    dies="Each step leaves a row from which the next checker goes on.",
)
def run(run_id: UUID) -> DecisionKind | None:
    """Decide the run's due wake. None when there is none, another checker has it, or the facts kept moving."""
    for _ in range(ATTEMPTS + 1):
        wake = wakes.begin(run_id)
        if wake is None:
            return None
        decision = wakes.apply(run_id, _or_never(wake, partial(gather, run_id, wake)))
        if decision is not None:
            return decision
    return None


@writes(
    moves="What `run` moves, for each of these runs.",
    twice="Leaves out those whose wake is not due.",
    dies="As `run`, for each by itself.",
)
def run_each(run_ids: Sequence[UUID]) -> list[UUID]:
    """Decide the due wakes of these runs together: four statements for `batches.SIZE` of them. Answers the runs that are left for `run`.

    Left is what asks a target, and what somebody else has in hand at this moment.
    """
    left: list[UUID] = []
    for some in batches.of(run_ids):
        taken, alone = wakes.begin_each(some)
        left += alone
        gathered = _gather_each(taken)
        for missed in _apply_each(gathered):
            _apply(missed)
    return left


def _gather_each(taken: Sequence[WakeRow]) -> list[Gathered]:
    """What there is to decide on for these wakes, without those where that failed: after its time another checker takes them."""
    try:
        asked = [(known.wake, partial(check, known)) for known in backgrounds(taken, ENTRIES)]
    except Exception as fault:
        _one_by_one(fault)
        asked = [(wake, partial(gather, wake.run_id, wake)) for wake in taken]
    return [found for wake, ask in asked if (found := _checked(wake, ask)) is not None]


def _apply_each(gathered: Sequence[Gathered]) -> Sequence[Gathered]:
    """Those that are left: all of them where the statement failed, whether or not it was carried out."""
    try:
        return wakes.apply_each(gathered)
    except Exception as fault:
        _one_by_one(fault)
        return gathered


def _one_by_one(fault: Exception) -> None:
    _log.warning("wakes_one_by_one", error=type(fault).__name__)
    connection.close_if_unusable_or_obsolete()


def _checked(wake: WakeRow, ask: Callable[[], Gathered]) -> Gathered | None:
    try:
        return _or_never(wake, ask)
    except Exception as fault:
        _log.error("wake_failed", run=str(wake.run_id), error=type(fault).__name__)
        return None


def _apply(gathered: Gathered) -> None:
    run_id = gathered.view.run.id
    try:
        wakes.apply(run_id, gathered)
    except Exception as fault:
        _log.error("wake_failed", run=str(run_id), error=type(fault).__name__)


def _or_never(wake: WakeRow, gathered: Callable[[], Gathered]) -> Gathered:
    """What there is to decide on. A gathering that still fails after all attempts is decided as such: a person gets the run."""
    try:
        return gathered()
    except Exception as fault:
        if wake.attempt <= ATTEMPTS:
            raise
        _log.error("wake_never_finished", run=str(wake.run_id), error=type(fault).__name__)
        return never_finished(run_view(wake.run_id), wake)
