"""Effects whose outcome nobody knows: the queue, oldest first, and one effect with everything that was asked and answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.db.models.functions import Coalesce
from django.http import Http404
from django.urls import reverse

from approvals.domain import money as amounts
from approvals.labels import LOOKS, UNASKABLE, cause
from approvals.renderers import Asked, words_for
from approvals.services import effect_lines, verdicts
from approvals.services.counts import clock
from approvals.services.effect_lines import EffectLine
from approvals.services.pieces import HIDDEN, MANY, Cursor, Fact, Item, Page, bodies, counted, money, parsed
from approvals.services.run_lists import seen_by
from approvals.templatetags.console import absolute
from approvals.templatetags.console import visible_text as shown
from ledger.domain.effects import OPEN, EffectState, LookAnswer, ReportKind
from ledger.domain.handoffs import OPEN_HANDOFFS, UNRECONCILED
from ledger.domain.identity import Verb
from ledger.domain.phrases import words
from ledger.models import Body, Effect, EffectReport, Handoff, RunHead, Tenant, User, WorkflowType
from ledger.services import permissions

SHOWN = 50
ASKABLE = frozenset({EffectState.UNKNOWN, EffectState.IN_FLIGHT, EffectState.FAILED})
SETTLED = frozenset({EffectState.COMMITTED, EffectState.FAILED})
REQUEST_READ = 16_384
"""Bytes of the largest request whose amount is summed up."""


@dataclass(frozen=True, slots=True)
class Row:
    """One effect of the queue."""

    id: UUID
    what: str
    state: str
    why: str
    target: str
    task: str
    amount: str
    asked: str
    since: datetime
    handoff: str


@dataclass(frozen=True, slots=True)
class Queue:
    """A page of the queue; `at_risk` sums what this person may see of the effects that are open, by currency.

    `elsewhere` counts those that the person may see and not settle ('0' when there are none).
    """

    rows: tuple[Row, ...]
    page: Page
    at_risk: tuple[str, ...]
    at_risk_partial: bool
    operates: bool
    elsewhere: str


@dataclass(frozen=True, slots=True)
class EffectPage:
    """One effect as its page shows it. `choices` is empty when nothing is to be settled by hand, or not by this person; `proves` says when a
    reference is needed, and is empty where none could be; `corrects` where something is recorded that nobody disputes."""

    line: EffectLine
    headline: str
    situation: str
    facts: tuple[Fact, ...]
    guarantees: tuple[Fact, ...]
    history: tuple[Item, ...]
    recorded: tuple[Item, ...]
    has_result: bool
    choices: tuple[verdicts.Choice, ...]
    proves: str
    corrects: bool
    why_no_choice: str
    can_ask: bool
    run_id: UUID
    run_status: str
    task: str


def waiting_for(user: User, tenant: Tenant) -> QuerySet[Effect]:
    """What this person may have to find out: unknown outcomes, calls past their answer, disputed ones. Queue and badge are both of it."""
    return unsettled(tenant).filter(run__workflow__in=permissions.visible(user, Verb.OPERATE).filter(tenant=tenant))


def unsettled(tenant: Tenant) -> QuerySet[Effect]:
    """The tenant's calls whose outcome somebody may have to find out, whoever that is."""
    rows: QuerySet[Effect] = Effect.objects.of(tenant).filter(
        Q(state=EffectState.UNKNOWN) | Q(state=EffectState.IN_FLIGHT, answer_by__lt=clock()) | Q(disputed=True)
    )
    return rows


def _seen_only(user: User, tenant: Tenant) -> QuerySet[Effect]:
    """What is of the queue's kind, in workflows that this person may see and not operate."""
    seen, operated = (permissions.visible(user, verb).filter(tenant=tenant) for verb in (Verb.SEE, Verb.OPERATE))
    return unsettled(tenant).filter(run__workflow__in=seen).exclude(run__workflow__in=operated)


