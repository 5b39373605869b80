"""Checks of the record as pages show them: how far, what was found, by whom; and how far each chain was checked last."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import OuterRef, QuerySet, Subquery, UUIDField
from django.http import Http404
from django.urls import reverse

from approvals.services import actors
from approvals.services.run_lists import seen_by
from approvals.templatetags.console import visible_text as shown
from ledger.domain.change import Kind
from ledger.domain.identity import Verb
from ledger.domain.verifications import Reach
from ledger.models import JournalEntry, Run, RunHead, Tenant, User, Verification, VerifiedChain
from ledger.services import permissions

NEWEST = 5
FAULTY = 20


@dataclass(frozen=True, slots=True)
class FaultLine:
    """One fault, with the run that it is in."""

    code: str
    reason: str
    where: str
    href: str


@dataclass(frozen=True, slots=True)
class Check:
    """One check. `token` changes with every slice; `percent` is None while the total isn't known."""

    id: UUID
    of_run: UUID | None
    task: str
    state: str
    asked_at: datetime
    finished_at: datetime | None
    who: str
    done: int
    total: int | None
    percent: int | None
    entries: int
    rows: int
    faults: int
    found: tuple[FaultLine, ...]
    token: str

    @property
    def open(self) -> bool:
        return self.state == "checking"


@dataclass(frozen=True, slots=True)
class Overview:
    """What the history says of verification: the newest checks of the whole, and the chains that weren't whole when they were checked last."""

    newest: Check | None
    earlier: tuple[Check, ...]
    faulty: tuple[FaultLine, ...]
    more_faulty: bool


@dataclass(frozen=True, slots=True)
class Verified:
    """How far a run's chain was checked last. `behind` counts entries that came since."""

    seq: int
    behind: int
    intact: bool
    at: datetime
    who: str
    href: str


def may_check(user: User, tenant: Tenant) -> bool:
    """Only who may audit the whole tenant has the whole of it checked, and reads what was found."""
    return permissions.can(user, Verb.AUDIT, tenant)


def check(user: User, tenant: Tenant, check_id: UUID) -> Check:
    """One check. Http404 for what this person can't see: a run's needs the right to see the run, a tenant's that to audit it."""
    row = Verification.objects.of(tenant).filter(pk=check_id).first()
    if row is None or not _seen(user, tenant, row):
        raise Http404
    return _checks(tenant, [row])[0]


def overview(tenant: Tenant) -> Overview:
    """The newest checks of the whole tenant, and its chains with faults: five queries at most, however long the history is."""
    rows = Verification.objects.of(tenant).filter(reach=Reach.TENANT).order_by("-asked_at", "-pk")
    checks = _checks(tenant, list(rows[: NEWEST + 1]))
    lines, more = faulty(tenant)
    return Overview(checks[0] if checks else None, tuple(checks[1:]), lines, more)


def faulty(tenant: Tenant) -> tuple[tuple[FaultLine, ...], bool]:
    """The chains that weren't whole when they were checked last, by whatever check, and whether there are more of them. Two queries."""
    chains = VerifiedChain.objects.of(tenant).filter(intact=False).order_by("-checked_at")
    found = list(chains.values_list("stream_id", "reach", "seq")[: FAULTY + 1])
    tasks = _tasks(tenant, [stream for stream, _, _ in found])
    lines = [
        _fault(tenant, tasks, f"{reach}:{stream}", "", f"checked up to entry {seq}") for stream, reach, seq in found
    ]
    return tuple(lines[:FAULTY]), len(found) > FAULTY


def standings(tenant: Tenant, entries: Sequence[JournalEntry]) -> dict[int, str]:
    """How the newest check of its chain left each entry: `intact`, `faulty` (the chain has a fault, wherever it is), or `unchecked`. One query.

    Of an event's entry nothing is said: its chain is that one entry, and is checked with all others of the tenant.
    """
    asked = [entry for entry in entries if entry.kind != Kind.EVENT]
    chains = VerifiedChain.objects.of(tenant).in_bulk({entry.stream_id for entry in asked})
    return {entry.pk: _standing(entry, chains.get(entry.stream_id)) for entry in asked}


