"""Claim, heartbeat, release, lapse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from uuid import UUID

from django.db import connection, transaction

from ledger.domain import leases as rules
from ledger.domain.change import Change
from ledger.domain.errors import LedgerError
from ledger.domain.identity import Caller, Scope
from ledger.domain.leases import Candidate, Claimer, Offer
from ledger.domain.runs import (
    ClearanceRow,
    Directive,
    Fence,
    Head,
    Intent,
    LeaseRow,
    Status,
    check_holder,
)
from ledger.domain.views import RunView
from ledger.services import facts, packets, workers, writer
from ledger.services.contracts import writes
from ledger.services.drafts import head_draft, run_draft
from ledger.services.facts import Facts, Part
from ledger.services.packets import Packet
from ledger.services.views import run_view, view_for

LOOKED_AT = 20
MISSES = 4
"""Tries at what was read: when others were faster so often, what is left of it is stale too."""
READINGS = 8


@writes(
    moves=(
        "Run ready → running under a new fence, clearance live → used, the lease begins. Past its time: clearance "
        "live → stale, run ready → waking."
    ),
    twice="Takes other runs, or none: these are no longer ready.",
    dies="Nobody works under the lease: it lapses, and the run wakes.",
)
def claim(caller: Caller, offer: Offer) -> list[Packet]:
    """Take up to `offer.limit` ready runs that one of the offered versions may go on with. Answers their resume packets, maybe none.

    Three round trips for any number of runs: candidates, all claims, packets. A run that another claimer takes at the same time is in that
    one's answer only; where runs are left, the next ones are tried. Raises LedgerError `scope-missing`, `workflow-not-allowed`.
    """
    caller.needs(Scope.RUNS_WORK)
    if caller.key_id is None or not offer.versions:
        raise LedgerError("invalid", "an offer names a key and at least one workflow with versions", "Send offers.")
    for name in offer.versions:
        caller.needs_workflow(name)
    workers.note(caller, offer)
    by = Claimer(offer.worker_id, caller.key_id, caller.agent_id)
    taken: list[UUID] = []
    for _ in range(READINGS):
        read = _candidates(caller, offer)
        left = _spread(read, offer)
        for _ in range(MISSES if left else 0):
            wanted = offer.limit - len(taken)
            taken += _take(by, caller, offer, read, left[:wanted]) if wanted else []
            left = left[wanted:]
        if taken or not read.many("heads"):
            break
    return packets.of(caller.tenant_id, taken) if taken else []


def _candidates(caller: Caller, offer: Offer) -> Facts:
    """Ready runs of the offered workflows, longest ready first, whose clearance accepts an offered version."""
    names = list(offer.versions)
    # By workflow: what only one workflow's offer fits must not fill the places of another's runs.
    each = " UNION ALL ".join(
        f"SELECT * FROM ({_longest_ready(len(versions))}) w" for versions in offer.versions.values()
    )
    ready = f"SELECT f.run_id FROM ({each}) f ORDER BY f.moved_at LIMIT {LOOKED_AT}"
    offered = offer.versions.items()
    params = tuple(chain.from_iterable((caller.tenant_id, name, *versions) for name, versions in offered))
    return facts.read(
        heads=Part("run_head", f"t.run_id IN ({ready})", params, many=True, order="t.moved_at"),
        clearances=Part("clearance", f"t.state = 'live' AND t.run_id IN ({ready})", params, many=True),
        leases=Part("lease", f"t.run_id IN ({ready})", params, many=True),
        workflows=Part("workflow_type", f"t.id IN ({_workflows(len(names))})", (caller.tenant_id, *names), many=True),
    )


def _workflows(count: int) -> str:
    return f"SELECT w.id FROM ledger_workflow_type w WHERE w.tenant_id = %s AND w.name IN ({', '.join(['%s'] * count)})"


def _longest_ready(versions: int) -> str:
    """The first of one workflow's ready runs, in the order of the index that holds them: what else is ready isn't looked at."""
    return (
        "SELECT h.run_id, h.moved_at FROM ledger_run_head h JOIN ledger_clearance c ON c.id = h.clearance_id"
        f" WHERE h.status = 'ready' AND h.workflow_id = ({_workflows(1)}) AND {_versions_fit(versions)}"
        f" ORDER BY h.moved_at LIMIT {LOOKED_AT}"
    )


def _versions_fit(count: int) -> str:
    each = ", ".join(["%s"] * count)
    if connection.vendor == "postgresql":
        # By itself `?|` is taken to hold for one row in a thousand, and all ready runs would be read and sorted.
        return f"CASE WHEN c.versions ?| ARRAY[{each}]::text[] THEN TRUE ELSE FALSE END"
    return f"EXISTS (SELECT 1 FROM json_each(c.versions) j WHERE j.value IN ({each}))"


def _spread(read: Facts, offer: Offer) -> list[Candidate]:
    """Candidates in an order of the worker's own, so that workers who ask at once don't all try the same one first."""
    names = {row["id"]: row["name"] for row in read.many("workflows")}
    clearances = {row["run_id"]: facts.load(ClearanceRow, row) for row in read.many("clearances")}
    leases = {row["run_id"]: facts.load(LeaseRow, row) for row in read.many("leases")}
    found = [
        Candidate(names[head.workflow_id], head, clearances[head.run_id], leases.get(head.run_id))
        for head in read.all("heads", Head)
        if head.run_id in clearances
    ]
    if not found:
        return []
    turn = offer.worker_id.int % min(len(found), max(1, LOOKED_AT // 4))
    return found[turn:] + found[:turn]


def _take(by: Claimer, caller: Caller, offer: Offer, read: Facts, candidates: Sequence[Candidate]) -> list[UUID]:
    """The runs among these that this worker now holds. One of several claimers wins a run; the others find its record moved."""
    changes: list[Change] = []
    for candidate in candidates:
        version = rules.fitting_version(candidate, offer)
        if version is None:
            continue
        if candidate.clearance.valid_until <= read.now:
            _send_back(candidate.head.run_id, caller.tenant_id)
            continue
        draft = head_draft(candidate.head, read.now, caller.actor, "run.claim")
        rules.claim(draft, candidate, version, by, offer.seconds)
        changes.append(draft.change())
    written = writer.apply_each(changes)
    return [change.stream.id for change, done in zip(changes, written, strict=True) if done is not None]


def _send_back(run_id: UUID, tenant_id: UUID) -> None:
    """A clearance past its time sends the run back to be woken."""

    def rule(view: RunView) -> tuple[Change | None, None]:
        if view.head.status is not Status.READY or view.clearance is None or view.clearance.valid_until > view.now:
            return None, None
        draft = run_draft(view, "system:claim", "clearance.stale")
        rules.refuse_stale_clearance(draft, view)
        return draft.change(), None

    writer.settle(lambda: run_view(run_id, tenant_id), rule)


@dataclass(frozen=True, slots=True)
class Beat:
    """A heartbeat's answer for one run."""

    run_id: UUID
    directive: Directive
    reason: str
    lease_expires_at: datetime | None


