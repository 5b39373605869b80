"""Events from outside: CloudEvents 1.0, each a stream of its own with one entry; deliveries are entries of the runs that they wake.

Both sides of a meeting commit first and look afterwards: an event is stored, then waits are looked for; a wait is opened, then events are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from django.db import connection

from ledger.domain import waits
from ledger.domain.canonical import commit
from ledger.domain.change import Change, Kind, Stream
from ledger.domain.drafts import Draft
from ledger.domain.errors import LedgerError
from ledger.domain.identity import ALL, Caller, Scope
from ledger.domain.views import RunView
from ledger.domain.waits import EVENT_KEPT_DAYS, MemberState, Outcome
from ledger.services import deadlines, facts, ports, writer
from ledger.services.conflicts import Conflict
from ledger.services.contracts import writes
from ledger.services.drafts import run_draft
from ledger.services.facts import Part, Row
from ledger.services.ids import minter, new_body, new_salt
from ledger.services.views import run_view, run_views

SHAPE = (
    "m.tenant_id = e.tenant_id AND m.event_type = e.type AND m.kind = 'event'"
    " AND m.event_source IN ('', e.source) AND m.event_subject IN ('', e.subject) AND m.since < e.received_at"
)
"""A wait member `m` has the shape of an event `e`."""

BY_SUBJECT = ("m.event_subject = e.subject", "m.event_subject = '' AND e.subject <> ''")
"""The two ways in which subjects meet, each for a part of a UNION: joined by OR no index on a subject is searched, and an event reads every wait for
its type, or a wait every event."""

NOT_CONSUMED = "NOT EXISTS (SELECT 1 FROM ledger_event_delivery d WHERE d.event_id = e.id AND d.run_id = m.run_id)"
LOOKED_AT = 100
_WIDE = "t.event_subject = '', t.event_source = ''"
"""Narrow members first: an event about order 17 that met a member for any order would leave the one for order 17 waiting for another like it."""


def meets() -> str:
    """An event `e` may meet a wait member `m`: it has its shape, no agent that has held the run emitted it (where the run's version doesn't allow
    that), and the key that emitted it is for the run's workflow type. All of it is fixed when both are written, so either side finds the same."""
    workflow = "(SELECT w.name FROM ledger_workflow_type w JOIN ledger_run_head h ON h.workflow_id = w.id WHERE h.run_id = m.run_id)"
    if connection.vendor == "postgresql":
        own, reached = "m.not_from ? k.agent_id::text", f"(k.workflows ? '{ALL}' OR k.workflows ? {workflow})"
    else:
        own = "EXISTS (SELECT 1 FROM json_each(m.not_from) j WHERE replace(j.value, '-', '') = k.agent_id)"
        reached = f"EXISTS (SELECT 1 FROM json_each(k.workflows) j WHERE j.value IN ('{ALL}', {workflow}))"
    apart = f"SELECT 1 FROM ledger_api_key k WHERE k.id = e.key_id AND ({own} OR NOT {reached})"
    return f"{SHAPE} AND NOT EXISTS ({apart})"


class Status(StrEnum):
    """What became of a received event."""

    MATCHED = "matched"
    KEPT = "kept"
    DUPLICATE = "duplicate"
    LATE = "late"


@dataclass(frozen=True, slots=True)
class EventSpec:
    """A CloudEvent as parsed: `data` in canonical bytes of `media`."""

    source: str
    id: str
    type: str
    subject: str = ""
    occurred_at: datetime | None = None
    data: bytes = b"null"
    media: str = "application/json"


@dataclass(frozen=True, slots=True)
class Received:
    """`deliveries` is how many runs took the event just now."""

    status: Status
    deliveries: int
    event_id: UUID


@writes(
    moves="Inserts an event on a stream of its own; then delivers it, each delivery a transaction of its run.",
    twice="The same content is a duplicate and delivers only what was missed; other content is refused: `event-differs`.",
    dies="The event is stored and not delivered everywhere: the sweep joins it with the waits it fits.",
)
def receive(caller: Caller, spec: EventSpec) -> Received:
    """Store an event, then deliver it to every open wait that it fits.

    The same identity (source, id) with the same content is a duplicate and delivers nothing that wasn't missed.
    Late is what nobody takes and a wait for its very subject would have taken that closed within the time for which events are kept. Kept is also
    what only waits of its emitter's own runs, or of types that its key isn't for, would take.
    Raises LedgerError `scope-missing`, `invalid`, `event-not-allowed`, `event-differs`.
    """
    caller.needs(Scope.EVENTS_EMIT)
    _check(spec)
    caller.needs_emit(spec.type, spec.source)
    event_id, created, now = _store(caller, spec)
    delivered, late = _look(event_id, now)
    if not created:
        return Received(Status.DUPLICATE, delivered, event_id)
    if delivered:
        return Received(Status.MATCHED, delivered, event_id)
    return Received(Status.LATE if late else Status.KEPT, 0, event_id)


