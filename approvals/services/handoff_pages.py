"""Handoffs: the list, and one with its situation, why, what was done and what isn't known, and what closing it causes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Case, Q, QuerySet, Value, When
from django.http import Http404
from django.urls import reverse

from approvals.services import effect_lines, run_parts
from approvals.services.effect_lines import EffectLine
from approvals.services.pieces import Content, Cursor, Fact, Page, bodies, content, counted
from approvals.services.run_lists import seen_by
from approvals.services.run_parts import WakeLine
from approvals.templatetags.console import visible_text as shown
from ledger.domain.identity import Verb
from ledger.domain.phrases import reason
from ledger.models import Effect, Handoff, Tenant, User
from ledger.services import permissions
from ledger.services.standings import OPEN_HANDOFFS

SHOWN = 50
MOST_EFFECTS = 50
GRAVITY = Case(
    When(escalated_at__isnull=False, then=Value(0)),
    When(severity__in=["critical", "high"], then=Value(1)),
    default=Value(2),
)
"""What nobody closed in its time comes first, then by severity."""


@dataclass(frozen=True, slots=True)
class Row:
    """One handoff of the list."""

    id: UUID
    situation: str
    state: str
    severity: str
    task: str
    workflow: str
    owner: str
    due: datetime
    closed: datetime | None
    outcome: str
    escalated: bool


@dataclass(frozen=True, slots=True)
class HandoffList:
    rows: tuple[Row, ...]
    page: Page
    grave: str
    shows: str
    to_do: str
    for_others: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """One way to close, what it causes, and why it can't be chosen now ('' when it can)."""

    value: str
    label: str
    causes: str
    refused: str = ""


@dataclass(frozen=True, slots=True)
class HandoffPage:
    id: UUID
    situation: str
    why: str
    state: str
    severity: str
    escalated: datetime | None
    facts: tuple[Fact, ...]
    wake: WakeLine | None
    about: EffectLine | None
    done: tuple[EffectLine, ...]
    unknown: tuple[EffectLine, ...]
    not_started: tuple[EffectLine, ...]
    owner: str
    mine: bool
    operates: bool
    is_open: bool
    outcomes: tuple[Outcome, ...]
    note: Content
    outcome: str
    run_id: UUID
    run_status: str
    task: str


def open_for(user: User, tenant: Tenant) -> QuerySet[Handoff]:
    """Handoffs that nobody has closed, in workflows that this person operates: list, badge and inbox are of it."""
    types = permissions.visible(user, Verb.OPERATE).filter(tenant=tenant)
    rows: QuerySet[Handoff] = Handoff.objects.of(tenant).filter(state__in=OPEN_HANDOFFS, run__workflow__in=types)
    return rows


def seen_only(user: User, tenant: Tenant) -> QuerySet[Handoff]:
    """Open handoffs of runs that this person may see, in workflows that they don't operate: for others to take."""
    operated = permissions.visible(user, Verb.OPERATE).filter(tenant=tenant)
    rows: QuerySet[Handoff] = Handoff.objects.of(tenant).filter(
        state__in=OPEN_HANDOFFS, run__head__in=seen_by(user, tenant)
    )
    return rows.exclude(run__workflow__in=operated)


def listed(user: User, tenant: Tenant, shows: str) -> QuerySet[Handoff]:
    """The handoffs of a list: the `open` ones that are this person's to take, those for `others`, or the `closed` ones that they may see."""
    if shows == "closed":
        seen = Handoff.objects.of(tenant).filter(run__head__in=seen_by(user, tenant))
        rows: QuerySet[Handoff] = seen.exclude(state__in=OPEN_HANDOFFS)
        return rows
    return seen_only(user, tenant) if shows == "others" else open_for(user, tenant)