def queue(user: User, tenant: Tenant, before: str = "") -> Queue:
    """A page of the queue, oldest first. Raises LedgerError `invalid` for a page that isn't one."""
    every = waiting_for(user, tenant)
    rows = every.annotate(since=Coalesce("answer_by", "proposed_at"))
    cursor = Cursor.parse(before)
    if cursor is not None:
        rows = rows.filter(Q(since__gt=cursor.at) | Q(since=cursor.at, pk__gt=cursor.id))
    found = list(rows.select_related("target", "run").order_by("since", "pk")[: SHOWN + 1])
    more, found = len(found) > SHOWN, found[:SHOWN]
    payloads = _readable(user, tenant)
    at_risk, partial = _at_risk(every, tenant, payloads)
    return Queue(
        rows=_rows(tenant, found, payloads),
        page=Page(
            shown=len(found),
            total=counted(every),
            next=str(Cursor(found[-1].since, found[-1].pk)) if more else "",
            first=cursor is None,
        ),
        at_risk=at_risk,
        at_risk_partial=partial,
        operates=permissions.visible(user, Verb.OPERATE).filter(tenant=tenant).exists(),
        elsewhere=counted(_seen_only(user, tenant)),
    )


def rows(user: User, tenant: Tenant, found: Sequence[Effect]) -> tuple[Row, ...]:
    """Effects as lines of the queue, in the same order; they come with target and run. Amounts are told to who may see payloads."""
    return _rows(tenant, found, _readable(user, tenant))


def _rows(tenant: Tenant, found: Sequence[Effect], payloads: set[UUID]) -> tuple[Row, ...]:
    requests = bodies([effect.request_id for effect in found if effect.run.workflow_id in payloads], tenant.pk)
    last, handed = _last_answers(tenant, found), _handed(tenant, found)
    return tuple(_row(effect, str(money(requests.get(effect.request_id)) or ""), last, handed) for effect in found)


def _handed(tenant: Tenant, effects: Sequence[Effect]) -> dict[UUID, str]:
    """What settling each call does to the open handoff about it."""
    ids = [effect.pk for effect in effects]
    rows = Handoff.objects.of(tenant).filter(effect_id__in=ids, state__in=OPEN_HANDOFFS)
    return {effect: _closes(*more) for effect, *more in rows.values_list("effect_id", "reason", "owner__name")}


def _closes(reason: str, owner: str | None) -> str:
    if owner:
        return f"{shown(owner)} has its handoff, and closes it then"
    last = ", with the last unknown call of its run" if reason == UNRECONCILED else ""
    return f"settling it closes its handoff{last}"


def _readable(user: User, tenant: Tenant) -> set[UUID]:
    """The workflow types whose contents this person may see."""
    return set(permissions.visible(user, Verb.SEE_PAYLOADS).filter(tenant=tenant).values_list("pk", flat=True))


def _at_risk(every: QuerySet[Effect], tenant: Tenant, payloads: set[UUID]) -> tuple[tuple[str, ...], bool]:
    """The sums over at most a thousand requests, and whether there is more that isn't in them."""
    ids = list(every.order_by("pk").values_list("request_id", "run__workflow_id")[: MANY + 1])
    seen = [request for request, workflow in ids[:MANY] if workflow in payloads]
    small = Body.objects.of(tenant).filter(pk__in=seen, size__lte=REQUEST_READ)
    found = [worth for body in small if (worth := money(body)) is not None]
    return tuple(str(amount) for amount in amounts.total(found)), len(ids) > MANY or len(found) < len(ids)


def _last_answers(tenant: Tenant, effects: Sequence[Effect]) -> dict[UUID, EffectReport]:
    """The newest report of each: of all reports of these effects, those with the highest ordinal."""
    rows = EffectReport.objects.of(tenant).filter(effect_id__in=[effect.pk for effect in effects])
    newest: dict[UUID, EffectReport] = {}
    for report in rows.order_by("-ordinal")[: SHOWN * 20]:
        newest.setdefault(report.effect_id, report)
    return newest


def _row(effect: Effect, amount: str, last: dict[UUID, EffectReport], handed: dict[UUID, str]) -> Row:
    return Row(
        id=effect.pk,
        what=shown(effect.name) + (f", {shown(effect.resource)}" if effect.resource else ""),
        state="disputed" if effect.disputed else effect.state,
        why=_why(effect, last.get(effect.pk)),
        target=shown(effect.target.name),
        task=shown(effect.run.task),
        amount=amount,
        asked=_tried(effect),
        since=effect.answer_by or effect.proposed_at,
        handoff=handed.get(effect.pk, ""),
    )


