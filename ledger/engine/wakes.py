"""Wake a run: take it, gather, decide, apply. Each step can die on its own; the next sweep goes on from the row."""

from __future__ import annotations

from uuid import UUID

import structlog

from ledger.domain.transitions import Gathered, never_finished
from ledger.domain.wakes import ATTEMPTS, DecisionKind, WakeRow
from ledger.engine.gather import gather
from ledger.services import wakes
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
        decision = wakes.apply(run_id, _gathered(run_id, wake))
        if decision is not None:
            return decision
    return None


def _gathered(run_id: UUID, wake: WakeRow) -> Gathered:
    """What there is to decide on. A gathering that still fails after all attempts is decided as such: a person gets the run."""
    try:
        return gather(run_id, wake)
    except Exception as fault:
        if wake.attempt <= ATTEMPTS:
            raise
        _log.error("wake_never_finished", run=str(run_id), error=type(fault).__name__)
        return never_finished(run_view(run_id), wake)


@writes(
    moves="What `run` moves, for each wake that is due.",
    twice="Takes what became due since.",
    dies="The wakes that are left are due rows.",
)
def drain(limit: int = 100) -> int:
    """Decide every due wake, at most `limit`. Answers how many were decided."""
    return sum(run(run_id) is not None for run_id in wakes.due(limit))
