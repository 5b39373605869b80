"""What tells how many runs stand, read in a number of statements that their number doesn't change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import Q, QuerySet

from ledger.domain.effects import EffectRow, EffectState, TargetRow
from ledger.domain.handoffs import OPEN_HANDOFFS, HandoffRow
from ledger.domain.health import UNCLAIMED_AFTER
from ledger.domain.runs import ENDED, ClearanceRow, Head, LeaseRow, Status
from ledger.domain.views import RunView
from ledger.domain.waits import Internal, MemberRow, SetRow, SetState
from ledger.domain.wakes import WakeRow, WakeState
from ledger.models import Clearance, Effect, Handoff, Lease, RunHead, WaitMember, WaitSet, Wake
from ledger.services import facts, workers
from ledger.services.ports import approvals
from ledger.services.unseen import unseen
from ledger.services.views import asked_of

T = TypeVar("T")


def standings(tenant_id: UUID, heads: Sequence[RunHead], now: datetime) -> Iterator[tuple[RunHead, RunView, str]]:
    """Each of these runs of one tenant as `views.telling_view` reads it, and the name of the person who took its handoff ('' where nobody did).

    Seven statements, one more where nobody claims some of them, two where targets are asked again later, and what the people's side reads where
    something is to be decided.
    """
    ids = [head.run_id for head in heads]
    waits = _by_run(WaitSet.objects.of(tenant_id).filter(run_id__in=ids, state=SetState.OPEN))
    members: dict[UUID, list[MemberRow]] = defaultdict(list)
    for row in WaitMember.objects.of(tenant_id).filter(wait_id__in=[w.pk for w in waits.values()]).order_by("ordinal"):
        members[row.wait_id].append(_row(MemberRow, row))
    open_handoffs = Handoff.objects.of(tenant_id).filter(run_id__in=ids, state__in=OPEN_HANDOFFS, blocks_run=True)
    handoffs = _by_run(open_handoffs.select_related("owner"))
    wakes = _by_run(Wake.objects.of(tenant_id).filter(run_id__in=ids, state__in=[WakeState.QUEUED, WakeState.CHECKING]))
    cleared = Clearance.objects.of(tenant_id).filter(pk__in=[h.clearance_id for h in heads if h.clearance_id])
    clearances, leases = _by_run(cleared), _by_run(Lease.objects.of(tenant_id).filter(run_id__in=ids))
    named = {member.effect_id for some in members.values() for member in some if member.effect_id}
    named |= {handoff.effect_id for handoff in handoffs.values() if handoff.effect_id}
    effects: dict[UUID, list[Effect]] = defaultdict(list)
    for effect in telling(tenant_id, ids, named).select_related("target"):
        effects[effect.run_id].append(effect)
    later = [key for key, wait in waits.items() if wait.internal == Internal.RETRY_LATER]
    silent = unseen(tenant_id, later)
    heard = _heard(tenant_id, heads, clearances, now)
    wanted = approvals().wanted(tenant_id, [each for some in members.values() for each in asked_of(some)])
    for head in heads:
        key, ended = head.run_id, head.status in ENDED
        wait, handoff = waits.get(key), handoffs.get(key)
        view = RunView.of(
            now=now,
            head=_row(Head, head),
            lease=None if ended else _row_or_none(LeaseRow, leases.get(key)),
            clearance=_row_or_none(ClearanceRow, clearances.get(key)),
            effects=[_row(EffectRow, effect) for effect in effects[key]],
            targets={effect.target_id: _row(TargetRow, effect.target) for effect in effects[key]},
            wait=_row_or_none(SetRow, wait),
            members=members[wait.pk] if wait is not None else (),
            wake=_row_or_none(WakeRow, wakes.get(key)),
            wanted=wanted,
            handoff=_row_or_none(HandoffRow, handoff),
            heard=heard.get(key),
            unseen=silent.get(key, ()),
        )
        yield head, view, handoff.owner.name if handoff is not None and handoff.owner else ""


def _heard(
    tenant_id: UUID, heads: Sequence[RunHead], clearances: Mapping[UUID, Clearance], now: datetime
) -> dict[UUID, datetime]:
    """When a worker was seen last that could claim each of those runs that nobody claims; they come with their workflow."""
    late = [head for head in heads if head.status == Status.READY and head.moved_at + UNCLAIMED_AFTER <= now]
    wanted = {
        head.run_id: (head.workflow.name, tuple(clearances[head.run_id].versions))
        for head in late
        if head.run_id in clearances
    }
    seen = workers.heard(tenant_id, set(wanted.values()))
    return {run_id: seen[each] for run_id, each in wanted.items() if each in seen}


def telling(tenant_id: UUID, ids: Collection[UUID], named: Collection[UUID]) -> QuerySet[Any]:
    """The effects that say something of how these runs stand: open and disputed ones, and those that waits and handoffs name."""
    says = Q(state__in=[EffectState.IN_FLIGHT, EffectState.UNKNOWN]) | Q(disputed=True) | Q(pk__in=named)
    rows: QuerySet[Any] = Effect.objects.of(tenant_id).filter(says, run_id__in=ids)
    return rows.order_by("proposed_at", "name")


def _by_run(rows: QuerySet[Any]) -> dict[UUID, Any]:
    return {row.run_id: row for row in rows}


def _row(kind: type[T], row: Any) -> T:
    return facts.load(kind, vars(row))


def _row_or_none(kind: type[T], row: Any) -> T | None:
    return None if row is None else _row(kind, row)
