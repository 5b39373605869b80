"""Handoffs: the list, and one with its situation, why, what was done and what isn't known, and what closing it causes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Case, Exists, OuterRef, Q, QuerySet, Value, When
from django.http import Http404
from django.urls import reverse

from approvals.labels import CLOSED, SETTLED, closed
from approvals.services import effect_lines, reconcile_pages, run_parts, timelines
from approvals.services.effect_lines import EffectLine
from approvals.services.pieces import Content, Cursor, Fact, Item, Page, bodies, content, counted
from approvals.services.run_lists import seen_by
from approvals.services.run_parts import WakeLine
from approvals.templatetags.console import absolute
from approvals.templatetags.console import visible_text as shown
from ledger.domain.authority import GrantState
from ledger.domain.handoffs import OPEN_HANDOFFS, Outcome
from ledger.domain.identity import Verb
from ledger.domain.phrases import reason
from ledger.models import Effect, Grant, Handoff, Tenant, User
from ledger.services import permissions

SHOWN = 50
MOST_EFFECTS = 50
GRAVITY = Case(When(escalated_at__isnull=False, then=Value(0)), default=Value(1))
"""What nobody closed in its time comes first."""


@dataclass(frozen=True, slots=True)
class Row:
    """One handoff of the list."""

    id: UUID
    situation: str
    state: str
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
class Closing:
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
    escalated: datetime | None
    facts: tuple[Fact, ...]
    wake: WakeLine | None
    claims: tuple[Item, ...]
    about: EffectLine | None
    done: tuple[EffectLine, ...]
    unknown: tuple[EffectLine, ...]
    not_done: tuple[EffectLine, ...]
    owner: str
    mine: bool
    operates: bool
    is_open: bool
    blocks: bool
    outcomes: tuple[Closing, ...]
    reconcile: EffectLine | None
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


def apart_for(user: User, tenant: Tenant) -> QuerySet[Handoff]:
    """Of these, those that are a case of their own: not about a call that waits to be reconciled, whose line says that it has a handoff."""
    about = reconcile_pages.unsettled(tenant).filter(pk=OuterRef("effect_id"))
    return open_for(user, tenant).filter(~Exists(about))


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
            rank = 1 if grave == "1" else 0
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
        task=shown(handoff.run.task),
        workflow=shown(handoff.run.workflow.name),
        owner=shown(handoff.owner.name) if handoff.owner else "",
        due=handoff.due_at,
        closed=handoff.closed_at,
        outcome=came_to(handoff),
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
    names = {str(line.id): line.name for line in effects}
    note = bodies([found.note_id], tenant.pk).get(found.note_id) if found.note_id else None
    unknown = tuple(line for line in effects if line.state in {"unknown", "in_flight"} or line.disputed)
    is_open = found.state in OPEN_HANDOFFS
    open_call = _keeps_open(found, unknown)
    return HandoffPage(
        id=found.pk,
        situation=_situation(found, unknown),
        why=shown(reason(found.reason)),
        state=found.state,
        escalated=found.escalated_at,
        facts=_facts(tenant, found),
        claims=timelines.claims(tenant, found.run_id, found.opened_at) if found.reason in GIVEN_UP else (),
        wake=run_parts.wake(tenant, found.decision_id, names) if found.decision_id else None,
        about=next((line for line in effects if line.id == found.effect_id), None),
        done=tuple(line for line in effects if line.state == "committed" and not line.disputed),
        unknown=unknown,
        not_done=tuple(line for line in effects if line.state in {"proposed", "failed", "withdrawn"}),
        owner=shown(found.owner.name) if found.owner else "",
        mine=found.owner_id == user.pk,
        operates=operates,
        is_open=is_open,
        blocks=found.blocks_run,
        outcomes=_closings(found, open_call, _leave(tenant, found, effects)) if is_open else (),
        reconcile=open_call,
        note=content(note, may_see=payloads or operates),
        outcome=came_to(found),
        run_id=found.run_id,
        run_status=found.run.head.status,
        task=shown(found.run.task),
    )


GIVEN_UP = frozenset({"poisoned", "no-progress"})
"""Reasons that are about the workers who had the run."""


def _leave(tenant: Tenant, handoff: Handoff, lines: Sequence[EffectLine]) -> str:
    """Which calls a worker could make at once if the run were woken: people's leave for them is still live."""
    names = {line.id: line.name for line in lines}
    grants = Grant.objects.of(tenant).filter(run_id=handoff.run_id, state=GrantState.LIVE)
    told = [
        f"“{names[subject]}” until {absolute(use_by)}"
        for subject, use_by in grants.order_by("use_by").values_list("subject_id", "use_by")[:3]
        if subject in names
    ]
    return f" The approval of {' and of '.join(told)} still holds: that call may be made then." if told else ""


