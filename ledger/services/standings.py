"""What tells how many runs stand, read in a number of statements that their number doesn't change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import Q, QuerySet

from ledger.domain.effects import EffectRow, EffectState, TargetRow
from ledger.domain.handoffs import OPEN_HANDOFFS, HandoffRow
from ledger.domain.runs import ENDED, ClearanceRow, Head, LeaseRow
from ledger.domain.views import RunView
from ledger.domain.waits import MemberRow, SetRow, SetState
from ledger.domain.wakes import WakeRow, WakeState
from ledger.models import Clearance, Effect, Handoff, Lease, RunHead, WaitMember, WaitSet, Wake
from ledger.services import facts
from ledger.services.ports import approvals
from ledger.services.views import asked_of

T = TypeVar("T")


def standings(tenant_id: UUID, heads: Sequence[RunHead], now: datetime) -> Iterator[tuple[RunHead, RunView, str]]:
    """Each of these runs of one tenant as `views.telling_view` reads it, and the name of the person who took its handoff ('' where nobody did).

    Seven statements, and what the people's side reads where something is to be decided.
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
        )
        yield head, view, handoff.owner.name if handoff is not None and handoff.owner else ""


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
