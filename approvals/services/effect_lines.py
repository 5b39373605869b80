"""Effects as pages show them: state, key, permits as attempts, reports in order, what the target guarantees."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from approvals.labels import LOOKS, REPORTS, UNASKABLE, cause
from approvals.services import actors
from approvals.services.pieces import Content, Fact, Item, bodies, content
from approvals.templatetags.console import span
from approvals.templatetags.console import visible_text as shown
from ledger.domain.effects import CORRECTED, EffectState, LookAnswer, ReportKind
from ledger.domain.phrases import words
from ledger.domain.targets import replayed
from ledger.models import Effect, EffectReport, Permit, Tenant, TransitionInstance

MOST = 100
STATES = {
    "applied": "committed",
    "refused": "failed",
    "absent": "closed",
    "in_progress": "queued",
    "differs": "disputed",
}


@dataclass(frozen=True, slots=True)
class Attempt:
    """One permit: leave for one call."""

    number: int
    at: datetime
    send_by: datetime
    answer_by: datetime
    fence: str
    precondition: str


@dataclass(frozen=True, slots=True)
class EffectLine:
    """One effect. Contents are hidden from whoever may not see payloads."""

    id: UUID
    name: str
    state: str
    cause: str
    disputed: bool
    tool: str
    target: str
    resource: str
    version: str
    key: str
    reference: str
    at: datetime
    attempts: tuple[Attempt, ...]
    reports: tuple[Item, ...]
    recorded: tuple[Item, ...]
    request: Content
    result: Content
    told_apart: str = ""
    """What tells it from another of the same name: which opening of a transition it is of, and whether a later one replaced it."""


def lines(tenant: Tenant, effects: Sequence[Effect], *, may_see: bool) -> tuple[EffectLine, ...]:
    """These effects with their permits and reports: six queries, however many. Effects come with their target."""
    ids = [effect.pk for effect in effects]
    permits: dict[UUID, list[Permit]] = defaultdict(list)
    for permit in Permit.objects.of(tenant).filter(effect_id__in=ids).order_by("attempt")[: MOST * 10]:
        permits[permit.effect_id].append(permit)
    told: dict[UUID, list[EffectReport]] = defaultdict(list)
    reports = list(EffectReport.objects.of(tenant).filter(effect_id__in=ids).order_by("-reported_at")[: MOST * 5])
    for report in reports:
        told[report.effect_id].append(report)
    wanted = [part for effect in effects for part in (effect.request_id, effect.result_id)]
    found = bodies([*wanted, *(report.evidence_id for report in reports)], tenant.pk)
    name = actors.names(tenant.pk, {report.actor for report in reports})

    def read(body_id: UUID | None) -> Content:
        return content(found.get(body_id) if body_id else None, may_see=may_see)

    def line(effect: Effect) -> EffectLine:
        own = told[effect.pk]
        early = too_early(effect, own, permits[effect.pk])
        reports = tuple(
            replace(item, text=f"{item.text} · {EARLY}") if report.pk in early else item
            for report, item in zip(own, items(own, name, read), strict=True)
        )
        recorded = items(accounts(effect, own), name, read)
        return _line(effect, permits[effect.pk], (reports, recorded), read)

    apart = told_apart(tenant, effects)
    return tuple(replace(line(effect), told_apart=apart.get(effect.pk, "")) for effect in effects)


def told_apart(tenant: Tenant, effects: Sequence[Effect]) -> dict[UUID, str]:
    """For effects of a run that share their name with another: where each was opened, and which of them were replaced. One query at most."""
    shared: dict[tuple[UUID, str], list[Effect]] = defaultdict(list)
    for effect in effects:
        shared[effect.run_id, effect.name].append(effect)
    alike = [sorted(some, key=lambda each: each.proposed_at) for some in shared.values() if len(some) > 1]
    opened = {effect.opened_instance_id for some in alike for effect in some}
    rows = TransitionInstance.objects.of(tenant).filter(pk__in=opened)
    names = {row.pk: f"of “{shown(row.transition)}” after checkpoint {row.opened_seq}" for row in rows}
    return {
        effect.pk: ", ".join(
            part for part in (names.get(effect.opened_instance_id, ""), _replaced(effect, some)) if part
        )
        for some in alike
        for effect in some
    }


def _replaced(effect: Effect, alike: Sequence[Effect]) -> str:
    return "replaced by a later one" if effect.state == "withdrawn" and effect.pk != alike[-1].pk else ""


def settles(effect: Effect, report: EffectReport) -> bool:
    """Is this the report that a settled effect's outcome was taken from?"""
    return bool(report.counted) and effect.settled_at is not None and report.reported_at == effect.settled_at


EARLY = "too early to count: the call could still arrive, or not show yet"


def too_early(effect: Effect, reports: Sequence[EffectReport], permits: Sequence[Permit]) -> frozenset[UUID]:
    """The reports that it wasn't there from before anybody could know that; they are followed by another, of the same words."""
    shows = timedelta(seconds=effect.target.visibility_delay)
    until = {permit.attempt: permit.answer_by + shows for permit in permits}
    absent = (each for each in reports if each.kind == ReportKind.LOOKUP and each.answer == LookAnswer.ABSENT)
    return frozenset(
        each.pk
        for each in absent
        if each.attempt in until and each.reported_at < until[each.attempt] and not each.counted
    )