def _look(event_id: UUID, now: datetime) -> tuple[int, bool]:
    """Deliver a stored event to every run that waits for it. Answers how many took it, and whether it came after a wait for it had closed.

    A wait for any subject isn't one of those: the event may be about something that this wait never was for.
    """
    open_ones = f"({_fitting(NOT_CONSUMED)} ORDER BY id LIMIT {LOOKED_AT}) f"
    both = (event_id,) * len(BY_SUBJECT)
    closed = Part("wait_member", f"t.id = ({_just_closed()})", (event_id, now - timedelta(days=EVENT_KEPT_DAYS)))
    read, views = run_views(
        f"SELECT f.run_id FROM {open_ones}",
        both,
        fitting=Part(
            "wait_member", f"t.id IN (SELECT f.id FROM {open_ones})", both, many=True, order=f"{_WIDE}, t.ordinal"
        ),
        closed=closed,
    )
    members: dict[UUID, list[UUID]] = {}
    for row in read.many("fitting"):
        members.setdefault(row["run_id"], []).append(row["id"])
    taken = sum(_deliver_once(run_id, fitting, event_id, views.get(run_id)) for run_id, fitting in members.items())
    if members and not taken:
        read = facts.read(closed=closed)
    return taken, read.row("closed") is not None


def _fitting(and_: str) -> str:
    """The open members that a stored event fits, with their runs: SQL with the event's id for each part."""
    return " UNION ALL ".join(
        f"SELECT m.id AS id, m.run_id AS run_id FROM ledger_event e JOIN ledger_wait_member m ON {meets()} AND {subject}"
        f" WHERE e.id = %s AND m.state = 'open' AND {and_}"
        for subject in BY_SUBJECT
    )


def _just_closed() -> str:
    """A member for a stored event's own subject whose wait closed since some time: SQL with the event's id and that time."""
    return (
        f"SELECT m.id FROM ledger_event e JOIN ledger_wait_member m ON {meets()} AND {BY_SUBJECT[0]}"
        " JOIN ledger_wait_set s ON s.id = m.wait_id"
        " WHERE e.id = %s AND m.state = 'closed' AND s.closed_at > %s LIMIT 1"
    )


def _deliver_once(run_id: UUID, members: Sequence[UUID], event_id: UUID, view: RunView | None) -> bool:
    """A run takes an event once: by the first of its members that is still open."""
    for member_id in members:
        if deliver(run_id, member_id, event_id, view):
            return True
        view = None
    return False


@writes(
    moves=(
        "Inserts a delivery; member open → met; where that closes the set: set open → satisfied, run waiting → waking. "
        "Where time has closed the set before: what `expire_due` moves, and no delivery."
    ),
    twice="Answers False: a run takes an event once, by a unique key.",
    dies="The run's wake is a row: the sweep takes it.",
)
def deliver(run_id: UUID, member_id: UUID, event_id: UUID, view: RunView | None = None) -> bool:
    """One event meets one wait member: the delivery, the member and what it wakes in one transaction of the run.

    `view` is the run as the caller has read it already. False when the wait has gone meanwhile or its time has come, on which is acted then, or
    the run has the event already: the event stays for another wait.
    """

    def rule(view: RunView) -> tuple[Change | None, bool]:
        member = next((m for m in view.members if m.id == member_id and m.state is MemberState.OPEN), None)
        if member is None:
            return None, False
        if (closing := deadlines.overdue(view)) is not None:
            return closing, False
        draft = run_draft(view, "system:events", "event.deliver")
        draft.insert(
            "event_delivery",
            id=draft.mint(),
            run_id=view.run.id,
            event_id=event_id,
            member_id=member_id,
            delivered_at=draft.at,
        )
        waits.meet(
            draft,
            view,
            member,
            Outcome.RECEIVED,
            event_id,
            withdraw=lambda effects, cause: ports.approvals().withdraw(draft, view, effects, cause),
        )
        return draft.change(), True

    try:
        return writer.settle(lambda: run_view(run_id), rule, first=view)[0]
    except Conflict as found:
        if found.constraint in {"delivery_unique", "event_consumed_once"}:
            return False
        raise


