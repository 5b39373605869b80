"""Everything that waits for one person, as one list, the most urgent first: requests, outcomes that nobody knows, handoffs, runs that stand still."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.db.models.lookups import GreaterThan

from approvals.domain.requests import RequestState
from approvals.models import ApprovalRequest, Revision, Vote
from approvals.services import handoff_pages, inbox, listing, reconcile_pages, stalled_runs
from approvals.services.counts import lengths
from approvals.services.pieces import Cursor
from ledger.domain.effects import EffectState, ReportKind
from ledger.domain.health import UNCLAIMED_AFTER
from ledger.domain.identity import Verb
from ledger.models import EffectReport, Tenant, User, VerifiedChain
from ledger.services import permissions

PAGE = 50
MOST_NEW = 100


class Kind(StrEnum):
    """What waits. Requests, calls and handoffs have a page of their own for all that is of them, runs that stand still a part of the inbox."""

    REQUEST = "request"
    EFFECT = "effect"
    HANDOFF = "handoff"
    UNCLAIMED = "unclaimed"
    UNVERIFIED = "unverified"


EVERY = frozenset(Kind)
STALLED = frozenset({Kind.UNCLAIMED, Kind.UNVERIFIED})
Row = listing.Row | reconcile_pages.Row | handoff_pages.Row | stalled_runs.Row


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that waits. `urgent` orders it among the others: when it is, or was, to be decided, answered or closed."""

    kind: Kind
    urgent: datetime
    id: UUID
    row: Row


@dataclass(frozen=True, slots=True)
class Moved:
    """What an open list doesn't show: how much is `new`, how much of what it shows is `gone`, and whether people decided all of that."""

    new: int
    gone: int
    decided: bool


def page_for(
    person: User, tenant: Tenant, kinds: Collection[Kind] = EVERY, after: Cursor | None = None, size: int = PAGE
) -> tuple[list[Entry], Cursor | None]:
    """One page of these kinds, and where the next begins (None at the end). Keyset paging: rows that leave meanwhile move nothing."""
    found: list[tuple[datetime, UUID, Kind, Any]] = []
    for kind, rows in _waiting(person, tenant, kinds).items():
        page = rows
        if after is not None:
            page = page.filter(Q(urgent__gt=after.at) | Q(urgent=after.at, pk__gt=after.id))
        found += [(row.urgent, row.pk, kind, row) for row in page.order_by("urgent", "pk")[: size + 1]]
    found.sort(key=lambda each: each[:2])
    shown = found[:size]
    more = Cursor(*shown[-1][:2]) if len(found) > size else None
    told = _told(person, tenant, [(kind, row) for _, _, kind, row in shown])
    return [Entry(kind, urgent, key, told[key]) for urgent, key, kind, _ in shown], more


def _waiting(person: User, tenant: Tenant, kinds: Collection[Kind]) -> dict[Kind, QuerySet[Any]]:
    """The very querysets that badges count, each with when it is urgent."""
    every: dict[Kind, QuerySet[Any]] = {
        Kind.REQUEST: inbox.pending_for(person, tenant).annotate(urgent=F("decide_by")).select_related("workflow"),
        Kind.EFFECT: reconcile_pages.waiting_for(person, tenant)
        .annotate(urgent=Coalesce("answer_by", "proposed_at"))
        .select_related("target", "run"),
        Kind.HANDOFF: handoff_pages.apart_for(person, tenant)
        .annotate(urgent=F("due_at"))
        .select_related("owner", "run__workflow"),
        Kind.UNCLAIMED: stalled_runs.unclaimed_for(person, tenant)
        .annotate(urgent=F("moved_at"))
        .select_related("run", "workflow"),
        Kind.UNVERIFIED: stalled_runs.unverified_for(person, tenant)
        .annotate(urgent=_found_at(tenant))
        .select_related("run"),
    }
    return {kind: rows for kind, rows in every.items() if kind in kinds}


def _found_at(tenant: Tenant) -> Subquery:
    """When a run's record was found not to verify."""
    chain = VerifiedChain.objects.of(tenant).filter(pk=OuterRef("pk"))
    return Subquery(chain.values("checked_at")[:1])