AGAINST = {
    EffectState.COMMITTED: frozenset({"failed", "refused", "absent", "differs"}),
    EffectState.FAILED: frozenset({"committed", "accepted", "applied", "differs"}),
}
"""What contradicts a recorded outcome."""


def accounts(effect: Effect, reports: Sequence[EffectReport]) -> list[EffectReport]:
    """What the recorded outcome rests on, the corrections of its reference, and, while it is disputed, the newest word against it; the reports come
    newest first."""
    settling = [report for report in reports if settles(effect, report)][:1]
    corrected = [report for report in reversed(reports) if report.cause == CORRECTED]
    against = [report for report in reports if report.answer in AGAINST.get(EffectState(effect.state), ())]
    doubts = [report for report in against if effect.disputed and report not in settling][:1]
    return settling + corrected + doubts


def _line(
    effect: Effect,
    permits: Iterable[Permit],
    reports: tuple[tuple[Item, ...], tuple[Item, ...]],
    read: Callable[[UUID | None], Content],
) -> EffectLine:
    return EffectLine(
        id=effect.pk,
        name=shown(effect.name),
        state=effect.state,
        cause=cause(effect.cause) if effect.cause else "",
        disputed=effect.disputed,
        tool=shown(effect.tool),
        target=shown(effect.target.name),
        resource=shown(effect.resource),
        version=shown(effect.observed_version),
        key=effect.key,
        reference=shown(effect.reference),
        at=effect.settled_at or effect.first_permit_at or effect.proposed_at,
        attempts=tuple(
            Attempt(
                number=permit.attempt,
                at=permit.permitted_at,
                send_by=permit.send_by,
                answer_by=permit.answer_by,
                fence=f"{permit.fence_epoch}.{permit.fence_count}",
                precondition=shown(permit.precondition),
            )
            for permit in permits
        ),
        reports=reports[0],
        recorded=reports[1],
        request=read(effect.request_id),
        result=read(effect.result_id),
    )


def items(
    reports: Iterable[EffectReport], name: Callable[[str], str], read: Callable[[UUID | None], Content]
) -> tuple[Item, ...]:
    """What was asked, answered, reported and judged, in the order given."""
    return tuple(_report(report, name(report.actor), read(report.evidence_id)) for report in reports)


def _report(report: EffectReport, actor: str, evidence: Content) -> Item:
    asked = report.kind in {"lookup", "replay"}
    answer = LOOKS.get(report.answer, words(report.answer)) if asked else words(report.answer)
    title = f"{REPORTS.get(report.kind, words(report.kind))}: {answer}"
    if asked and report.cause in UNASKABLE:
        title = cause(report.cause).capitalize()
    if report.kind == "lapse":
        received = "No answer in time, and nobody can be asked: the receipt that came before counts"
        title = received if report.answer == "committed" else REPORTS["lapse"]
    if report.cause == CORRECTED:
        title = "Reference corrected by hand"
    notes = [f"attempt {report.attempt}"]
    if report.cause and report.cause != CORRECTED and not (asked and report.cause in UNASKABLE):
        notes.append(cause(report.cause))
    if report.reference:
        notes.append(f"reference {report.reference}")
    if report.fence_count is not None:
        notes.append(f"fence {report.fence_epoch}.{report.fence_count}")
    if not report.counted and report.kind in {"settle", "late"}:
        notes.append("kept as evidence; it decided nothing")
    return Item(
        at=report.reported_at,
        title=shown(title),
        state=_state(report),
        text=shown(" · ".join(notes)),
        actor=actor,
        details=_found(evidence.text) if report.kind == ReportKind.VERDICT else evidence.text,
        details_label="What they found" if report.kind == ReportKind.VERDICT else "What it said",
    )


def _found(evidence: str) -> str:
    """A person's own words, which are kept as a document of one text."""
    try:
        return str(json.loads(evidence)["text"])
    except (ValueError, KeyError, TypeError):
        return evidence


def _state(report: EffectReport) -> str:
    if report.answer in {"committed", "failed", "unknown", "accepted", "cannot_tell"}:
        return str(report.answer)
    return STATES.get(report.answer, "queued")


def _asked_by(target: Any) -> str:
    if target.lookup is None:
        return "can’t be asked"
    return "can be asked by sending the same again" if replayed(target.lookup) else "can be asked by key"


def guarantees(target: Any) -> tuple[Fact, ...]:
    """What a target declares, in words: they decide what can be asked and what may be sent again."""
    rows: Mapping[str, str] = {
        "Key": "recognises a repeated key" if target.keyed else "does not know keys: a repeat acts twice",
        "Repeat": "same key answers the first result" if target.first_result_replayed else "not promised",
        "Remembers keys": span(target.key_retention) if target.key_retention else "no promise",
        "Look-up": _asked_by(target),
        "Shows a call after": span(target.visibility_delay) if target.visibility_delay else "at once",
        "Answers within": span(target.call_limit),
    }
    return tuple(Fact(label, value) for label, value in rows.items())