def _tried(effect: Effect) -> str:
    """How often it was tried to find out; a target that was left alone then was not asked, and one without a look-up never is."""
    if effect.target.lookup is None:
        return ""
    return (
        f"looked up {effect.looks} times" if effect.looks > 1 else "looked up once" if effect.looks else "not asked yet"
    )


def _why(effect: Effect, report: EffectReport | None) -> str:
    if effect.disputed:
        return "New evidence contradicts what was recorded."
    if effect.state == EffectState.IN_FLIGHT:
        return "The call’s answer is overdue."
    if report is not None and report.kind in {ReportKind.LOOKUP, ReportKind.REPLAY}:
        if report.cause in UNASKABLE:
            return f"{cause(report.cause).capitalize()}."
        note = f", {cause(report.cause)}" if report.cause else ""
        return f"The target was asked: {LOOKS.get(report.answer, words(report.answer))}{shown(note)}."
    if report is not None and report.kind == ReportKind.SETTLE:
        return "The worker couldn’t tell what its call did."
    return "The worker was lost while its call was out."


def heard(tenant: Tenant, effect_id: UUID, answer: LookAnswer) -> str:
    """What came of asking the target about an effect, in a sentence."""
    if answer is not LookAnswer.CANNOT_TELL:
        return f"The target answered: {LOOKS[answer]}."
    report = EffectReport.objects.of(tenant).filter(effect_id=effect_id).order_by("-ordinal").first()
    if report is not None and report.cause in UNASKABLE:
        return f"{cause(report.cause).capitalize()}."
    return "The target could not say, or did not answer; what was heard stands below."


def effect(user: User, tenant: Tenant, effect_id: UUID) -> EffectPage:
    """One effect for whoever may see its run; only operators get choices. Http404 for what this person can't see."""
    rows = Effect.objects.of(tenant).filter(pk=effect_id, run__head__in=seen_by(user, tenant))
    found: Effect | None = rows.select_related("target", "run__workflow", "run__head").first()
    if found is None:
        raise Http404
    workflow: WorkflowType = found.run.workflow
    payloads = permissions.can(user, Verb.SEE_PAYLOADS, workflow)
    operates = permissions.can(user, Verb.OPERATE, workflow)
    line = effect_lines.lines(tenant, [found], may_see=payloads)[0]
    request = bodies([found.request_id], tenant.pk).get(found.request_id) if payloads else None
    amount = money(request)
    asked = found.attempt > 0
    offered = verdicts.choices(found) if operates else ()
    return EffectPage(
        line=line,
        headline=_headline(found, str(amount or ""), parsed(request)),
        situation=_situation(found, found.run.head),
        facts=_facts(tenant, found, str(amount or ""), payloads),
        guarantees=effect_lines.guarantees(found.target),
        history=line.reports,
        recorded=line.recorded,
        has_result=found.result_id is not None,
        choices=offered,
        proves=_proves(found, offered),
        corrects=bool(line.recorded) and not found.disputed,
        why_no_choice=_why_no_choice(found, operates),
        can_ask=operates and asked and found.target.lookup is not None and found.state in ASKABLE,
        run_id=found.run_id,
        run_status=found.run.head.status,
        task=shown(found.run.task),
    )


def _proves(effect: Effect, offered: Sequence[verdicts.Choice]) -> str:
    """When a reference is needed; '' where it is for no answer that can be chosen."""
    if any(choice.needs_reference for choice in offered):
        return f"Needed for “{next(choice.label for choice in offered if choice.needs_reference)}”."
    if any(choice.value == "committed" for choice in offered):
        return "Only where you found it under another one than the recorded."
    return ""


def _headline(effect: Effect, amount: str, arguments: Any) -> str:
    """In the words of the tool's renderer; without one, or without the arguments, which call it is and what it is worth."""
    told = words_for(Asked(effect.tool, effect.target.name, effect.resource, arguments))
    if told.rated:
        return shown(told.headline)
    place = f" for {shown(effect.resource)}" if effect.resource else ""
    return f"Call “{shown(effect.name)}”{place} at {shown(effect.target.name)}" + (f": {amount}" if amount else "")


