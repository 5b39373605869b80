"""Verify the record: the chains of runs, of a tenant's administration and of events, and all rows against a replay of the journal.

What it can't see: somebody with the owner's rights who rewrites a chain from some entry to its end, head and rows included. Only a copy of a head
that was kept elsewhere shows that. And the tables beside the record (people, memberships, teams, rights): their changes stand in entries as notes,
and aren't compared with what is there now."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

import structlog
from django.db import DatabaseError

from ledger.domain import journal
from ledger.domain.canonical import plain
from ledger.domain.errors import LedgerError
from ledger.domain.journal import Fault, StoredEntry
from ledger.domain.moves import check_moves
from ledger.models.tables import Table, machine, tables
from ledger.services import contents, facts
from ledger.services.facts import Part, Row

_log = structlog.get_logger(__name__)
MOST_COLUMNS = 5
LONGEST_VALUE = 40
"""Columns and characters of each that a fault tells."""
READINGS = 5
"""How often a stream is checked again at most while it goes on moving."""
_SKIPPED = frozenset({"journal_entry", "body", "event"})


@dataclass(frozen=True, slots=True)
class Report:
    """What verification found. `entries` and `rows` say how much was checked; no faults means intact."""

    run_id: UUID
    entries: int
    rows: int
    faults: list[Fault]

    @property
    def intact(self) -> bool:
        return not self.faults


def run(run_id: UUID, tenant_id: UUID | None = None) -> Report:
    """Recompute everything about one run. Nothing is repaired. Raises LedgerError `not-found`, `busy` when it never stood still."""

    def check() -> Report:
        return _read(lambda: _run(run_id, tenant_id), f"run:{run_id}", lambda fault: Report(run_id, 0, 0, [fault]))

    return _steady(check, _length("run_head", "run_id", run_id))


R = TypeVar("R", "Report", "TenantReport")


def _steady(check: Callable[[], R], length: Callable[[], int]) -> R:
    """Rows are read after entries: faults count only when nothing was written meanwhile."""
    report = check()
    for _ in range(READINGS):
        if report.intact:
            return report
        before = length()
        report = check()
        if length() == before:
            return report
    raise LedgerError("busy", "the record kept moving while it was checked", "Ask again.")


def _read(check: Callable[[], R], name: str, broken: Callable[[Fault], R]) -> R:
    """What a check found. A record so broken that reading it fails has a fault too; trouble with the database is none."""
    try:
        return check()
    except (LedgerError, DatabaseError):
        raise
    except Exception as fault:
        _log.warning("verification_failed", stream=name, error=type(fault).__name__)
        return broken(Fault(None, name, "unreadable", f"{name} can't be checked: {type(fault).__name__}"))


def _length(record: str, key: str, stream: UUID) -> Callable[[], int]:
    def length() -> int:
        head = facts.read(head=Part(record, f"t.{key} = %s", (stream,))).row("head")
        return 0 if head is None else int(head["head_seq"])

    return length


def _run(run_id: UUID, tenant_id: UUID | None) -> Report:
    read = facts.read(
        head=Part("run_head", "t.run_id = %s", (run_id,)),
        run=Part("run", "t.id = %s", (run_id,)),
        entries=Part("journal_entry", "t.stream_id = %s", (run_id,), many=True, order="t.seq"),
    )
    head = read.row("head")
    if head is None or (tenant_id is not None and head["tenant_id"] != tenant_id):
        raise LedgerError("not-found", "there is no such run here", "Check the id.")
    entries = [StoredEntry(row["seq"], row["content"], row["digest"]) for row in read.many("entries")]
    faults, digest, seq = journal.check_chain(f"run:{run_id}", entries)
    if (digest, seq) != (head["head_digest"], head["head_seq"]):
        faults.append(
            Fault(
                seq,
                f"run_head:{run_id}",
                "head-differs",
                f"the head names entry {head['head_seq']}; the chain ends at {seq} or differs",
            )
        )
    faults += _copies(read.many("entries")) + check_moves(entries, machine)
    faults += contents.said(run_id, read.row("run"))
    told = journal.replay(entries)
    faults += _unsalted(f"run_head:{run_id}", head, told)
    rows, row_faults = _rows(run_id, told, head["salt"])
    return Report(
        run_id,
        len(entries),
        rows,
        faults + row_faults + contents.checkpoints(run_id, told, head["salt"]) + contents.bodies(told),
    )


@dataclass(frozen=True, slots=True)
class TenantReport:
    """The same for a tenant's administration (policies, targets, agents, keys, workflow versions) and the events it received."""

    tenant_id: UUID
    entries: int
    rows: int
    faults: list[Fault]

    @property
    def intact(self) -> bool:
        return not self.faults


