"""Checks of the record in the background: asked for by a person, done in slices of bounded time, with how far they are and what they found.

A check's unit is a chain: one run, the tenant's administration, a batch of events. A slice that dies is done again by whoever finds it due.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from time import monotonic
from typing import Any, Final
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet

from ledger.domain import verifications as rules
from ledger.domain.canonical import parse_time, rfc3339
from ledger.domain.errors import LedgerError
from ledger.domain.identity import Caller
from ledger.domain.journal import Fault
from ledger.domain.verifications import Reach, Stage
from ledger.models import JournalEntry, Run, Verification, VerifiedChain
from ledger.services import facts, hints, verify
from ledger.services.contracts import writes
from ledger.services.hints import Hint
from ledger.services.ids import new_id

SLICE: Final = 2.0
"""Seconds that a slice of the queue may take; it ends with the chain at hand."""
BRIEFLY: Final = 0.2
"""The same for a slice of the sweep, which has leases and deadlines to look after."""
ALONE: Final = timedelta(seconds=60)
"""A slice that hasn't come back after this long is taken for dead."""
AT_ONCE: Final = 2
"""Checks that one pass of the sweep goes on with."""
EVENTS: Final = 200


@writes(
    moves="Inserts a check of a run or of a tenant. No entry.",
    twice="While a check of the same is open, answers that one.",
    dies="The sweep finds the check as a row that is due.",
)
def ask(caller: Caller, run_id: UUID | None = None) -> UUID:
    """Ask for a check of one run, or of everything of the caller's tenant, and answer the check's id."""
    reach = Reach.TENANT if run_id is None else Reach.RUN
    now, subject = facts.read().now, run_id or caller.tenant_id
    row = Verification(
        id=new_id(now),
        tenant_id=caller.tenant_id,
        reach=reach,
        subject=subject,
        asked_by=caller.actor,
        asked_at=now,
        due_at=now,
        stage=rules.first(reach),
        total=1 if run_id is not None else None,
    )
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError:
        found = Verification.objects.of(caller.tenant_id).filter(subject=subject, finished_at=None).first()
        if found is None:
            raise LedgerError("busy", "another check of the same has just ended", "Ask again.") from None
        return UUID(str(found.pk))
    hints.send(Hint.CHECKS)
    return UUID(str(row.pk))


def due(limit: int) -> list[UUID]:
    """Checks that can go on, the longest due first; no more than a pass of the sweep has time for."""
    rows = Verification.objects.across_tenants().filter(finished_at=None, due_at__lte=facts.read().now)
    return list(rows.order_by("due_at").values_list("pk", flat=True)[: min(limit, AT_ONCE)])


@writes(
    moves="A check: what was looked at and found, as far as the time goes; for each chain, how far it was checked. No entry.",
    twice="Only one of two processes takes a slice; the other does nothing.",
    dies="The slice counts for nothing, and is done again once it is taken for dead.",
)
def advance(check_id: UUID, seconds: float = BRIEFLY) -> bool:
    """Do one slice of at most so many seconds and the chain at hand. Answers whether anything is left to do."""
    row = _take(check_id)
    if row is None:
        return False
    work, begun = _Work(row, row.due_at - ALONE), monotonic()
    while row.stage != Stage.DONE and (work.fresh or monotonic() - begun < seconds):
        _STEPS[Stage(row.stage)](work)
    _keep(work)
    return bool(row.stage != Stage.DONE)


def _take(check_id: UUID) -> Verification | None:
    """The check, if nobody else has a slice of it in hand."""
    now = facts.read().now
    row: Verification | None = Verification.objects.across_tenants().filter(pk=check_id, finished_at=None).first()
    if row is None or row.due_at > now:
        return None
    taken = Verification.objects.across_tenants().filter(pk=check_id, due_at=row.due_at, finished_at=None)
    if not taken.update(due_at=now + ALONE):
        return None
    row.due_at = now + ALONE
    return row


