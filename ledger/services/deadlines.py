"""What time has closed is closed before anything that comes later counts, whether or not a sweep has come by: timers, deadlines, decide-bys."""

from __future__ import annotations

from ledger.domain import waits
from ledger.domain.change import Change
from ledger.domain.drafts import Draft
from ledger.domain.views import RunView
from ledger.services import ports
from ledger.services.drafts import run_draft


def overdue(view: RunView) -> Change | None:
    """The Change by which time closes the run's wait as of the view's clock; None while the wait is in its time.

    Whoever brings something that an open wait may take writes this first, and only then looks at what they brought.
    """
    if not waits.overdue(view, view.now):
        return None
    draft = run_draft(view, "system:timer", "wait.due")
    return draft.change() if act(draft, view) else None


def act(draft: Draft, view: RunView) -> bool:
    """Act on what is due of a run's wait, the earliest first. False when nothing is."""
    people = ports.approvals()
    return people.expire(draft, view) or waits.look(
        draft, view, lambda effects, cause: people.withdraw(draft, view, effects, cause)
    )
