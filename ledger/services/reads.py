"""What callers may read: every page, detail and export starts from the same scoped sets of rows, and each is bounded.

A key reads runs of the workflow types that it is for. A person's key reads of these what that person may see, and payloads only where they may
see those.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from uuid import UUID

from django.db.models import Q, QuerySet

from ledger.domain.canonical import parse_time
from ledger.domain.errors import LedgerError
from ledger.domain.health import Health
from ledger.domain.identity import Caller, Verb
from ledger.domain.waits import Outcome
from ledger.models import (
    Body,
    Checkpoint,
    Decision,
    Effect,
    JournalEntry,
    Run,
    WaitMember,
    WaitSet,
    Wake,
    WakeCheck,
    WorkflowType,
    WorkflowVersion,
)
from ledger.services import facts, permissions, ports, search

T = TypeVar("T")
SEARCHED = 2_000
"""A search in text looks through this many runs, newest first, and then offers to go on."""
EXPORT_STEP = 500
MOST_PER_PARENT = 200


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some rows, and where the next ones begin ('' at the end)."""

    items: Sequence[T]
    next: str


@dataclass(frozen=True, slots=True)
class RunFilter:
    """What runs to look for; '' takes any. `text` is looked for in task and text, without regard to case; `attributes` are written `name:value`;
    `owner` is a worker's name or id, or a person's id: no key learns of people by name."""

    status: str = ""
    workflow: str = ""
    version: str = ""
    task: str = ""
    text: str = ""
    health: str = ""
    owner: str = ""
    attributes: tuple[str, ...] = ()


# Scopes -----------------------------------------------------------------------------------------


def workflows(caller: Caller) -> QuerySet[Any]:
    """The workflow types that the caller may see."""
    return _types(caller, Verb.SEE)


def _types(caller: Caller, verb: Verb) -> QuerySet[Any]:
    types: QuerySet[Any] = WorkflowType.objects.of(caller.tenant_id)
    if caller.person_id is not None:
        types = permissions.visible(caller.person_id, verb).of(caller.tenant_id)
    return types.filter(name__in=caller.workflows) if caller.narrowed else types


def sees_all(caller: Caller) -> bool:
    """Is the caller limited to nothing but their tenant?"""
    return caller.person_id is None and not caller.narrowed


def sees_payloads(caller: Caller, workflow_id: UUID) -> bool:
    """May the caller read states, requests and results of this type's runs?"""
    return caller.person_id is None or _types(caller, Verb.SEE_PAYLOADS).filter(pk=workflow_id).exists()


def _runs(caller: Caller) -> QuerySet[Any]:
    runs = Run.objects.of(caller.tenant_id).select_related("head", "workflow")
    return runs if sees_all(caller) else runs.filter(workflow__in=workflows(caller))


def run(caller: Caller, run_id: UUID) -> Run:
    """One run with its head and workflow. Raises LedgerError `not-found` for a foreign, invisible or missing one."""
    found: Run | None = _runs(caller).filter(pk=run_id).first()
    if found is None:
        raise missing("run")
    return found


def missing(what: str) -> LedgerError:
    """The same words for what isn't there and for what the caller may not see."""
    return LedgerError(
        "not-found", f"there is no such {what} here", "Check the id, and that the key belongs to its tenant."
    )


# Pages ------------------------------------------------------------------------------------------


def cursor(*values: object) -> str:
    """An opaque place in an order."""
    return base64.urlsafe_b64encode("|".join(map(str, values)).encode()).decode().rstrip("=")


def place(text: str, count: int) -> list[str]:
    """What `cursor` made. Raises LedgerError `invalid`."""
    try:
        values = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode().split("|")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        values = []
    if len(values) != count:
        raise _bad_cursor()
    return values


def _bad_cursor() -> LedgerError:
    return LedgerError("invalid", "the cursor isn't one of ours", "Send `next` exactly as the page before answered it.")