def handoffs(user: User, tenant: Tenant, shows: str = "open", before: str = "", grave: str = "") -> HandoffList:
    """A page of handoffs: the `open` ones that are this person's to take, or those for `others`, gravest and soonest due first, or the
    `closed` ones of runs that they may see, newest first.

    `before` and `grave` are where the page before ended. Raises LedgerError `invalid` for a page that isn't one.
    """
    cursor = Cursor.parse(before)
    mine, others = open_for(user, tenant), seen_only(user, tenant)
    rows: QuerySet[Any] = listed(user, tenant, shows)
    if shows == "closed":
        page = rows.annotate(grave=Value(0)).order_by("-closed_at", "-pk")
        if cursor is not None:
            page = page.filter(Q(closed_at__lt=cursor.at) | Q(closed_at=cursor.at, pk__lt=cursor.id))
    else:
        page = rows.annotate(grave=GRAVITY).order_by("grave", "due_at", "pk")
        if cursor is not None:
            rank = int(grave) if grave in {"1", "2"} else 0
            later = Q(due_at__gt=cursor.at) | Q(due_at=cursor.at, pk__gt=cursor.id)
            page = page.filter(Q(grave__gt=rank) | Q(later, grave=rank))
    found = list(page.select_related("owner", "run__workflow")[: SHOWN + 1])
    more, found = len(found) > SHOWN, found[:SHOWN]
    last = found[-1] if more else None
    return HandoffList(
        rows=tuple(row(handoff) for handoff in found),
        page=Page(
            shown=len(found),
            total=counted(rows),
            next=str(Cursor(last.closed_at or last.due_at, last.pk)) if last else "",
            first=cursor is None,
        ),
        grave=str(last.grave) if last else "",
        shows=shows,
        to_do=counted(mine),
        for_others=counted(others),
    )


def row(handoff: Handoff) -> Row:
    """A handoff as a line of the list; it comes with its owner, run and workflow."""
    return Row(
        id=handoff.pk,
        situation=shown(reason(handoff.reason)),
        state=handoff.state,
        severity=handoff.severity,
        task=shown(handoff.run.task),
        workflow=shown(handoff.run.workflow.name),
        owner=shown(handoff.owner.name) if handoff.owner else "",
        due=handoff.due_at,
        closed=handoff.closed_at,
        outcome=OUTCOMES.get(handoff.outcome, ""),
        escalated=handoff.escalated_at is not None,
    )


def handoff(user: User, tenant: Tenant, handoff_id: UUID) -> HandoffPage:
    """One handoff for whoever may see its run. Http404 for what this person can't see."""
    rows = Handoff.objects.of(tenant).filter(pk=handoff_id, run__head__in=seen_by(user, tenant))
    found: Handoff | None = rows.select_related("owner", "run__workflow", "run__head").first()
    if found is None:
        raise Http404
    payloads = permissions.can(user, Verb.SEE_PAYLOADS, found.run.workflow)
    operates = permissions.can(user, Verb.OPERATE, found.run.workflow)
    of_run = Effect.objects.of(tenant).filter(Q(run_id=found.run_id)).select_related("target")
    effects = effect_lines.lines(tenant, list(of_run.order_by("proposed_at", "pk")[:MOST_EFFECTS]), may_see=payloads)
    wakes, _ = run_parts.wakes(tenant, found.run_id, {str(line.id): line.name for line in effects})
    note = bodies([found.note_id], tenant.pk).get(found.note_id) if found.note_id else None
    unknown = tuple(line for line in effects if line.state in {"unknown", "in_flight"} or line.disputed)
    is_open = found.state in OPEN_HANDOFFS
    return HandoffPage(
        id=found.pk,
        situation=_situation(found, unknown),
        why=shown(reason(found.reason)),
        state=found.state,
        severity=found.severity,
        escalated=found.escalated_at,
        facts=_facts(tenant, found),
        wake=next((line for line in wakes if line.id == found.decision_id), None),
        about=next((line for line in effects if line.id == found.effect_id), None),
        done=tuple(line for line in effects if line.state == "committed" and not line.disputed),
        unknown=unknown,
        not_started=tuple(line for line in effects if line.state in {"proposed", "failed", "withdrawn"}),
        owner=shown(found.owner.name) if found.owner else "",
        mine=found.owner_id == user.pk,
        operates=operates,
        is_open=is_open,
        outcomes=_outcomes(found, unknown) if is_open else (),
        note=content(note, may_see=payloads or operates),
        outcome=OUTCOMES.get(found.outcome, ""),
        run_id=found.run_id,
        run_status=found.run.head.status,
        task=shown(found.run.task),
    )