def tenant(tenant_id: UUID) -> TenantReport:
    """Recompute a tenant's administration and events. Nothing is repaired. Raises LedgerError `not-found`, `busy`."""
    report, after = administration(tenant_id), 0
    while True:
        received = events(tenant_id, after)
        report = TenantReport(
            tenant_id,
            report.entries + received.count,
            report.rows + received.count,
            report.faults + received.faults,
        )
        if received.next is None:
            return report
        after = received.next


def administration(tenant_id: UUID) -> TenantReport:
    """The same without the events, which may be many."""

    def check() -> TenantReport:
        name = f"tenant:{tenant_id}"
        return _read(lambda: _administration(tenant_id), name, lambda fault: TenantReport(tenant_id, 0, 0, [fault]))

    return _steady(check, _length("tenant_head", "tenant_id", tenant_id))


def _administration(tenant_id: UUID) -> TenantReport:
    read = facts.read(
        head=Part("tenant_head", "t.tenant_id = %s", (tenant_id,)),
        entries=Part("journal_entry", "t.stream_id = %s", (tenant_id,), many=True, order="t.seq"),
    )
    head = read.row("head")
    if head is None:
        raise LedgerError("not-found", "there is no such tenant", "Check its name.")
    entries = [StoredEntry(row["seq"], row["content"], row["digest"]) for row in read.many("entries")]
    faults, digest, seq = journal.check_chain(f"tenant:{tenant_id}", entries)
    if (digest, seq) != (head["head_digest"], head["head_seq"]):
        faults.append(Fault(seq, f"tenant_head:{tenant_id}", "head-differs", f"the chain ends at {seq} or differs"))
    faults += _copies(read.many("entries")) + check_moves(entries, machine)
    own = [table for table in tables().values() if table.record not in _SKIPPED and not belongs_to_runs(table)]
    rows = {table.record: _of_tenant(table, tenant_id) for table in own}
    told = journal.replay(entries)
    faults += _unsalted(f"tenant_head:{tenant_id}", head, told)
    count, row_faults = _told(own, rows, told, head["salt"])
    return TenantReport(tenant_id, len(entries), count, faults + row_faults)


def _of_tenant(table: Table, tenant_id: UUID) -> Iterable[Row]:
    return facts.read(rows=Part(table.record, "t.tenant_id = %s", (tenant_id,), many=True)).many("rows")


def _told(
    own: Iterable[Table], rows: Mapping[str, Iterable[Row]], told: dict[str, dict[str, Any]], salt: bytes | None
) -> tuple[int, list[Fault]]:
    """Rows of these tables against what the journal says of them, and what it says against what is there."""
    count, faults = 0, []
    for table in own:
        for row in rows[table.record]:
            count += 1
            name = f"{table.record}:{row[table.key]}"
            faults += compare(table, name, row, told.pop(name, None), salt)
    known = {table.record for table in own}
    for name in told:
        if name.partition(":")[0] in known:
            faults.append(Fault(None, name, "row-missing", f"the journal speaks of {name}, which isn't there"))
    return count, faults


@dataclass(frozen=True, slots=True)
class Events:
    """A batch of a tenant's events: how many, what is wrong with them, and after which entry the next batch begins; None after the last."""

    count: int
    faults: list[Fault]
    next: int | None


def events(tenant_id: UUID, after: int = 0, limit: int = 500) -> Events:
    """A batch of a tenant's events. Each is a stream of one entry: its hash, its row, and the bytes of its data. The last batch also finds events
    that stand in no entry."""
    where = "t.tenant_id = %s AND t.kind = 'event' AND t.id > %s"
    part = Part("journal_entry", where, (tenant_id, after), many=True, order="t.id", limit=limit)
    found = facts.read(entries=part).many("entries")
    faults = [fault for entry in found for fault in _event(entry)]
    if len(found) == limit:
        return Events(limit, faults, found[-1]["id"])
    for row in facts.read(events=Part("event", _UNTOLD, (tenant_id,), many=True)).many("events"):
        faults.append(Fault(None, f"event:{row['id']}", "row-unknown", f"event {row['id']} stands in no entry"))
    return Events(len(found), faults, None)


_UNTOLD = (
    "t.tenant_id = %s AND NOT EXISTS (SELECT 1 FROM ledger_journal_entry j"
    " WHERE j.stream_id = t.id AND j.tenant_id = t.tenant_id AND j.kind = 'event')"
)


