"""Runs by what people remember of them: health, owner, an attribute, words. Each search has an index, or a bound that its callers tell."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import CharField, Q, QuerySet
from django.db.models.expressions import RawSQL
from django.db.models.functions import Cast, Right

from ledger.domain.errors import LedgerError
from ledger.domain.handoffs import OPEN_HANDOFFS
from ledger.domain.health import SWEPT_AFTER, UNCLAIMED_AFTER, Health
from ledger.domain.runs import ENDED, Status
from ledger.domain.verifications import Reach
from ledger.domain.waits import SetState
from ledger.domain.wakes import WakeState
from ledger.models import (
    Agent,
    Effect,
    Handoff,
    JournalEntry,
    Lease,
    Run,
    RunHead,
    User,
    VerifiedChain,
    WaitSet,
    Wake,
    Worker,
)
from ledger.services import facts
from ledger.services.ports import approvals

LOOKED_THROUGH = 5_000
"""Parts of words are looked for in so many runs, the newest; whole values among all."""
MOST = 1_001
"""Runs that one kind of finding answers at most: more than any page counts."""
NAMESAKES = 10
"""People of one name whose acts are looked at."""
ENDING = re.compile("[0-9a-f]{6,32}")
"""A run's id, or as much of its end as lists show, or less."""
INDEXED = 8
NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,15})")

ATTRIBUTED = (
    "SELECT r.id FROM ledger_run r, json_each(r.attributes) a WHERE r.tenant_id = %s AND a.key IN (%s, %s)"
    " AND ((a.type = 'text' AND a.value = %s) OR (a.type = 'integer' AND a.value = %s) OR a.type = %s)"
)


def unwell(tenant_id: UUID, kind: Health, now: datetime) -> QuerySet[Any]:
    """Heads of the runs of which `health.health` says this at that moment."""
    heads: QuerySet[Any] = RunHead.objects.of(tenant_id)
    faulty = unverified(tenant_id)
    if kind is Health.UNVERIFIED:
        return heads.filter(pk__in=faulty)
    heads = heads.exclude(pk__in=faulty)
    disputed = Effect.objects.of(tenant_id).filter(disputed=True).values("run_id")
    unknown = Effect.objects.of(tenant_id).filter(state="unknown").values("run_id")
    if kind is Health.BLOCKED:
        return heads.filter(status=Status.BLOCKED)
    if kind is Health.DISPUTED:
        return heads.filter(pk__in=disputed).exclude(status=Status.BLOCKED)
    heads = heads.exclude(pk__in=disputed)
    if kind is Health.UNKNOWN:
        return heads.filter(pk__in=unknown).exclude(status__in=[Status.BLOCKED, *ENDED])
    return _late(heads.exclude(pk__in=unknown), tenant_id, kind, now)


def unverified(tenant_id: UUID) -> QuerySet[Any]:
    """Ids of the runs whose record didn't verify when it was checked last."""
    rows: QuerySet[Any] = VerifiedChain.objects.of(tenant_id).filter(reach=Reach.RUN, intact=False)
    return rows.values("stream_id")


def _late(heads: QuerySet[Any], tenant_id: UUID, kind: Health, now: datetime) -> QuerySet[Any]:
    due = now - SWEPT_AFTER
    if kind is Health.UNCLAIMED:
        return heads.filter(status=Status.READY, moved_at__lte=now - UNCLAIMED_AFTER)
    if kind is Health.NO_APPROVERS:
        overdue = WaitSet.objects.of(tenant_id).filter(state=SetState.OPEN, due_at__lte=due).values("run_id")
        lacking = heads.filter(status=Status.WAITING, pk__in=approvals().unanswerable(tenant_id))
        return lacking.exclude(pk__in=overdue)
    status, rows = {
        Health.LEASE: (Status.RUNNING, Lease.objects.of(tenant_id).filter(active=True, expires_at__lte=due)),
        Health.OVERDUE: (Status.WAITING, WaitSet.objects.of(tenant_id).filter(state=SetState.OPEN, due_at__lte=due)),
        Health.UNCHECKED: (Status.WAKING, Wake.objects.of(tenant_id).filter(state=WakeState.QUEUED, due_at__lte=due)),
    }[kind]
    return heads.filter(status=status, pk__in=rows.values("run_id"))


def owned(tenant_id: UUID, owner: str, *, names: bool) -> QuerySet[Any]:
    """Ids of runs that a worker of this name or id holds, or whose open handoff this person took.

    People are known by id; with `names` people and workers by any part of their name too, workers among the `LOOKED_THROUGH` that were heard last.
    """
    key = _uuid(owner)
    workers = Worker.objects.of(tenant_id).filter(Q(name=owner) | Q(pk=key) if key else Q(name=owner))
    if names and not key:
        heard = Worker.objects.of(tenant_id).order_by("-seen_at").values("pk")[:LOOKED_THROUGH]
        workers = Worker.objects.of(tenant_id).filter(pk__in=heard, name__icontains=owner)
    held = Lease.objects.of(tenant_id).filter(active=True, worker_id__in=workers.values("pk"))
    who = Q(pk=key) if key else Q(pk__in=[])
    if names:
        who |= Q(name__icontains=owner) | Q(email__iexact=owner)
    people = User.objects.filter(who, memberships__tenant_id=tenant_id)
    taken = Handoff.objects.of(tenant_id).filter(state__in=OPEN_HANDOFFS, owner__in=people.values("pk"))
    return held.values("run_id").union(taken.values("run_id"))