def _standing(entry: JournalEntry, chain: VerifiedChain | None) -> str:
    if chain is None or (chain.intact and entry.seq > chain.seq):
        return "unchecked"
    return "intact" if chain.intact else "faulty"


def with_last(heads: QuerySet[RunHead], tenant: Tenant) -> QuerySet[RunHead]:
    """Heads of runs with what `last` needs, in the same statement."""
    chain = VerifiedChain.objects.of(tenant).filter(pk=OuterRef("pk"))
    return heads.annotate(
        checked_seq=Subquery(chain.values("seq")[:1]),
        checked_intact=Subquery(chain.values("intact")[:1]),
        checked_at=Subquery(chain.values("checked_at")[:1]),
        checked_in=Subquery(chain.values("verification")[:1], output_field=UUIDField()),
        checked_by=Subquery(chain.values("verification__asked_by")[:1]),
    )


def last(tenant: Tenant, head: Any) -> Verified | None:
    """How far a run's chain was checked last; nothing when nobody ever did. One query for the name; `head` comes from `with_last`."""
    if head.checked_seq is None:
        return None
    return Verified(
        seq=head.checked_seq,
        behind=max(0, head.head_seq - head.checked_seq),
        intact=head.checked_intact,
        at=head.checked_at,
        who=actors.names(tenant.pk, [head.checked_by])(head.checked_by),
        href=reverse("verification", args=[tenant.slug, head.checked_in]),
    )


def _seen(user: User, tenant: Tenant, row: Verification) -> bool:
    if row.reach == Reach.TENANT:
        return may_check(user, tenant)
    return bool(seen_by(user, tenant).filter(run_id=row.subject).exists())


def _checks(tenant: Tenant, rows: list[Verification]) -> list[Check]:
    name = actors.names(tenant.pk, [row.asked_by for row in rows])
    streams = [_stream(fault["stream"]) for row in rows for fault in row.found]
    subjects = [row.subject for row in rows if row.reach == Reach.RUN]
    tasks = _tasks(tenant, [*subjects, *(stream for stream in streams if stream)])
    return [_check(tenant, row, name(row.asked_by), tasks) for row in rows]


def _check(tenant: Tenant, row: Verification, who: str, tasks: Mapping[UUID, str]) -> Check:
    of_run = row.subject if row.reach == Reach.RUN else None
    state = "checking" if row.finished_at is None else "faulty" if row.faults else "intact"
    return Check(
        id=row.pk,
        of_run=of_run,
        task=tasks.get(row.subject, ""),
        state=state,
        asked_at=row.asked_at,
        finished_at=row.finished_at,
        who=who,
        done=row.done,
        total=row.total,
        percent=min(99, 100 * row.done // row.total) if row.total else None,
        entries=row.entries,
        rows=row.rows,
        faults=row.faults,
        found=tuple(_fault(tenant, tasks, each["stream"], each["code"], each["reason"]) for each in row.found),
        token=f"{row.stage}-{row.done}",
    )


def _fault(tenant: Tenant, tasks: Mapping[UUID, str], stream: str, code: str, reason: str) -> FaultLine:
    run_id = _stream(stream)
    task = tasks.get(run_id) if run_id else None
    return FaultLine(
        code=code,
        reason=shown(reason),
        where=task or ("Administration" if stream.startswith("tenant:") else "Events"),
        href=reverse("run", args=[tenant.slug, run_id]) if task is not None else "",
    )


def _stream(name: str) -> UUID | None:
    kind, _, key = name.partition(":")
    return UUID(key) if kind == "run" else None


def _tasks(tenant: Tenant, ids: Iterable[UUID]) -> dict[UUID, str]:
    rows = Run.objects.of(tenant).filter(pk__in=list(ids)).values_list("pk", "task")
    return {pk: shown(task) for pk, task in rows}
