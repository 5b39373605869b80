"""Wakes at the record: taken before the work, decided on what was gathered, requeued when a deciding fact moved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import connection

from ledger.domain import decisions, transitions, wakes
from ledger.domain.change import Change
from ledger.domain.checkpoints import VersionRow, able_versions
from ledger.domain.effects import EffectRow
from ledger.domain.runs import Status
from ledger.domain.transitions import Gathered
from ledger.domain.views import RunView
from ledger.domain.waits import Asked
from ledger.domain.wakes import DecisionKind, WakeRow, WakeState
from ledger.services import batches, facts, plans, ports, waits, writer
from ledger.services.contracts import writes
from ledger.services.drafts import run_draft
from ledger.services.facts import Part
from ledger.services.views import named_views, run_view

ACTOR = "system:wake"
_TO_BEGIN = frozenset({"wake"})


@writes(
    moves=(
        "Wake queued → checking with its attempt counted, also checking → checking when its checker is taken for "
        "dead; → dropped when the run isn't waking."
    ),
    twice="Answers None: the first one checks it.",
    dies="The attempt is counted; after its time another checker takes it, after three a person does.",
)
def begin(run_id: UUID) -> WakeRow | None:
    """Take the run's due wake; None when there is none, somebody checks it, or the run wants no wake any more.

    The attempt is counted and committed before any work, so that a checker that dies is counted too.
    """

    return writer.settle(lambda: run_view(run_id, None, _TO_BEGIN), _begun)[0]


@writes(
    moves="What `begin` moves, for each of these runs that need ask no target; one Change a run.",
    twice="Leaves out those that somebody checks.",
    dies="As `begin`: the attempts are counted.",
)
def begin_each(run_ids: Sequence[UUID]) -> tuple[list[WakeRow], list[UUID]]:
    """`begin` for several runs in two round trips. Answers the wakes that were taken, and the runs that are left for `begin`.

    What rests on a target is left: that one may keep silent for as long as all the others together need.
    """
    views = named_views(run_ids, _TO_BEGIN | {"effects"})
    alone = [view for view in views if not any(effect.observed_version for effect in view.effects)]
    settled = batches.settle_each(alone, _begun)
    done = {view.run.id for view, answer in zip(alone, settled, strict=True) if answer is not None}
    taken = [answer[0] for answer in settled if answer is not None and answer[0] is not None]
    return taken, [run_id for run_id in run_ids if run_id not in done]


def _begun(view: RunView) -> tuple[Change | None, WakeRow | None]:
    wake = view.wake
    if wake is None or not _takeable(wake, view.now):
        return None, None
    draft = run_draft(view, ACTOR, "wake.begin")
    if view.head.status is not Status.WAKING:
        wakes.drop(draft, wake)
        return draft.change(), None
    taken = wakes.begin(draft, wake, timedelta(seconds=settings.RESUMEAPP_CHECK_SECONDS))
    return draft.change(), taken


def _takeable(wake: WakeRow, now: datetime) -> bool:
    if wake.state is WakeState.CHECKING:
        return wake.until is not None and wake.until <= now
    return wake.due_at <= now


@writes(
    moves=(
        "Wake checking → decided; inserts the decision with every check; run waking → ready, waiting, blocked, "
        "cancelled or failed with what that opens. Where head or tenant moved: checking → queued; a tenant's move gives the "
        "attempt back, ten times."
    ),
    twice="Answers None: the wake is no longer this checker's.",
    dies="The decision stands with all that it opened.",
)
def apply(run_id: UUID, gathered: Gathered) -> DecisionKind | None:
    """Decide on what was gathered and write it, if head and tenant are still as they were then; otherwise the wake is queued again.

    The writer compares them after the lock, so nothing is read again before. None when it was queued again, or is no longer this checker's.
    """
    return writer.settle(lambda: run_view(run_id), _rule(gathered), first=gathered.view)[0]


@writes(
    moves="What `apply` moves, for each of these; one Change a run.",
    twice="Leaves each to `apply`, which answers None.",
    dies="Of each run the decision stands with all that it opened, or nothing of it.",
)
def apply_each(gathered: Sequence[Gathered]) -> list[Gathered]:
    """`apply` for several runs in one round trip. Answers those that are left for `apply`."""
    settled = batches.settle_each(gathered, lambda each: _rule(each)(each.view))
    return [each for each, answer in zip(gathered, settled, strict=True) if answer is None]


def _rule(gathered: Gathered) -> Callable[[RunView], tuple[Change | None, DecisionKind | None]]:
    decided = decisions.decide(gathered.checks, gathered.facts)
    done = plans.done(gathered.view, gathered.facts.replan_to) if decided.decision is DecisionKind.REPLAN else ()

    def rule(view: RunView) -> tuple[Change | None, DecisionKind | None]:
        wake = view.wake
        if wake is None or wake.id != gathered.wake_id or wake.attempt != gathered.attempt:
            return None, None
        if wake.state is not WakeState.CHECKING or view.head.status is not Status.WAKING:
            return None, None
        draft = run_draft(view, ACTOR, "wake.decide", fresh_authority=True)
        if view.head.head_seq != gathered.head_seq:
            wakes.requeue(draft, wake, "moved")
            return draft.change(), None
        if view.tenant_seq != gathered.tenant_seq:
            wakes.overtaken(draft, wake)
            return draft.change(), None

        def ask(effect: EffectRow, by: datetime, reason: str) -> Asked:
            return waits.ask(draft, view, effect, by, reason)

        def withdraw(cause: str) -> None:
            ports.approvals().withdraw(draft, view, None, cause)

        transitions.apply(draft, view, gathered, decided, ask, withdraw, done)
        return draft.change(), decided.decision

    return rule


def due(limit: int) -> list[UUID]:
    """Runs whose wake is due, or whose checker is taken for dead; longest first."""
    read = facts.read(
        wakes=Part(
            "wake",
            f"t.state IN ('queued', 'checking') AND t.due_at <= {facts.clock()}"
            f" AND (t.state = 'queued' OR t.until <= {facts.clock()})",
            many=True,
            order="t.due_at",
            limit=limit,
        )
    )
    return [row["run_id"] for row in read.many("wakes")]


@writes(
    moves="Wake queued, or checking by somebody taken for dead, for much later than any wake is put off → queued, due now.",
    twice="Answers False: it is due.",
    dies="The wake is a due row.",
)
def hurry(run_id: UUID) -> bool:
    """Make due now a wake that a clock which has gone back since left for much later. False when there is none."""

    def rule(view: RunView) -> tuple[Change | None, bool]:
        draft = run_draft(view, "system:sweep", "wake.hurry")
        if view.wake is None or not wakes.hurry(draft, view.wake):
            return None, False
        return draft.change(), True

    return writer.settle(lambda: run_view(run_id), rule)[0]


def far(limit: int) -> list[UUID]:
    """Runs whose wake, or its checker, has a time that only a clock which has gone back since can have written."""
    soon = facts.read().now + wakes.PUT_OFF
    late = "(t.state = 'queued' AND t.due_at > %s) OR (t.state = 'checking' AND t.until > %s)"
    read = facts.read(wakes=Part("wake", late, (soon, soon), many=True, order="t.due_at", limit=limit))
    return [row["run_id"] for row in read.many("wakes")]


@writes(
    moves="Clearance live → stale; run ready → waking, or blocked where only old code may take it.",
    twice="Answers False: the clearance is no longer live.",
    dies="The wake or the handoff is a row.",
)
def not_claimed(run_id: UUID) -> bool:
    """A clearance that nobody claimed by its time: the run wakes again; one that only old code may take goes to a person."""

    def rule(view: RunView) -> tuple[Change | None, bool]:
        draft = run_draft(view, "system:sweep", "clearance.lapse")
        routed = any(row and row["decision"] == DecisionKind.ROUTE_OLD for row in view.extras["decided"])
        if not transitions.not_claimed(draft, view, routed_old=routed):
            return None, False
        return draft.change(), True

    decided = Part(
        "decision",
        "t.id = (SELECT c.decision_id FROM ledger_clearance c JOIN ledger_run_head h ON h.clearance_id = c.id WHERE h.run_id = %s)",
        (run_id,),
    )
    return writer.settle(lambda: run_view(run_id, decided=decided), rule)[0]


def unclaimed(limit: int) -> list[UUID]:
    """Ready runs whose clearance is past its `ready_by`."""
    read = facts.read(
        clearances=Part(
            "clearance",
            f"t.state = 'live' AND t.ready_by <= {facts.clock()}",
            many=True,
            order="t.ready_by",
            limit=limit,
        )
    )
    return [row["run_id"] for row in read.many("clearances")]


@writes(
    moves="Clearance live → stale; run ready → waking.",
    twice="Answers False: the clearance is no longer live.",
    dies="The wake is a row.",
)
def reconsider(run_id: UUID) -> bool:
    """A version was registered after the clearance: the run wakes again, so that newer code may take it too."""

    def rule(view: RunView) -> tuple[Change | None, bool]:
        draft = run_draft(view, "system:sweep", "clearance.outdated")
        rows = view.extras["versions"]
        # A time that is yet to come was written by a clock that has gone back since, and says nothing.
        newest = max((row["created_at"] for row in rows if row["created_at"] <= view.now), default=view.run.created_at)
        able = able_versions([facts.load(VersionRow, row) for row in rows], view.head.version, view.head.transition)
        if not transitions.outdated(draft, view, newest, able):
            return None, False
        return draft.change(), True

    versions = Part(
        "workflow_version",
        "t.workflow_id = (SELECT h.workflow_id FROM ledger_run_head h WHERE h.run_id = %s)",
        (run_id,),
        many=True,
    )
    return writer.settle(lambda: run_view(run_id, versions=versions), rule)[0]


def outdated(limit: int) -> list[UUID]:
    """Ready runs whose workflow had a version registered after they were cleared, which is when they became ready."""
    read = facts.read(
        clearances=Part(
            "clearance", f"t.state = 'live' AND t.id IN ({_before_a_version(limit)})", many=True, order="t.opened_at"
        )
    )
    return [row["run_id"] for row in read.many("clearances")]


def _before_a_version(limit: int) -> str:
    """Clearances of runs that became ready before a version of their workflow was registered: SQL."""
    ready = "h.workflow_id = v.workflow_id AND h.status = 'ready' AND h.moved_at < v.created_at"
    if connection.vendor != "postgresql":
        return f"SELECT h.clearance_id FROM ledger_workflow_version v JOIN ledger_run_head h ON {ready} LIMIT {limit}"
    # By each version, in the order of the index: joined otherwise, all ready runs are read in the hope of meeting so many early ones.
    early = f"SELECT h.clearance_id FROM ledger_run_head h WHERE {ready} ORDER BY h.moved_at LIMIT {limit}"
    return f"SELECT r.clearance_id FROM ledger_workflow_version v CROSS JOIN LATERAL ({early}) r LIMIT {limit}"


def overlooked(workflow_id: UUID, version: str, since: datetime) -> list[UUID]:
    """Ready runs that were cleared, after this time, without a version that is there by now."""
    ready = "SELECT h.clearance_id FROM ledger_run_head h WHERE h.workflow_id = %s AND h.status = 'ready' AND h.moved_at >= %s"
    read = facts.read(
        clearances=Part("clearance", f"t.state = 'live' AND t.id IN ({ready})", (workflow_id, since), many=True)
    )
    return [row["run_id"] for row in read.many("clearances") if version not in row["versions"]]