def _event(entry: Row) -> list[Fault]:
    stream = entry["stream_id"]
    stored = [StoredEntry(entry["seq"], entry["content"], entry["digest"])]
    faults, _, _ = journal.check_chain(f"event:{stream}", stored)
    rows = facts.read(rows=Part("event", "t.id = %s", (stream,), many=True)).many("rows")
    told = journal.replay(stored)
    for row in rows:
        faults += _unsalted(f"event:{stream}", row, told)
    salt = rows[0]["salt"] if rows else None
    faults += _copies([entry]) + contents.bodies(told)
    return faults + _told([tables()["event"]], {"event": rows}, told, salt)[1]


def _unsalted(name: str, holder: Row, told: Mapping[str, Mapping[str, Any]]) -> list[Fault]:
    """A salt is gone only with an entry that says since when: otherwise nobody could tell an erasure from what hides a forged text."""
    if holder["salt"] is not None or told.get(name, {}).get("erased_at") is not None:
        return []
    return [Fault(None, name, "erasure-unknown", f"the salt of {name} was erased past the journal")]


def _copies(rows: Iterable[Row]) -> list[Fault]:
    """The search columns of an entry must say what its bytes say."""
    faults = []
    for row in rows:
        document = journal.parsed(row["content"])
        if document is None:
            faults.append(Fault(row["seq"], None, "unreadable", f"entry {row['seq']} isn't a document"))
            continue
        stands = {column: plain(row[column]) for column in ("at", "actor", "verb")}
        stands |= {"stream": f"{row['kind']}:{row['stream_id']}", "tenant": str(row["tenant_id"])}
        for column, value in stands.items():
            if value != document.get(column):
                faults.append(
                    Fault(
                        row["seq"],
                        None,
                        "copy-differs",
                        f"entry {row['seq']}: the column {column} differs from its bytes",
                    )
                )
    return faults


def _rows(run_id: UUID, replayed: Mapping[str, dict[str, Any]], salt: bytes | None) -> tuple[int, list[Fault]]:
    """Every row of the run must be what the journal says, and every row that the journal speaks of must exist."""
    told = dict(replayed)
    faults: list[Fault] = []
    count = 0
    for table in tables().values():
        if table.record in _SKIPPED or not belongs_to_runs(table):
            continue
        for row in rows_of(table, run_id):
            count += 1
            name = f"{table.record}:{row[table.key]}"
            faults += compare(table, name, row, told.pop(name, None), salt)
    for name in told:
        if name.partition(":")[0] not in _SKIPPED:
            faults.append(Fault(None, name, "row-missing", f"the journal speaks of {name}, which isn't there"))
    return count, faults


def belongs_to_runs(table: Table) -> bool:
    """Is each row of this table one run's?"""
    return table.record == "run" or "run_id" in table.columns


def rows_of(table: Table, run_id: UUID) -> Sequence[Row]:
    """A run's rows of such a table."""
    column = "id" if table.record == "run" else "run_id"
    return facts.read(rows=Part(table.record, f"t.{column} = %s", (run_id,), many=True)).many("rows")


def compare(table: Table, name: str, row: Row, told: Mapping[str, Any] | None, salt: bytes | None) -> list[Fault]:
    """What is committed is compared through its commitment, and no more once the salt is erased."""
    if told is None:
        return [Fault(None, name, "row-unknown", f"{name} stands in no entry: it was written past the journal")]
    differing = sorted(
        column
        for column in table.journalled - _HEAD_OWN - (table.later - told.keys())
        if not (salt is None and column in table.committed)
        and _journalled(table, column, row[column], salt)
        != told.get(column, _journalled(table, column, table.columns[column].default, salt))
    )
    if not differing:
        return []
    shown = [_apart(table, column, row[column], told, salt) for column in differing[:MOST_COLUMNS]]
    more = f", and {len(differing) - MOST_COLUMNS} more" if len(differing) > MOST_COLUMNS else ""
    return [Fault(None, name, "row-differs", f"{name} isn't what the journal says: {'; '.join(shown)}{more}")]


def _apart(table: Table, column: str, value: Any, told: Mapping[str, Any], salt: bytes | None) -> str:
    """A column with what the journal says of it and what stands in the row: of a committed text, and of bytes, their digests' first digits alone."""
    digest = column in table.committed or isinstance(value, bytes | memoryview)
    default = _journalled(table, column, table.columns[column].default, salt)
    was, now = told.get(column, default), _journalled(table, column, value, salt)
    return f"its {column} is {_brief(now, digest)}, and was written as {_brief(was, digest)}"


def _brief(value: Any, digest: bool) -> str:
    if value is None or value == "":
        return "empty"
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    if digest:
        return f"digest {text[:12]}…"
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


def _journalled(table: Table, column: str, value: Any, salt: bytes | None) -> Any:
    stands = plain(value)
    return journal.committed(stands, salt) if column in table.committed else stands


_HEAD_OWN = frozenset({"head_seq", "head_digest"})