def runs(caller: Caller, wanted: RunFilter, after: str, limit: int) -> Page[Run]:
    """Runs, newest first. A page may be short and still have a next one: the search looks through `SEARCHED` runs at a time.

    Raises LedgerError `invalid` for a cursor or an attribute that isn't one.
    """
    order = ("-created_at", "id")
    scoped = _before(_searched(_filtered(_runs(caller), wanted), caller.tenant_id, wanted), after).order_by(*order)
    if not wanted.text:
        found = list(scoped[: limit + 1])
        return Page(found[:limit], _run_place(found[limit - 1]) if len(found) > limit else "")
    window = list(scoped[: SEARCHED + 1].values_list("created_at", "id"))
    ids = [run_id for _, run_id in window[:SEARCHED]]
    about = Q(task__icontains=wanted.text) | Q(text__icontains=wanted.text)
    found = list(_runs(caller).filter(about, pk__in=ids).order_by(*order)[: limit + 1]) if ids else []
    if len(found) > limit:
        return Page(found[:limit], _run_place(found[limit - 1]))
    return Page(found, cursor(window[SEARCHED - 1][0].isoformat(), ids[-1]) if len(window) > SEARCHED else "")


def _filtered(rows: QuerySet[Any], wanted: RunFilter) -> QuerySet[Any]:
    named = {
        "head__status": wanted.status,
        "workflow__name": wanted.workflow,
        "head__version": wanted.version,
        "task": wanted.task,
    }
    return rows.filter(**{name: value for name, value in named.items() if value})


def _searched(rows: QuerySet[Any], tenant_id: UUID, wanted: RunFilter) -> QuerySet[Any]:
    if wanted.health:
        unwell = search.unwell(tenant_id, Health(wanted.health), facts.read().now)
        rows = rows.filter(pk__in=unwell.values("pk"))
    if wanted.owner:
        rows = rows.filter(pk__in=search.owned(tenant_id, wanted.owner, names=False))
    for attribute in wanted.attributes:
        rows = rows.filter(pk__in=search.attributed(tenant_id, attribute))
    return rows


def _run_place(last: Run) -> str:
    return cursor(last.created_at.isoformat(), last.pk)


def _before(rows: QuerySet[Any], after: str) -> QuerySet[Any]:
    if not after:
        return rows
    at, last = place(after, 2)
    try:
        moment, run_id = parse_time(at, "the cursor"), UUID(last)
    except (ValueError, LedgerError):
        raise _bad_cursor() from None
    return rows.filter(Q(created_at__lt=moment) | Q(created_at=moment, pk__gt=run_id))


def _by_number(rows: QuerySet[Any], field: str, after: str, limit: int) -> Page[Any]:
    if after:
        text = place(after, 1)[0]
        if not text.isdecimal() or len(text) > 18:
            raise _bad_cursor()
        rows = rows.filter(**{f"{field}__gt": int(text)})
    found = list(rows.order_by(field)[: limit + 1])
    return Page(found[:limit], cursor(getattr(found[limit - 1], field)) if len(found) > limit else "")


def _newest(rows: QuerySet[Any], after: str, limit: int) -> Page[Any]:
    """Ids are ordered by time."""
    if after:
        try:
            rows = rows.filter(pk__lt=UUID(place(after, 1)[0]))
        except ValueError:
            raise _bad_cursor() from None
    found = list(rows.order_by("-pk")[: limit + 1])
    return Page(found[:limit], cursor(found[limit - 1].pk) if len(found) > limit else "")


# Rows of a run ----------------------------------------------------------------------------------


def checkpoints(caller: Caller, run_id: UUID, after: str, limit: int) -> Page[Checkpoint]:
    """A run's checkpoints in order, without their states."""
    run(caller, run_id)
    return _by_number(Checkpoint.objects.of(caller.tenant_id).filter(run_id=run_id), "seq", after, limit)


def checkpoint(caller: Caller, run_id: UUID, seq: int) -> Checkpoint:
    """One checkpoint with its state's body. Raises LedgerError `not-found`."""
    run(caller, run_id)
    rows = Checkpoint.objects.of(caller.tenant_id).select_related("state").filter(run_id=run_id, seq=seq)
    found: Checkpoint | None = rows.first()
    if found is None:
        raise missing("checkpoint")
    return found


def wakes(caller: Caller, run_id: UUID, after: str, limit: int) -> Page[Wake]:
    """A run's wakes, newest first."""
    run(caller, run_id)
    return _newest(Wake.objects.of(caller.tenant_id).filter(run_id=run_id), after, limit)


def decisions(caller: Caller, run_id: UUID, after: str, limit: int) -> Page[Decision]:
    """A run's wake decisions, newest first."""
    run(caller, run_id)
    return _newest(Decision.objects.of(caller.tenant_id).filter(run_id=run_id), after, limit)


def checks(caller: Caller, found: Sequence[Decision]) -> dict[UUID, list[WakeCheck]]:
    """The checks of these decisions, in the order in which they were made."""
    rows = WakeCheck.objects.of(caller.tenant_id).filter(decision_id__in=[row.pk for row in found])
    return _grouped(rows.order_by("decision_id", "ordinal"), "decision_id")


