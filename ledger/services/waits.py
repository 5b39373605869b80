"""Waits as they meet the people's side, the clock and events that came early."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from ledger.domain import waits
from ledger.domain.authority import GrantState, Verdict, grant_of, requirement
from ledger.domain.change import Change
from ledger.domain.drafts import Draft
from ledger.domain.effects import EffectRow
from ledger.domain.views import RunView
from ledger.domain.waits import Asked, MemberKind, Outcome
from ledger.services import batches, deadlines, events, facts, meetings, ports, writer
from ledger.services.contracts import writes
from ledger.services.drafts import run_draft
from ledger.services.facts import Part
from ledger.services.views import named_views, run_view

_looks = meetings.Looks(meetings.unmet)
_OF_TIME = frozenset({"wait", "members", "wake"})
"""What is read of a run on whose wait only the clock acts."""


def ask(draft: Draft, view: RunView, effect: EffectRow, by: datetime, reason: str = "asked") -> Asked:
    """Ask people for leave for an effect, to be decided before `by`, and earlier where the policy says so.

    Answers the outcome at once where the policy leaves nothing to ask, or where a live grant covers exactly this.
    """
    wanted = requirement(view.policy, effect.tool, view.targets[effect.target_id].name)
    if wanted.verdict is Verdict.DENY:
        return Asked(Outcome.DENIED_BY_POLICY)
    if wanted.verdict is Verdict.ALLOW:
        return Asked(Outcome.NOT_NEEDED)
    grant = grant_of(view, effect.id)
    if (
        grant is not None
        and grant.state is GrantState.LIVE
        and reason == "asked"
        and grant.subject_digest == effect.subject_digest
        and grant.requirement_digest == wanted.digest()
        and grant.use_by > draft.at
    ):
        return Asked(Outcome.APPROVED)
    decide_by = min(by, draft.at + wanted.decide_by)
    return ports.approvals().ask(draft, view, ports.Ask(effect, wanted, decide_by, reason))


def asker(draft: Draft, view: RunView) -> waits.Ask:
    """`ask` for one draft, as the rules take it."""
    return lambda effect, by: ask(draft, view, effect, by)


def withdrawer(draft: Draft, view: RunView) -> waits.Withdraw:
    """Withdraw requests within one draft, as the rules take it."""
    return lambda effect_ids, cause: ports.approvals().withdraw(draft, view, effect_ids, cause)


@writes(
    moves="What `events.deliver` and `expire_due` move, for what was there before the wait.",
    twice="Finds nothing more to deliver or to expire.",
    dies="What wasn't looked at yet is found by the sweep.",
)
def look_after_open(run_id: UUID) -> bool:
    """Called after the commit that opened a wait: events that came early, and timers that are past. True when a timer or the deadline was.

    The other side does the same after its own commit, so whichever is second finds both; the sweep covers a death in between.
    """
    for _ in range(waits.MAX_MEMBERS):
        read = facts.read(
            wait=Part("wait_set", "t.run_id = %s AND t.state = 'open'", (run_id,)), **events.early_parts(run_id)
        )
        wait, member, event = (read.row(name) for name in ("wait", "early_member", "early_event"))
        if wait is None:
            return False
        if member is None or event is None:
            return wait["due_at"] <= read.now and expire_due(run_id)
        if events.deliver(run_id, member["id"], event["id"]) and wait["mode"] == waits.SetMode.ANY:
            return False
    return expire_due(run_id)


@writes(
    moves=(
        "Timers open → met; a request past its decide-by pending → expired; set open → satisfied, or expired with its "
        "declared action; run waiting → waking, with an intent where the action ends it."
    ),
    twice="Nothing is due: answers False.",
    dies="The run's wake is a row: the sweep takes it.",
)
def expire_due(run_id: UUID, view: RunView | None = None) -> bool:
    """Act on the timers, decide-bys and the deadline of a run's wait, as of now or as of the caller's `view`. False when nothing was due."""

    def rule(view: RunView) -> tuple[Change | None, bool]:
        draft = run_draft(view, "system:timer", "wait.due")
        return (draft.change(), True) if deadlines.act(draft, view) else (None, False)

    return writer.settle(lambda: run_view(run_id), rule, first=view)[0]


@writes(
    moves="What `expire_due` moves, for each of these runs whose wait asks nobody for leave; one Change a run.",
    twice="Nothing is due: moves nothing.",
    dies="Of each run all is written or nothing; what is left is due rows.",
)
def expire_each(run_ids: Sequence[UUID]) -> list[UUID]:
    """`expire_due` for several runs: two round trips for `batches.SIZE` of them. Answers those that are left for `expire_due`."""
    return [run_id for some in batches.of(run_ids) for run_id in _expired(some)]


def _expired(run_ids: Sequence[UUID]) -> list[UUID]:
    views = named_views(run_ids, _OF_TIME)
    timed = [view for view in views if all(member.kind is not MemberKind.APPROVAL for member in view.members)]

    def rule(view: RunView) -> tuple[Change | None, None]:
        draft = run_draft(view, "system:timer", "wait.due")
        return (draft.change() if waits.look(draft, view) else None), None

    settled = batches.settle_each(timed, rule)
    done = {view.run.id for view, answer in zip(timed, settled, strict=True) if answer is not None}
    return [run_id for run_id in run_ids if run_id not in done]


def due(limit: int) -> list[UUID]:
    """Runs whose wait has a timer or deadline past, longest first."""
    read = facts.read(
        sets=Part(
            "wait_set", f"t.state = 'open' AND t.due_at <= {facts.clock()}", many=True, order="t.due_at", limit=limit
        )
    )
    return [row["run_id"] for row in read.many("sets")]


def for_events(limit: int) -> list[UUID]:
    """Runs with an open event member that a kept event matches: joins what a death left apart."""
    return _looks.found(limit)
