"""The list of runs: filters, health and one sentence for each, in a number of queries that the number of runs doesn't change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from approvals.labels import HEALTH
from approvals.services import newer
from approvals.services.newer import Moved
from approvals.services.pieces import Cursor, Page, counted, short
from approvals.templatetags.console import visible_text as shown
from ledger.domain.endings import Reason
from ledger.domain.errors import LedgerError
from ledger.domain.explain import explain
from ledger.domain.health import Health, health
from ledger.domain.identity import Verb
from ledger.domain.runs import Status
from ledger.domain.views import RunView
from ledger.models import RunHead, Tenant, User
from ledger.services import facts, permissions, search
from ledger.services.endings import endings
from ledger.services.standings import standings

SHOWN = 50
NAMES = {
    "status": "status",
    "health": "health",
    "workflow": "workflow",
    "owner": "owner",
    "attribute": "attribute",
    "q": "text",
}
"""The parameters of the list's address, each with the field of a `Filter`."""


@dataclass(frozen=True, slots=True)
class Filter:
    """What the address asks for; empty fields don't filter. `attribute` is written `name:value`."""

    status: str = ""
    health: str = ""
    workflow: str = ""
    owner: str = ""
    attribute: str = ""
    text: str = ""
    before: str = ""

    @classmethod
    def read(cls, query: Mapping[str, str]) -> Filter:
        """From an address's parameters. Raises LedgerError `invalid`, with the `field`, for a status or health that doesn't exist."""
        asked = cls.typed(query)
        for name, value, known in (("status", asked.status, Status), ("health", asked.health, Health)):
            if value and value not in set(known):
                raise LedgerError(
                    "invalid", f"no run has that {name}", f"Choose one of {', '.join(known)}.", field=name
                )
        return asked

    @classmethod
    def typed(cls, query: Mapping[str, str]) -> Filter:
        """The same as it was typed, whether or not it can be asked."""
        told = {name: query.get(name, "").replace("\x00", "").strip()[:200] for name in NAMES}
        return cls(**{NAMES[name]: value for name, value in told.items()}, before=query.get("before", ""))

    @property
    def kept(self) -> dict[str, str]:
        """The parameters of an address that asks the same from its beginning."""
        return {name: value for name, field in NAMES.items() if (value := getattr(self, field))}

    @property
    def narrows(self) -> bool:
        return bool(self.kept)


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


def unasked(user: User, tenant: Tenant, typed: Filter) -> RunList:
    """The list's form as it was filled in, with nothing looked for."""
    return RunList((), Page(0, "", "", first=True), _workflows(user, tenant), typed)


def seen_by(user: User, tenant: Tenant) -> QuerySet[RunHead]:
    """Heads of the runs that this person may see: the one queryset behind list, count, search and page."""
    types = permissions.visible(user, Verb.SEE).filter(tenant=tenant)
    rows: QuerySet[RunHead] = RunHead.objects.of(tenant).filter(workflow__in=types)
    return rows


def runs(user: User, tenant: Tenant, asked: Filter) -> RunList:
    """A page of runs, last moved first. Raises LedgerError `invalid` for a page, or an attribute, that isn't one."""
    now = facts.read().now
    rows = _narrowed(seen_by(user, tenant), tenant, asked, now)
    total = counted(rows)
    cursor = Cursor.parse(asked.before)
    if cursor is not None:
        rows = rows.filter(Q(moved_at__lt=cursor.at) | Q(moved_at=cursor.at, run_id__lt=cursor.id))
    heads = list(
        _with_faults(rows, tenant).select_related("run", "workflow").order_by("-moved_at", "-run_id")[: SHOWN + 1]
    )
    more, heads = len(heads) > SHOWN, heads[:SHOWN]
    stands = standings(tenant.pk, heads, now)
    ended = endings(heads)
    return RunList(
        rows=tuple(_row(head, view, ended.get(head.run_id), owner) for head, view, owner in stands),
        page=Page(
            shown=len(heads),
            total=total,
            next=str(Cursor(heads[-1].moved_at, heads[-1].run_id)) if more else "",
            first=cursor is None,
        ),
        workflows=_workflows(user, tenant),
        asked=asked,
    )


def _workflows(user: User, tenant: Tenant) -> tuple[str, ...]:
    types = permissions.visible(user, Verb.SEE).filter(tenant=tenant).order_by("name")
    return tuple(types.values_list("name", flat=True)[:200])


def moved(user: User, tenant: Tenant, asked: Filter, at: datetime) -> Moved:
    """How many of these runs began or moved after a moment."""
    return newer.since(_narrowed(seen_by(user, tenant), tenant, asked, facts.read().now), "moved_at", at)


def _narrowed(rows: QuerySet[RunHead], tenant: Tenant, asked: Filter, now: datetime) -> QuerySet[RunHead]:
    if asked.status:
        rows = rows.filter(status=asked.status)
    if asked.health:
        rows = rows.filter(pk__in=search.unwell(tenant.pk, Health(asked.health), now).values("pk"))
    if asked.workflow:
        rows = rows.filter(workflow__name=asked.workflow)
    if asked.owner:
        rows = rows.filter(pk__in=search.owned(tenant.pk, asked.owner, names=True))
    if asked.attribute:
        rows = rows.filter(pk__in=search.attributed(tenant.pk, asked.attribute))
    if asked.text:
        named = (*search.acted(tenant.pk, asked.text), search.owned(tenant.pk, asked.text, names=True))
        rows = rows.filter(pk__in=search.found(tenant.pk, asked.text, *named))
    return rows


def _with_faults(rows: QuerySet[RunHead], tenant: Tenant) -> QuerySet[RunHead]:
    """Heads with whether their record did not verify when it was checked last."""
    return rows.annotate(faulty=Exists(search.unverified(tenant.pk).filter(pk=OuterRef("pk"))))


def _row(head: RunHead, view: RunView, ending: Reason | None, owner: str) -> Row:
    unwell = health(view, intact=not head.faulty)  # type: ignore[attr-defined]
    return Row(
        id=head.run_id,
        short=short(head.run_id),
        task=shown(head.run.task),
        status=head.status,
        health=unwell or "",
        health_badge=HEALTH.get(unwell) if unwell else None,
        why=shown(explain(view, ending, owner=owner).sentence),
        workflow=shown(head.workflow.name),
        version=shown(head.version),
        moved_at=head.moved_at,
    )
