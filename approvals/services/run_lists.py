"""The list of runs: filters, health and one sentence for each, in a number of queries that the number of runs doesn't change."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import CharField, Exists, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Cast, Replace

from approvals.domain.health import Around, Standing, standing
from approvals.labels import HEALTH
from approvals.models import Vote
from approvals.services.pieces import Cursor, Page, counted, short
from approvals.templatetags.console import visible_text as shown
from ledger.domain.effects import EffectState
from ledger.domain.handoffs import HandoffState
from ledger.domain.identity import Verb
from ledger.domain.runs import Status
from ledger.domain.waits import SetState
from ledger.domain.wakes import WakeState
from ledger.models import Agent, Clearance, Effect, Handoff, RunHead, Tenant, User, WaitMember, WaitSet, Wake, Worker
from ledger.services import facts, permissions
from ledger.services.endings import endings

SHOWN = 50
ENDING = re.compile("[0-9a-f]{6,32}")
"""A run's id, or as much of its end as lists show, or less."""
OPEN_HANDOFFS = (HandoffState.OPEN, HandoffState.ACCEPTED)


@dataclass(frozen=True, slots=True)
class Filter:
    """What the address asks for; empty fields don't filter."""

    status: str = ""
    workflow: str = ""
    text: str = ""
    before: str = ""

    @classmethod
    def read(cls, query: Mapping[str, str]) -> Filter:
        """From an address's parameters; a status that doesn't exist filters nothing."""
        status = query.get("status", "")
        return cls(
            status=status if status in set(Status) else "",
            workflow=query.get("workflow", "").strip()[:80],
            text=query.get("q", "").replace("\x00", "").strip()[:200],
            before=query.get("before", ""),
        )

    @property
    def narrows(self) -> bool:
        return bool(self.status or self.workflow or self.text)


@dataclass(frozen=True, slots=True)
class Row:
    """One run of the list."""

    id: UUID
    short: str
    task: str
    status: str
    health: str
    health_badge: tuple[str, str] | None
    why: str
    workflow: str
    version: str
    moved_at: datetime


@dataclass(frozen=True, slots=True)
class RunList:
    rows: tuple[Row, ...]
    page: Page
    workflows: tuple[str, ...]
    asked: Filter


def seen_by(user: User, tenant: Tenant) -> QuerySet[RunHead]:
    """Heads of the runs that this person may see: the one queryset behind list, count, search and page."""
    types = permissions.visible(user, Verb.SEE).filter(tenant=tenant)
    rows: QuerySet[RunHead] = RunHead.objects.of(tenant).filter(workflow__in=types)
    return rows


def runs(user: User, tenant: Tenant, asked: Filter) -> RunList:
    """A page of runs, last moved first. Raises LedgerError `invalid` for a page that isn't one."""
    rows = _narrowed(seen_by(user, tenant), tenant, asked)
    total = counted(rows)
    cursor = Cursor.parse(asked.before)
    if cursor is not None:
        rows = rows.filter(Q(moved_at__lt=cursor.at) | Q(moved_at=cursor.at, run_id__lt=cursor.id))
    heads = list(rows.select_related("run__lease", "workflow").order_by("-moved_at", "-run_id")[: SHOWN + 1])
    more, heads = len(heads) > SHOWN, heads[:SHOWN]
    now = facts.read().now
    around = surroundings(tenant, heads)
    types = permissions.visible(user, Verb.SEE).filter(tenant=tenant).order_by("name")
    return RunList(
        rows=tuple(_row(head, standing(head, around[head.run_id], now)) for head in heads),
        page=Page(
            shown=len(heads),
            total=total,
            next=str(Cursor(heads[-1].moved_at, heads[-1].run_id)) if more else "",
            first=cursor is None,
        ),
        workflows=tuple(types.values_list("name", flat=True)[:200]),
        asked=asked,
    )


def _narrowed(rows: QuerySet[RunHead], tenant: Tenant, asked: Filter) -> QuerySet[RunHead]:
    if asked.status:
        rows = rows.filter(status=asked.status)
    if asked.workflow:
        rows = rows.filter(workflow__name=asked.workflow)
    if asked.text:
        rows = rows.filter(_found(tenant, asked.text))
    return rows


