"""Requests that nobody decided in time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from uuid import UUID

import structlog

from approvals.domain import decisions
from approvals.domain.requests import RequestState
from approvals.models import ApprovalRequest
from ledger.domain.change import Change
from ledger.domain.errors import LedgerError
from ledger.domain.views import RunView
from ledger.services import deadlines, facts, writer
from ledger.services.contracts import writes
from ledger.services.drafts import run_draft
from ledger.services.views import run_view

_log = structlog.get_logger(__name__)


@writes(
    moves="What `expire_of` moves, for every run with a request past its decide-by.",
    twice="Takes what became due since.",
    dies="What is left is due rows.",
)
def expire_due(limit: int = 100) -> int:
    """Say of pending requests past their decide-by that they expired, and tell the agents.

    Deciding looks at the clock itself, so nothing rests on this having run. Answers how many runs were told. Safe to repeat.
    """
    now = facts.read().now
    due = ApprovalRequest.objects.across_tenants().filter(
        state=RequestState.PENDING, decide_by__lte=now, run__isnull=False
    )
    runs = list(dict.fromkeys(due.order_by("decide_by").values_list("run_id", flat=True)[:limit]))
    return tell_each(runs, expire_of)


def tell_each(runs: Iterable[UUID], act: Callable[[UUID], bool]) -> int:
    """Act on each of these runs. One that fails is logged and keeps no other from its turn. Answers how many moved."""
    return sum(_told(run_id, act) for run_id in runs)


def _told(run_id: UUID, act: Callable[[UUID], bool]) -> bool:
    try:
        return act(run_id)
    except LedgerError as refusal:
        _log.warning("request_not_moved", run=str(run_id), act=act.__name__, code=refusal.code)
    except Exception as fault:
        _log.error("request_not_moved", run=str(run_id), act=act.__name__, error=type(fault).__name__)
    return False


@writes(
    moves="Request pending → expired; effect proposed → withdrawn; the member that waits for it learns so: run waiting → waking.",
    twice="The run's next request, or False.",
    dies="Nothing hangs on it: deciding looks at decide-by itself.",
)
def expire_of(run_id: UUID) -> bool:
    """The same for one run: one request a Change. True when there was one."""
    _, written = writer.settle(partial(run_view, run_id), _expire)
    return written is not None


def _expire(view: RunView) -> tuple[Change | None, None]:
    """A timer that was due before has its turn first."""
    draft = run_draft(view, "system:sweep", "request.expire")
    return (draft.change() if decisions.expire(draft, view) else deadlines.overdue(view)), None