def attributed(tenant_id: UUID, attribute: str) -> QuerySet[Any]:
    """Ids of runs with this attribute, written `name:value`; a value of digits is the number too, and true and false are these.

    Raises LedgerError `invalid`.
    """
    name, colon, text = attribute.partition(":")
    if not colon or not name:
        raise LedgerError(
            "invalid",
            "that is no attribute to look for",
            "Write it as name:value, for example order:17.",
            field="attribute",
        )
    number = int(text) if NUMBER.fullmatch(text) else None
    truth = text if text in {"true", "false"} else None
    rows: QuerySet[Any] = Run.objects.of(tenant_id)
    if connection.vendor == "sqlite":
        # A path can't name every key there is, and a key may be stored escaped.
        names = (name, json.dumps(name)[1:-1])
        params = (facts.to_sqlite(tenant_id), *names, text, number, truth)
        return rows.filter(pk__in=RawSQL(ATTRIBUTED, params)).values("pk")  # noqa: S611 - the SQL is ours, whole
    values = [text, *([number] if number is not None else []), *([truth == "true"] if truth else [])]
    any_of = Q(pk__in=[])
    for value in values:
        any_of |= Q(attributes__contains={name: value})
    return rows.filter(any_of).values("pk")


def found(tenant_id: UUID, text: str, *more: QuerySet[Any]) -> list[UUID]:
    """Ids of runs by words: part of a task, agent or person among the newest `LOOKED_THROUGH`; among all a whole task, key, reference or resource,
    or a run's id or as much of its end as lists show; and what `more` selects. One statement, at most `MOST` of each."""
    effects = Effect.objects.of(tenant_id)
    whole = [effects.filter(**{field: text}).values("run_id") for field in ("key", "reference", "resource")]
    whole.append(Run.objects.of(tenant_id).filter(task=text).values("pk"))
    digits = text.lower().replace("-", "")
    if ENDING.fullmatch(digits) and len(digits) >= INDEXED:
        whole.append(ending(tenant_id, digits))
    asked = [rows.order_by()[:MOST].query.sql_with_params() for rows in (*whole, *more)]
    newest, params = _newest(tenant_id, text, digits)
    sql = " UNION ".join([newest, *(f"SELECT * FROM ({sql}) found_{n}" for n, (sql, _) in enumerate(asked))])
    with connection.cursor() as cursor:
        cursor.execute(sql, [*params, *(value for _, own in asked for value in own)])
        return [UUID(str(row[0])) for row in cursor.fetchall()]


def acted(tenant_id: UUID, name: str) -> list[QuerySet[Any]]:
    """Ids of the runs in whose journal people of this name stand, whatever they did there: of each the newest `MOST` of their entries."""
    people = User.objects.filter(memberships__tenant_id=tenant_id, name__icontains=name).order_by("name")
    entries = JournalEntry.objects.of(tenant_id).order_by("-at", "-id")
    newest = [
        entries.filter(actor=f"person:{pk}").values("stream_id")[:MOST]
        for pk in people.values_list("pk", flat=True)[:NAMESAKES]
    ]
    return [Run.objects.of(tenant_id).filter(pk__in=ids).values("pk") for ids in newest]


def ending(tenant_id: UUID, digits: str) -> QuerySet[Any]:
    """Ids of runs that end in these hexadecimal digits, eight at least: the last eight have an index."""
    rows: QuerySet[Any] = Run.objects.of(tenant_id).annotate(last=Right(Cast("id", CharField()), INDEXED))
    rows = rows.filter(last=digits[-INDEXED:])
    if len(digits) == 32:
        rows = rows.filter(pk=UUID(digits))
    return rows.values("pk")


def _newest(tenant_id: UUID, text: str, digits: str) -> tuple[str, list[Any]]:
    """The newest runs of which a part is like the text. The bound is inside: what doesn't match makes nobody look further."""
    window = Run.objects.of(tenant_id).order_by("-created_at", "id").values("id", "task", "agent_id", "on_behalf_of_id")
    inner, params = window[:LOOKED_THROUGH].query.sql_with_params()
    agents = Agent.objects.of(tenant_id).filter(name__icontains=text).values("pk")
    people = User.objects.filter(memberships__tenant_id=tenant_id, name__icontains=text).values("pk")
    (of_agents, named), (of_people, called) = agents.query.sql_with_params(), people.query.sql_with_params()
    like = f"%{connection.ops.prep_for_like_query(text)}%"
    tests = [
        "UPPER(task) LIKE UPPER(%s) ESCAPE '\\'",
        f"agent_id IN ({of_agents})",
        f"on_behalf_of_id IN ({of_people})",
    ]
    values = [*params, like, *named, *called]
    if ENDING.fullmatch(digits):
        tests.append("REPLACE(CAST(id AS varchar), '-', '') LIKE %s")
        values.append(f"%{digits}")
    return f"SELECT id FROM (SELECT id FROM ({inner}) newest WHERE {' OR '.join(tests)} LIMIT {MOST}) likely", values


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