def early_parts(run_id: UUID) -> dict[str, Part]:
    """The open member of a run for which an event is kept, the narrowest and then the first, and the oldest such event."""
    meetings = " UNION ALL ".join(
        "SELECT m.id AS member_id, m.ordinal, m.event_subject, m.event_source, e.id AS event_id, e.received_at"
        f" FROM ledger_wait_member m JOIN ledger_event e ON {meets()} AND {subject} WHERE m.run_id = %s AND m.state = 'open'"
        f" AND e.keep_until > {facts.clock()} AND {NOT_CONSUMED}"
        for subject in BY_SUBJECT
    )
    first = f"FROM ({meetings}) f ORDER BY {_WIDE.replace('t.', 'f.')}, f.ordinal, f.received_at, f.event_id LIMIT 1"
    return {
        "early_member": Part("wait_member", f"t.id = (SELECT f.member_id {first})", (run_id,) * 2),
        "early_event": Part("event", f"t.id = (SELECT f.event_id {first})", (run_id,) * 2),
    }


def _check(spec: EventSpec) -> None:
    for name, value in (("source", spec.source), ("id", spec.id), ("type", spec.type)):
        if not value or len(value) > 200:
            raise LedgerError("invalid", f"the event's {name} has to have 1 to 200 characters", f"Send the {name}.")
    if len(spec.subject) > 200:
        raise LedgerError("invalid", "the event's subject is too long", "Use at most 200 characters.")


def _store(caller: Caller, spec: EventSpec) -> tuple[UUID, bool, datetime]:
    """(the event's row id, whether this call made it, the record's clock)."""
    known, now = _known(caller, spec)
    if known is not None:
        return known, False, now
    mint = minter(now)
    event_id = mint()
    body = new_body(spec.data, now, spec.media)
    salt = new_salt()
    draft = Draft(
        stream=Stream(Kind.EVENT, event_id, caller.tenant_id, salt),
        expect_seq=0,
        at=now,
        actor=caller.actor,
        verb="event.receive",
        mint=mint,
    )
    draft.body(body)
    draft.insert(
        "event",
        id=event_id,
        source=spec.source,
        event_id=spec.id,
        type=spec.type,
        subject=spec.subject,
        occurred_at=spec.occurred_at,
        body_id=body.id,
        commitment=body.commitment,
        key_id=caller.key_id,
        received_at=now,
        keep_until=now + timedelta(days=EVENT_KEPT_DAYS),
        salt=salt,
    )
    try:
        writer.apply(draft.change())
    except Conflict as found:
        if found.constraint != "event_unique":
            raise
        twin, _ = _known(caller, spec)
        if twin is None:
            raise
        return twin, False, now
    return event_id, True, now


def _known(caller: Caller, spec: EventSpec) -> tuple[UUID | None, datetime]:
    """The event of this identity, if there is one, and the record's clock. Raises LedgerError `event-differs`."""
    identity = (caller.tenant_id, spec.source, spec.id)
    read = facts.read(
        event=Part("event", "t.tenant_id = %s AND t.source = %s AND t.event_id = %s", identity),
        body=Part(
            "body",
            "t.id = (SELECT e.body_id FROM ledger_event e WHERE e.tenant_id = %s AND e.source = %s AND e.event_id = %s)",
            identity,
        ),
    )
    event = read.row("event")
    if event is None:
        return None, read.now
    if not _same(event, read.row("body"), spec):
        raise LedgerError(
            "event-differs",
            "an event with this source and id was received with other content",
            "Give each event an id of its own; repeat one only unchanged.",
            event=str(event["id"]),
        )
    return event["id"], read.now


def _same(event: Row, body: Row | None, spec: EventSpec) -> bool:
    if (event["type"], event["subject"], event["occurred_at"]) != (spec.type, spec.subject, spec.occurred_at):
        return False
    if body is None or body["salt"] is None:
        return True
    told: bytes = body["commitment"]
    return commit(body["salt"], spec.data) == told and body["media"] == spec.media