def waits(caller: Caller, run_id: UUID, after: str, limit: int) -> Page[WaitSet]:
    """A run's waits, newest first."""
    run(caller, run_id)
    return _newest(WaitSet.objects.of(caller.tenant_id).filter(run_id=run_id), after, limit)


def members(caller: Caller, found: Sequence[WaitSet]) -> dict[UUID, list[WaitMember]]:
    """The members of these waits, in order."""
    rows = WaitMember.objects.of(caller.tenant_id).filter(wait_id__in=[row.pk for row in found])
    return _grouped(rows.order_by("wait_id", "ordinal"), "wait_id")


def reasons(caller: Caller, run_id: UUID, found: Mapping[UUID, Sequence[WaitMember]]) -> Mapping[UUID, str]:
    """What people said of the effects that they denied, by effect; nothing for who may not see payloads."""
    rows = [row for members in found.values() for row in members if row.outcome == Outcome.DENIED]
    denied = [row.effect_id for row in rows if row.effect_id is not None]
    if not denied or not sees_payloads(caller, run(caller, run_id).workflow_id):
        return {}
    return ports.approvals().reasons(caller.tenant_id, denied)


def _grouped(rows: QuerySet[Any], by: str) -> dict[UUID, list[Any]]:
    grouped: dict[UUID, list[Any]] = {}
    for row in rows:
        grouped.setdefault(getattr(row, by), []).append(row)
    return grouped


def journal(caller: Caller, run_id: UUID, after: str, limit: int) -> Page[JournalEntry]:
    """A run's journal entries in order."""
    run(caller, run_id)
    return _by_number(_entries(caller, run_id), "seq", after, limit)


def export(caller: Caller, run_id: UUID) -> Iterator[JournalEntry]:
    """All entries of a run, read in steps. Raises LedgerError `not-found` at once."""
    run(caller, run_id)
    return _all_entries(caller, run_id)


def _entries(caller: Caller, run_id: UUID) -> QuerySet[Any]:
    return JournalEntry.objects.of(caller.tenant_id).filter(stream_id=run_id)


def _all_entries(caller: Caller, run_id: UUID) -> Iterator[JournalEntry]:
    last = 0
    while step := list(_entries(caller, run_id).filter(seq__gt=last).order_by("seq")[:EXPORT_STEP]):
        yield from step
        last = step[-1].seq


# Effects, workflows -----------------------------------------------------------------------------


def _effects(caller: Caller) -> QuerySet[Any]:
    rows = Effect.objects.of(caller.tenant_id).select_related("target", "request", "run")
    return rows if sees_all(caller) else rows.filter(run__workflow__in=workflows(caller))


def effects(caller: Caller, run_id: UUID | None, state: str, after: str, limit: int) -> Page[Effect]:
    """Effects of one run or of all, newest first."""
    rows = _effects(caller)
    if run_id is not None:
        run(caller, run_id)
        rows = rows.filter(run_id=run_id)
    return _newest(rows.filter(state=state) if state else rows, after, limit)


def effect(caller: Caller, effect_id: UUID) -> Effect:
    """One effect with target, request and run. Raises LedgerError `not-found`."""
    found: Effect | None = _effects(caller).filter(pk=effect_id).first()
    if found is None:
        raise missing("effect")
    return found


def bodies(caller: Caller, ids: Sequence[UUID | None]) -> dict[UUID, bytes | None]:
    """Contents by id; None where one was erased."""
    wanted = [body_id for body_id in ids if body_id is not None]
    if not wanted:
        return {}
    rows = Body.objects.of(caller.tenant_id).filter(pk__in=wanted).values_list("id", "content")
    return {body_id: None if content is None else bytes(content) for body_id, content in rows}


def workflow(caller: Caller, name: str) -> WorkflowType:
    """One workflow type. Raises LedgerError `not-found`."""
    found: WorkflowType | None = workflows(caller).filter(name=name).first()
    if found is None:
        raise missing("workflow")
    return found


def versions(caller: Caller, name: str) -> Sequence[WorkflowVersion]:
    """The newest versions of a workflow, newest first."""
    rows = WorkflowVersion.objects.of(caller.tenant_id).filter(workflow=workflow(caller, name))
    return list(rows.order_by("-created_at", "-version")[:MOST_PER_PARENT])