def _found(tenant: Tenant, text: str) -> Q:
    """A task, agent or person that has the text, a key, reference or resource that is exactly it, or a run's id or the end of one.

    A person's runs are those that they decided on or that act for them.
    """
    own = Effect.objects.of(tenant).filter(run_id=OuterRef("run_id"))
    found = Q(run__task__icontains=text) | Q(Exists(own.filter(Q(key=text) | Q(reference=text) | Q(resource=text))))
    agents = Agent.objects.of(tenant).filter(name__icontains=text).values("pk")
    people = User.objects.filter(memberships__tenant_id=tenant.pk, name__icontains=text).values("pk")
    voted = Vote.objects.of(tenant).filter(run_id=OuterRef("run_id"), voter__in=people)
    found |= Q(run__agent_id__in=agents) | Q(run__on_behalf_of_id__in=people) | Q(Exists(voted))
    digits = text.lower().replace("-", "")
    if ENDING.fullmatch(digits):
        ids = RunHead.objects.of(tenant).annotate(digits=Replace(Cast("run_id", CharField()), Value("-"), Value("")))
        found |= Q(run_id__in=ids.filter(digits__endswith=digits).values("run_id"))
    return found


def _row(head: RunHead, stands: Standing) -> Row:
    return Row(
        id=head.run_id,
        short=short(head.run_id),
        task=shown(head.run.task),
        status=head.status,
        health=stands.health,
        health_badge=HEALTH.get(stands.health),
        why=shown(stands.sentence),
        workflow=shown(head.workflow.name),
        version=shown(head.version),
        moved_at=head.moved_at,
    )


def surroundings(tenant: Tenant, heads: Sequence[RunHead]) -> dict[UUID, Around]:
    """What stands around each of these runs: seven queries, ten more when some ended badly. Heads come with their run and lease."""
    ids = [head.run_id for head in heads]
    waits = _by_run(WaitSet.objects.of(tenant).filter(run_id__in=ids, state=SetState.OPEN))
    members: dict[UUID, list[Any]] = defaultdict(list)
    of_waits = [wait.pk for wait in waits.values()]
    for member in WaitMember.objects.of(tenant).filter(wait_id__in=of_waits).order_by("ordinal"):
        members[member.wait_id].append(member)
    wakes = _by_run(Wake.objects.of(tenant).filter(run_id__in=ids, state__in=[WakeState.QUEUED, WakeState.CHECKING]))
    handoffs = Handoff.objects.of(tenant).filter(run_id__in=ids, state__in=OPEN_HANDOFFS, blocks_run=True)
    held = _by_run(handoffs.select_related("owner"))
    clearances = _by_run(Clearance.objects.of(tenant).filter(pk__in=[h.clearance_id for h in heads if h.clearance_id]))
    effects: dict[UUID, list[Any]] = defaultdict(list)
    awaited = {member.effect_id for some in members.values() for member in some if member.effect_id}
    for effect in telling(tenant, ids, awaited):
        effects[effect.run_id].append(effect)
    leases = {head.run_id: getattr(head.run, "lease", None) for head in heads}
    workers = _workers(tenant, leases.values())
    ended = endings(heads)
    found = {}
    for row in ids:
        wait, handoff, lease = waits.get(row), held.get(row), leases[row]
        found[row] = Around(
            lease=lease,
            worker=workers.get(lease.worker_id, "") if lease is not None else "",
            wait=wait,
            members=members[wait.pk] if wait is not None else (),
            wake=wakes.get(row),
            clearance=clearances.get(row),
            handoff=handoff,
            owner=handoff.owner.name if handoff is not None and handoff.owner else "",
            effects=effects[row],
            ending=ended.get(row),
        )
    return found


def telling(tenant: Tenant, ids: list[UUID], awaited: Collection[UUID]) -> QuerySet[Effect]:
    """The effects that say something of how a run stands: open and disputed ones, and those that are waited for."""
    says = Q(state__in=[EffectState.IN_FLIGHT, EffectState.UNKNOWN]) | Q(disputed=True) | Q(pk__in=awaited)
    rows: QuerySet[Effect] = Effect.objects.of(tenant).filter(says, run_id__in=ids).order_by("proposed_at", "pk")
    return rows


def _by_run(rows: QuerySet[Any]) -> dict[UUID, Any]:
    return {row.run_id: row for row in rows}


def _workers(tenant: Tenant, leases: Any) -> dict[UUID, str]:
    ids = {lease.worker_id for lease in leases if lease is not None}
    return {pk: f"Worker {name}" for pk, name in Worker.objects.of(tenant).filter(pk__in=ids).values_list("pk", "name")}