OUTCOMES = {
    "wake": "the run was woken and checked again",
    "cancel": "the run was cancelled",
    "fail": "the run was failed",
}


def _situation(handoff: Handoff, unknown: tuple[EffectLine, ...]) -> str:
    """The state of things in one line."""
    task = shown(handoff.run.task)
    if handoff.state not in OPEN_HANDOFFS:
        return f"“{task}”: {OUTCOMES.get(handoff.outcome, 'no longer needed; the run went on by itself')}."
    known = "the outcome of " + " and ".join(f"“{line.name}”" for line in unknown[:3]) + " isn’t known"
    standing = "stands still" if handoff.blocks_run else "has ended" if handoff.run.head.ended_at else "goes on"
    return f"“{task}” {standing}" + (f", and {known}." if unknown else ".")


def _facts(tenant: Tenant, handoff: Handoff) -> tuple[Fact, ...]:
    head = handoff.run.head
    return (
        Fact("Run", shown(handoff.run.task), href=reverse("run", args=[tenant.slug, handoff.run_id])),
        Fact("Run is", state=head.status),
        Fact("Workflow", f"{shown(handoff.run.workflow.name)}, version {shown(head.version)}"),
        Fact("Next step", shown(head.transition), mono=True),
        Fact("Handed over", time=handoff.opened_at),
        *((Fact("Escalated", time=handoff.escalated_at),) if handoff.escalated_at else ()),
        Fact("Owner", shown(handoff.owner.name) if handoff.owner else "nobody yet"),
        *((Fact("Closed", time=handoff.closed_at),) if handoff.closed_at else ()),
    )


_WITHOUT = {
    "policy:denied": "Every check is made again. What the policy still denies is withdrawn: the agent is told, and goes on without it.",
    **dict.fromkeys(
        ("target:moved", "target:moved_unasked", "plan:name_called_twice"),
        "Every check is made again. A call whose target still isn’t as it was is withdrawn: the agent is told, and goes on without it.",
    ),
}
"""What waking a run again causes where a check would fail just as before."""


def _outcomes(handoff: Handoff, unknown: tuple[EffectLine, ...]) -> tuple[Outcome, ...]:
    """Ways to close a handoff; none while the outcome of a call of the run (or of the one that it is about) isn't known, or is disputed."""
    if not handoff.blocks_run:
        unknown = tuple(line for line in unknown if line.id == handoff.effect_id)
    open_calls = [line.name for line in unknown if line.state in {"unknown", "in_flight"}]
    refused = f"Not while the outcome of “{open_calls[0]}” isn’t known: reconcile it first." if open_calls else ""
    disputed = [line.name for line in unknown if line.disputed]
    if disputed and not refused:
        refused = f"Not while it is disputed what became of “{disputed[0]}”: say on its page which account holds."
    if not handoff.blocks_run:
        causes = "The handoff is closed. The run stays as it is."
        return (Outcome("wake", "It is settled", causes, refused),)
    wakes = _WITHOUT.get(handoff.reason, "Every check is made again. If they pass, a worker takes it from here.")
    return (
        Outcome("wake", "Wake the run", wakes, refused),
        Outcome("cancel", "Cancel the run", "It ends as cancelled. What was done stays done.", refused),
        Outcome("fail", "Fail the run", "It ends as failed. What was done stays done.", refused),
    )