@dataclass(slots=True)
class _Work:
    """A slice at work, since `now`: the check as it will be, and the chains that were looked at."""

    row: Verification
    now: datetime
    chains: list[VerifiedChain] = field(default_factory=list)
    fresh: bool = True

    def count(self, stream: str, done: int, entries: int, rows: int, faults: Sequence[Fault]) -> None:
        """Add what was looked at to the check."""
        self.fresh = False
        self.row.done += done
        self.row.entries += entries
        self.row.rows += rows
        self.row.faults += len(faults)
        self.row.found = rules.kept(self.row.found, stream, faults)

    def saw(self, reach: Reach, stream: UUID, seq: int, *, intact: bool) -> None:
        """Note how far a chain was checked."""
        self.chains.append(
            VerifiedChain(
                stream_id=stream,
                tenant_id=self.row.tenant_id,
                reach=reach,
                seq=seq,
                intact=intact,
                checked_at=self.now,
                verification_id=self.row.pk,
            )
        )

    def through(self) -> None:
        """Go on to the next stage."""
        self.row.stage, self.row.after = rules.following(Stage(self.row.stage)), ""


def _administration(work: _Work) -> None:
    tenant_id = work.row.tenant_id
    entries, rows, faults = _looked(f"tenant:{tenant_id}", lambda: verify.administration(tenant_id))
    work.row.total = 1 + _events(tenant_id).count() + _runs(work.row).count()
    work.count(f"tenant:{tenant_id}", 1, entries, rows, faults)
    work.saw(Reach.TENANT, tenant_id, entries, intact=not faults)
    work.through()


def _received(work: _Work) -> None:
    tenant_id = work.row.tenant_id
    batch = verify.events(tenant_id, int(work.row.after or 0), EVENTS)
    work.count("events", batch.count, batch.count, batch.count, batch.faults)
    if batch.next is None:
        work.through()
    else:
        work.row.after = str(batch.next)


def _one_run(work: _Work) -> None:
    if work.row.reach == Reach.RUN:
        _run(work, work.row.subject)
        work.through()
        return
    found = _next(work.row)
    if found is None:
        work.through()
        return
    work.row.after = f"{rfc3339(found.created_at)}~{found.pk}"
    _run(work, found.pk)


def _run(work: _Work, run_id: UUID) -> None:
    entries, rows, faults = _looked(f"run:{run_id}", lambda: verify.run(run_id, work.row.tenant_id))
    work.count(f"run:{run_id}", 1, entries, rows, faults)
    work.saw(Reach.RUN, run_id, entries, intact=not faults)


_STEPS: Final = {Stage.ADMINISTRATION: _administration, Stage.EVENTS: _received, Stage.RUNS: _one_run}


def _looked(name: str, check: Any) -> tuple[int, int, Sequence[Fault]]:
    """What a check found. A stream that isn't there any more has a fault too."""
    try:
        report = check()
    except LedgerError as refusal:
        if refusal.code == "busy":
            raise
        return 0, 0, [Fault(None, name, refusal.code, refusal.reason)]
    return report.entries, report.rows, report.faults


def _events(tenant_id: UUID) -> QuerySet[JournalEntry]:
    rows: QuerySet[JournalEntry] = JournalEntry.objects.of(tenant_id).filter(kind="event")
    return rows


def _runs(row: Verification) -> QuerySet[Run]:
    """The runs that a check of a tenant covers: those that were there when it was asked for."""
    rows: QuerySet[Run] = Run.objects.of(row.tenant_id).filter(created_at__lte=row.asked_at)
    return rows


def _next(row: Verification) -> Run | None:
    """The run after the last one, in the order of the index that lists have."""
    rows = _runs(row)
    if row.after:
        at, _, key = row.after.partition("~")
        since = parse_time(at, "after")
        rows = rows.filter(Q(created_at__gt=since) | Q(pk__lt=UUID(key)), created_at__gte=since)
    found: Run | None = rows.order_by("created_at", "-pk").only("pk", "created_at").first()
    return found


def _keep(work: _Work) -> None:
    """Write the slice, unless it took so long that somebody else does it again."""
    row, now = work.row, facts.read().now
    mine = Verification.objects.across_tenants().filter(pk=row.pk, due_at=row.due_at, finished_at=None)
    ended = row.stage == Stage.DONE
    with transaction.atomic():
        if mine.update(**_values(row), due_at=now, finished_at=now if ended else None):
            _note(work.chains)


def _values(row: Verification) -> dict[str, Any]:
    names = ("stage", "after", "total", "done", "entries", "rows", "faults", "found")
    return {name: getattr(row, name) for name in names}


def _note(chains: Iterable[VerifiedChain]) -> None:
    VerifiedChain.objects.bulk_create(
        chains,
        update_conflicts=True,
        unique_fields=["stream_id"],
        update_fields=["seq", "intact", "checked_at", "verification"],
    )