_SITUATIONS = {
    EffectState.PROPOSED: "It has not been called. Nothing happened at the target.",
    EffectState.IN_FLIGHT: "The call was allowed and its answer is awaited.",
    EffectState.UNKNOWN: "The call was allowed and nobody knows whether it went through. Nothing is sent again until that is known.",
    EffectState.COMMITTED: "It was done. Nothing is sent again.",
    EffectState.WITHDRAWN: "It was withdrawn before any call. Nothing happened at the target.",
    EffectState.WRITTEN_OFF: "It was given up: nobody will find out, and nothing is sent again.",
}
_REFUSED = "The target refused it for good. It is not tried again."
_HELD = {
    "committed": "It was done: a person looked into what spoke against it. Nothing is sent again.",
    "failed": "It was recorded as done, and a person found that it was not. Nothing is sent again.",
}
_UNSETTLED = "The run is blocked, and can go on only once this is settled."
_RUNS = {
    "running": "The run is with a worker.",
    "waiting": "The run waits.",
    "waking": "The run is being checked and goes on by itself if the checks pass.",
    "ready": "The run is cleared; the next worker takes it.",
    "blocked": "The run is blocked until a person closes its handoff.",
    "completed": "The run has completed.",
    "failed": "The run has failed.",
    "cancelled": "The run was cancelled.",
}


def _situation(effect: Effect, head: RunHead) -> str:
    state = EffectState(effect.state)
    what = _SITUATIONS.get(state, _REFUSED)
    if state is EffectState.FAILED and effect.cause != "rejected":
        what = f"It was not done. {verdicts.again(effect)}"
    if effect.held:
        what = _HELD[effect.held]
    elif state is EffectState.COMMITTED and effect.result_id is not None:
        what = "It was done. The run has its result and nothing is sent again."
    if effect.disputed:
        recorded = "not done" if state is EffectState.FAILED else "done"
        what = (
            _twice(effect)
            or f"It was recorded as {recorded}, and newer evidence says otherwise. The record keeps both."
        )
    unsettled = head.status == "blocked" and (effect.disputed or state in OPEN)
    return f"{what} {_UNSETTLED if unsettled else _RUNS[head.status]}"


def _twice(effect: Effect) -> str:
    """A dispute of a call that was sent again, to a target that can't know that it is the same one."""
    if effect.attempt < 2 or effect.target.keyed:
        return ""
    return (
        "It may have happened twice: what is told of one attempt doesn't fit what was held when the next was allowed."
    )


def _facts(tenant: Tenant, effect: Effect, amount: str, payloads: bool) -> tuple[Fact, ...]:
    remembered = ""
    if effect.target.keyed and effect.first_permit_at and effect.target.key_retention:
        until = effect.first_permit_at + timedelta(seconds=effect.target.key_retention)
        remembered = f"{shown(effect.target.name)} remembers it until {absolute(until)}"
    return (
        Fact(
            "At risk" if effect.state == EffectState.UNKNOWN else "Amount",
            amount or ("no amount in the request" if payloads else HIDDEN),
        ),
        Fact("Key", effect.key, mono=True, copy_text=effect.key, note=remembered),
        Fact("Resource", shown(effect.resource) or "none named", mono=bool(effect.resource)),
        Fact("Seen version", shown(effect.observed_version) or "none", mono=bool(effect.observed_version)),
        Fact("Tool", shown(effect.tool), mono=True),
        Fact("Reference", shown(effect.reference), mono=True, copy_text=shown(effect.reference)),
        Fact("Run", shown(effect.run.task), href=reverse("run", args=[tenant.slug, effect.run_id])),
        *((Fact("First allowed", time=effect.first_permit_at),) if effect.first_permit_at else ()),
        *(
            (Fact("Asked next", time=effect.due_at, note="by itself, nobody has to act"),)
            if effect.state == EffectState.UNKNOWN and effect.target.lookup is not None
            else ()
        ),
    )


def _why_no_choice(effect: Effect, operates: bool) -> str:
    if not operates:
        return "You may see this effect. Settling it needs the right to operate this workflow."
    if effect.state == EffectState.IN_FLIGHT:
        return "Its call may still be under way. It can be settled by hand once it is unknown."
    return "" if effect.state in SETTLED else "There is nothing to settle."