def _told(person: User, tenant: Tenant, found: Sequence[tuple[Kind, Any]]) -> Mapping[UUID, Row]:
    """The rows as their own pages show them; nothing is read for a kind that isn't there."""
    of = {kind: [row for each, row in found if each is kind] for kind in Kind}
    told: dict[UUID, Row] = {}
    if of[Kind.REQUEST]:
        told |= {row.request.pk: row for row in listing.rows(tenant, of[Kind.REQUEST])}
    if of[Kind.EFFECT]:
        told |= {row.id: row for row in reconcile_pages.rows(person, tenant, of[Kind.EFFECT])}
    if of[Kind.UNCLAIMED]:
        told |= {row.id: row for row in stalled_runs.unclaimed_rows(tenant, of[Kind.UNCLAIMED])}
    told |= {row.id: row for row in stalled_runs.unverified_rows(of[Kind.UNVERIFIED])}
    return told | {handoff.pk: handoff_pages.row(handoff) for handoff in of[Kind.HANDOFF]}


def moved(person: User, tenant: Tenant, kinds: Collection[Kind], since: datetime, shown: Sequence[UUID]) -> Moved:
    """What came after a moment, and what became of the things that a page lists: at most a page of them. One statement."""
    waiting = _waiting(person, tenant, kinds)
    ids = list(shown) or [UUID(int=0)]
    new = [rows.filter(_NEW[kind](tenant, since, ids)) for kind, rows in waiting.items()]
    still = [rows.filter(pk__in=ids) for rows in waiting.values()]
    counts = lengths([*new, *still, _decided(person, tenant, ids)], MOST_NEW)
    gone = len(shown) - sum(counts[len(new) : -1])
    return Moved(sum(counts[: len(new)]), gone, gone > 0 and counts[-1] == gone)


def _decided(person: User, tenant: Tenant, ids: Sequence[UUID]) -> QuerySet[ApprovalRequest]:
    """Those of these requests that people decided, or on which this person voted."""
    voted = Vote.objects.of(tenant).filter(request=OuterRef("pk"), revision=OuterRef("revision"), voter=person)
    rows: QuerySet[ApprovalRequest] = ApprovalRequest.objects.of(tenant).filter(
        pk__in=ids, workflow__in=permissions.visible(person, Verb.SEE)
    )
    return rows.filter(Q(state__in=(RequestState.APPROVED, RequestState.DENIED)) | Exists(voted))


def _asked_since(tenant: Tenant, since: datetime, shown: Sequence[UUID]) -> Q:
    """Asked, or asked again, after a moment."""
    current = Revision.objects.of(tenant).filter(request=OuterRef("pk"), number=OuterRef("revision"))
    return Q(GreaterThan(Subquery(current.values("opened_at")[:1]), since))


def _lost_since(tenant: Tenant, since: datetime, shown: Sequence[UUID]) -> Q:
    """Not shown, and reported after a moment by something other than a look at the target, or a call whose answer became overdue after it."""
    reports = EffectReport.objects.of(tenant).filter(effect=OuterRef("pk"), reported_at__gt=since)
    told = Exists(reports.exclude(kind__in=(ReportKind.LOOKUP, ReportKind.REPLAY)))
    return (Q(told) | Q(state=EffectState.IN_FLIGHT, answer_by__gt=since)) & ~Q(pk__in=shown)


def _handed_since(tenant: Tenant, since: datetime, shown: Sequence[UUID]) -> Q:
    return Q(opened_at__gt=since)


def _left_since(tenant: Tenant, since: datetime, shown: Sequence[UUID]) -> Q:
    return Q(moved_at__gt=since - UNCLAIMED_AFTER)


def _spoilt_since(tenant: Tenant, since: datetime, shown: Sequence[UUID]) -> Q:
    return Q(urgent__gt=since) & ~Q(pk__in=shown)


_NEW = {
    Kind.REQUEST: _asked_since,
    Kind.EFFECT: _lost_since,
    Kind.HANDOFF: _handed_since,
    Kind.UNCLAIMED: _left_since,
    Kind.UNVERIFIED: _spoilt_since,
}