WITHDRAWN = "no longer needed: what it was about is known"


def came_to(handoff: Handoff) -> str:
    """What closing it came to; '' while it is open, and where nobody closed it."""
    return closed(handoff.outcome, blocks=handoff.blocks_run).was if handoff.outcome else ""


def _situation(handoff: Handoff, unknown: tuple[EffectLine, ...]) -> str:
    """The state of things in one line."""
    task = shown(handoff.run.task)
    if handoff.state not in OPEN_HANDOFFS:
        return f"“{task}”: {came_to(handoff) or WITHDRAWN}."
    disputed = [line for line in unknown if line.disputed]
    missing = [line for line in unknown if not line.disputed]
    told = [f"the outcome of {_named(missing)} isn’t known"] if missing else []
    told += [f"it is disputed what became of {_named(disputed)}"] if disputed else []
    standing = "stands still" if handoff.blocks_run else "has ended" if handoff.run.head.ended_at else "goes on"
    return f"“{task}” {standing}" + (f", and {', and '.join(told)}." if told else ".")


def _named(lines: Sequence[EffectLine]) -> str:
    return " and ".join(f"“{line.name}”" for line in lines[:3])


def _facts(tenant: Tenant, handoff: Handoff) -> tuple[Fact, ...]:
    head = handoff.run.head
    return (
        Fact("Run", shown(handoff.run.task), href=reverse("run", args=[tenant.slug, handoff.run_id])),
        Fact("Run is", state=head.status),
        Fact("Workflow", f"{shown(handoff.run.workflow.name)}, version {shown(head.version)}"),
        Fact("Next step", shown(head.transition), mono=True),
        Fact("Handed over", time=handoff.opened_at),
        Fact("Due", time=handoff.due_at),
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
    **dict.fromkeys(
        ("retry:no_keys", "retry:key_forgotten", "retry:asked_and_refused"),
        "Every check is made again. The call isn’t tried again: the agent is told, and goes on without it.",
    ),
}
"""What waking a run again causes where a check would fail just as before."""


def _keeps_open(handoff: Handoff, unknown: tuple[EffectLine, ...]) -> EffectLine | None:
    """The call whose outcome isn't known, or is disputed, for which the handoff can't be closed yet: of the run, or the one that it is about."""
    own = [line for line in unknown if handoff.blocks_run or line.id == handoff.effect_id]
    return min(own, key=lambda line: line.disputed, default=None)


def _closings(handoff: Handoff, open_call: EffectLine | None, leave: str) -> tuple[Closing, ...]:
    """Ways to close a handoff; none can be chosen while `open_call` keeps it open. `leave` says what waking it lets happen."""
    refused = ""
    if open_call is not None and open_call.disputed:
        refused = f"Not while it is disputed what became of “{open_call.name}”: say on its page which account holds."
    elif open_call is not None:
        refused = f"Not while the outcome of “{open_call.name}” isn’t known: reconcile it first."
    if not handoff.blocks_run:
        return (Closing(Outcome.WAKE, SETTLED.label, SETTLED.causes, refused),)
    causes = {Outcome.WAKE: _WITHOUT[handoff.reason]} if handoff.reason in _WITHOUT else {}
    told = {outcome: causes.get(Outcome(outcome), words.causes) for outcome, words in CLOSED.items()}
    told[Outcome.WAKE] += leave
    return tuple(Closing(outcome, words.label, told[outcome], refused) for outcome, words in CLOSED.items())
