"""What is not as it should be with a run: computed from its rows and a moment, never stored. No clock, no I/O."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

from ledger.domain.effects import EffectState
from ledger.domain.runs import ENDED, Status
from ledger.domain.views import RunView
from ledger.domain.waits import MemberState
from ledger.domain.wakes import WakeState

SWEPT_AFTER = timedelta(seconds=60)
"""The sweep needs a moment: what is younger is not late yet."""
UNCLAIMED_AFTER = timedelta(minutes=5)
"""Workers need a moment too: from then on a cleared run counts as unclaimed."""


class Health(StrEnum):
    """The one thing that most needs somebody, the gravest first."""

    UNVERIFIED = "unverified"
    BLOCKED = "blocked"
    DISPUTED = "disputed"
    UNKNOWN = "unknown"
    OVERDUE = "overdue"
    LEASE = "lease"
    UNCLAIMED = "unclaimed"
    UNCHECKED = "unchecked"
    NO_APPROVERS = "no_approvers"


def health(view: RunView, *, intact: bool = True) -> Health | None:
    """What is wrong with the run at the view's moment; nothing when all is well. Its record is
    `intact` unless it failed when it was checked last."""
    if not intact:
        return Health.UNVERIFIED
    if view.head.status is Status.BLOCKED:
        return Health.BLOCKED
    if any(effect.disputed for effect in view.effects):
        return Health.DISPUTED
    if view.head.status in ENDED:
        return None
    if any(effect.state is EffectState.UNKNOWN for effect in view.effects):
        return Health.UNKNOWN
    return _LATE[view.head.status](view)


def late(due: datetime, now: datetime) -> bool:
    """Should this have been acted on by now?"""
    return due + SWEPT_AFTER <= now


def unclaimed(view: RunView) -> bool:
    """Has the run been ready for longer than workers need to take one?"""
    return view.head.moved_at + UNCLAIMED_AFTER <= view.now


def lacking(view: RunView) -> bool:
    """Does it wait for a decision for which too few people are left?"""
    still = [each.effect_id for each in view.members if each.state is MemberState.OPEN and each.effect_id is not None]
    return any(wanted.lacking for each in still if (wanted := (view.wanted or {}).get(each)) is not None)


def _running(view: RunView) -> Health | None:
    lease = view.lease
    return Health.LEASE if lease is not None and lease.active and late(lease.expires_at, view.now) else None


def _waiting(view: RunView) -> Health | None:
    if view.wait is None or late(view.wait.due_at, view.now):
        return Health.OVERDUE
    return Health.NO_APPROVERS if lacking(view) else None


def _waking(view: RunView) -> Health | None:
    wake = view.wake
    overdue = wake is None or (wake.state is WakeState.QUEUED and late(wake.due_at, view.now))
    return Health.UNCHECKED if overdue else None


def _ready(view: RunView) -> Health | None:
    return Health.UNCLAIMED if unclaimed(view) else None


_LATE = {Status.RUNNING: _running, Status.WAITING: _waiting, Status.WAKING: _waking, Status.READY: _ready}