@writes(
    moves="A lease's end, forwards. No entry.",
    twice="Renews once more.",
    dies="Every lease that was renewed is renewed.",
)
def heartbeat(caller: Caller, worker_id: UUID, held: Sequence[tuple[UUID, Fence]]) -> list[Beat]:
    """Renew the worker's leases, all in one round trip, and say what each run's holder should do. No entry is written."""
    caller.needs(Scope.RUNS_WORK)
    beats = _beat_postgres if connection.vendor == "postgresql" else _beat_sqlite
    renewed = {row[0]: row for row in beats(caller, worker_id, held)}
    return [_answer(run_id, renewed.get(run_id)) for run_id, _ in held]


def _answer(run_id: UUID, row: tuple[UUID, str, str, datetime] | None) -> Beat:
    if row is None:
        return Beat(run_id, Directive.STOP, "taken_over", None)
    _, status, intent, expires_at = row
    if Intent(intent) is not Intent.NONE:
        return Beat(run_id, Directive.STOP_AFTER_CALL, f"intent_{intent}", expires_at)
    if Status(status) is not Status.RUNNING:
        return Beat(run_id, Directive.STOP, "not_running", expires_at)
    return Beat(run_id, Directive.GO_ON, "", expires_at)


Renewed = list[tuple[UUID, str, str, datetime]]


def _reached(caller: Caller, head: str) -> tuple[str, tuple[str, ...]]:
    """Where a head is of a workflow type that the caller's key is for, in SQL with its parameters."""
    if not caller.narrowed:
        return "TRUE", ()
    names = tuple(sorted(caller.workflows)) or ("",)
    each = ", ".join(["%s"] * len(names))
    return f"{head}.workflow_id IN (SELECT w.id FROM ledger_workflow_type w WHERE w.name IN ({each}))", names


_OWN_KEYS = "(SELECT k.id FROM ledger_api_key k WHERE k.agent_id = %s)"
"""Worker ids and fences stand in journals: only the agent that claimed keeps its leases."""


def _beat_postgres(caller: Caller, worker_id: UUID, held: Sequence[tuple[UUID, Fence]]) -> Renewed:
    reached, names = _reached(caller, "h")
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE ledger_lease l SET beaten_at = ledger_clock(), expires_at = ledger_clock() + make_interval(secs => l.seconds)"
            " FROM ledger_run_head h, unnest(%s::uuid[], %s::int[], %s::int[]) AS u(run_id, epoch, count)"
            " WHERE l.run_id = u.run_id AND h.run_id = u.run_id AND l.tenant_id = %s AND l.worker_id = %s AND l.active"
            " AND l.fence_epoch = u.epoch AND l.fence_count = u.count"
            f" AND l.key_id IN {_OWN_KEYS} AND {reached}"
            " RETURNING l.run_id, h.status, h.intent, l.expires_at",
            [
                [run for run, _ in held],
                [fence.epoch for _, fence in held],
                [fence.count for _, fence in held],
                caller.tenant_id,
                worker_id,
                caller.agent_id,
                *names,
            ],
        )
        return list(cursor.fetchall())


def _beat_sqlite(caller: Caller, worker_id: UUID, held: Sequence[tuple[UUID, Fence]]) -> Renewed:
    renewed: Renewed = []
    reached, names = _reached(caller, "t")
    with transaction.atomic(), connection.cursor() as cursor:
        for run_id, fence in held:
            read = facts.read(
                lease=Part(
                    "lease",
                    f"t.run_id = %s AND t.tenant_id = %s AND t.active AND t.key_id IN {_OWN_KEYS}",
                    (run_id, caller.tenant_id, caller.agent_id),
                ),
                head=Part("run_head", f"t.run_id = %s AND {reached}", (run_id, *names)),
            )
            lease, head = read.one("lease", LeaseRow), read.one("head", Head)
            if lease is None or head is None or lease.worker_id != worker_id or head.fence != fence:
                continue
            expires_at = read.now + timedelta(seconds=lease.seconds)
            cursor.execute(
                "UPDATE ledger_lease SET beaten_at = %s, expires_at = %s WHERE run_id = %s",
                [facts.to_sqlite(read.now), facts.to_sqlite(expires_at), run_id.hex],
            )
            renewed.append((run_id, head.status, head.intent, expires_at))
    return renewed


@writes(
    moves="The end of a lease that would last longer than leases of its length do, to that length from now. No entry.",
    twice="Nothing is left that is too long.",
    dies="Each lease is shortened by itself; what is left is shortened when somebody looks again.",
)
def shorten() -> int:
    """Count anew, from now, leases whose end was written by a clock that has gone back since: a dead holder's would last as long as it went back.

    A living holder's next heartbeat does the same. Answers how many there were.
    """
    read = facts.read(leases=Part("lease", f"t.active AND t.expires_at > {facts.clock()}", many=True))
    too_long = [
        (row["run_id"], row["expires_at"], ends)
        for row in read.many("leases")
        if row["expires_at"] > (ends := read.now + timedelta(seconds=row["seconds"]))
    ]
    with connection.cursor() as cursor:
        for run_id, was, ends in too_long:
            given = (ends, run_id, was)
            cursor.execute(
                "UPDATE ledger_lease SET expires_at = %s WHERE run_id = %s AND active AND expires_at = %s",
                given if connection.vendor == "postgresql" else [facts.to_sqlite(value) for value in given],
            )
    return len(too_long)


@writes(
    moves="Run running → waking, or blocked after ten claims without a commit; the fence changes, lease and clearance end, a wake is queued.",
    twice="The second is refused: `stale-fence`.",
    dies="The wake is a row: the sweep takes it.",
)
def release(caller: Caller, run_id: UUID, fence: Fence) -> None:
    """Give the run back. Raises LedgerError `stale-fence`, `forbidden`, `wrong-state`, `permit-out`."""
    caller.needs(Scope.RUNS_WORK)

    def rule(view: RunView) -> tuple[Change | None, None]:
        draft = run_draft(view, caller.actor, "run.release")
        check_holder(view, caller.agent_id)
        rules.release(draft, view, fence)
        return draft.change(), None

    writer.settle(lambda: view_for(caller, run_id), rule)


@writes(
    moves=(
        "Run running → waking, or blocked after three claims without a commit; the fence changes, lease and "
        "clearance end; effects in_flight → unknown, but for accepted ones."
    ),
    twice="Nothing is left to lapse: answers False.",
    dies="The wake and the unknown effects are rows that are due: the sweep takes them.",
)
def lapse(run_id: UUID) -> bool:
    """End an ownership whose lease ran out. False when there was nothing to end: two reapers make one lapse."""

    def rule(view: RunView) -> tuple[Change | None, bool]:
        draft = run_draft(view, "system:sweep", "lease.lapse")
        lapsed = rules.lapse(draft, view)
        return (draft.change(), True) if lapsed else (None, False)

    return writer.settle(lambda: run_view(run_id), rule)[0]


def due(limit: int) -> list[UUID]:
    """Runs whose lease has run out, longest first."""
    read = facts.read(
        leases=Part(
            "lease", f"t.active AND t.expires_at <= {facts.clock()}", many=True, order="t.expires_at", limit=limit
        )
    )
    return [row["run_id"] for row in read.many("leases")]
