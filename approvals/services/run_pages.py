"""Everything that a run's page shows, read in a number of queries that the length of its history doesn't change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import CharField, Exists, OuterRef, QuerySet, Subquery
from django.http import Http404
from django.urls import reverse

from approvals.labels import DEADLINES, HEALTH
from approvals.models import ApprovalRequest
from approvals.services import effect_lines, run_parts, timelines, verification_pages
from approvals.services.effect_lines import EffectLine
from approvals.services.pieces import Fact, Item
from approvals.services.run_lists import seen_by
from approvals.services.run_parts import AuthorityLine, CheckpointLine, Part, WaitLine, WakeLine
from approvals.services.verification_pages import Verified
from approvals.templatetags.console import visible_text as shown
from ledger.domain.explain import explain, failed
from ledger.domain.handoffs import OPEN_HANDOFFS, HandoffRow
from ledger.domain.health import health
from ledger.domain.identity import Verb
from ledger.domain.runs import ENDED, ClearanceRow
from ledger.domain.views import RunView
from ledger.domain.waits import Inaction, silence
from ledger.models import Agent, Effect, Handoff, RunHead, Tenant, User, Worker
from ledger.services import permissions
from ledger.services.endings import endings
from ledger.services.standings import telling
from ledger.services.views import telling_view

MOST_EFFECTS = 50
READINGS = 3
"""How often a page is read at most while its run goes on moving."""
FENCE = "the owner’s number: a write under an older one is refused"


@dataclass(frozen=True, slots=True)
class Silence:
    """When nobody's acting begins to matter, and what it does then."""

    due: datetime
    says: str


@dataclass(frozen=True, slots=True)
class RunPage:
    """A run as its page shows it."""

    id: UUID
    task: str
    workflow: str
    status: str
    intent: str
    sentence: str
    actor: str
    health_badge: tuple[str, str] | None
    silence: Silence | None
    moved_at: datetime
    attention: str
    attention_href: str
    text: str
    facts: tuple[Fact, ...]
    attributes: tuple[Fact, ...]
    owner: tuple[Fact, ...]
    next: tuple[Fact, ...]
    wait: WaitLine | None
    wakes: tuple[WakeLine, ...]
    wakes_part: Part
    effects: tuple[EffectLine, ...]
    more_effects: bool
    checkpoints: tuple[CheckpointLine, ...]
    checkpoints_part: Part
    authority: tuple[AuthorityLine, ...]
    more_authority: bool
    timeline: tuple[Item, ...]
    older: int | None
    sees_payloads: bool
    verified: Verified | None
    head_seq: int


def length(user: User, tenant: Tenant, run_id: UUID) -> int:
    """How many entries the run's record has: one query. Http404 for what this person can't see."""
    found: int | None = seen_by(user, tenant).filter(run_id=run_id).values_list("head_seq", flat=True).first()
    if found is None:
        raise Http404
    return found


@dataclass(frozen=True, slots=True)
class Where:
    """Before which entry of the journal the timeline goes on, before which checkpoint the checkpoints do, and where the wakes do ('' or None: at
    the newest)."""

    timeline: int | None = None
    checkpoints: int | None = None
    wakes: str = ""


NEWEST = Where()


def run(user: User, tenant: Tenant, run_id: UUID, where: Where = NEWEST) -> RunPage:
    """The page of one run, from the newest or from `where`. Http404 for what this person can't see.

    A run that moves while it is read is read again, so that no part of its page contradicts another.
    """
    for _ in range(READINGS - 1):
        page = _read(user, tenant, run_id, where)
        if length(user, tenant, run_id) == page.head_seq:
            return page
    return _read(user, tenant, run_id, where)


def _read(user: User, tenant: Tenant, run_id: UUID, where: Where) -> RunPage:
    rows = _named(user, tenant).filter(run_id=run_id)
    head: RunHead | None = verification_pages.with_last(rows, tenant).first()
    if head is None:
        raise Http404
    payloads = bool(head.sees_payloads)  # type: ignore[attr-defined]
    view = telling_view(run_id, tenant.pk, ended=head.status in ENDED)
    newest = Effect.objects.of(tenant).filter(run_id=run_id).select_related("target").order_by("-proposed_at", "-pk")
    found = list(newest[: MOST_EFFECTS + 1])
    effects: dict[UUID, Any] = {effect.pk: effect for effect in [*_beyond(tenant, view, found), *found]}
    asked = run_parts.requests_of(tenant, run_id)
    by_effect = {request.subject_id: request.pk for request in reversed(asked)}
    named = {str(e.pk): {"name": e.name, "target": e.target.name, "resource": e.resource} for e in found}
    named |= {str(request.pk): named[str(request.subject_id)] for request in asked if str(request.subject_id) in named}
    lines = effect_lines.lines(tenant, found[:MOST_EFFECTS], may_see=payloads)
    told = explain(view, endings([head]).get(run_id), owner=head.handoff_owner or "")  # type: ignore[attr-defined]
    unwell = health(view, intact=head.checked_intact is not False)  # type: ignore[attr-defined]
    timeline, older = timelines.of_run(tenant, run_id, named, where.timeline)
    wakes, wakes_part = run_parts.wakes(tenant, run_id, {key: line["name"] for key, line in named.items()}, where.wakes)
    checkpoints, checkpoints_part = run_parts.checkpoints(tenant, run_id, where.checkpoints, may_see=payloads)
    apart = {line.id: line.told_apart for line in lines}
    authority, more_authority = run_parts.authority(tenant, run_id, asked, effects, apart, may_see=payloads)
    attention, attention_href = _attention(tenant, found, view.handoff, asked)
    return RunPage(
        id=run_id,
        task=shown(head.run.task),
        workflow=shown(head.workflow.name),
        status=head.status,
        intent=head.intent,
        sentence=shown(told.sentence),
        actor=shown(told.actor),
        health_badge=HEALTH.get(unwell) if unwell else None,
        silence=_silence(view),
        moved_at=head.moved_at,
        attention=attention,
        attention_href=attention_href,
        text=shown(head.run.text) if payloads else "",
        facts=_facts(head),
        attributes=_attributes(head),
        owner=_owner(head, view.now),
        next=_next(head, view.clearance),
        wait=run_parts.wait(tenant, run_id, effects, by_effect, view.now),
        wakes=wakes,
        wakes_part=wakes_part,
        effects=lines,
        more_effects=len(found) > MOST_EFFECTS,
        checkpoints=checkpoints,
        checkpoints_part=checkpoints_part,
        authority=authority,
        more_authority=more_authority,
        timeline=timeline,
        older=older,
        sees_payloads=payloads,
        verified=verification_pages.last(tenant, head),
        head_seq=head.head_seq,
    )


def _named(user: User, tenant: Tenant) -> QuerySet[RunHead]:
    """Heads that this person may see, with what else a page says of one: its run and lease, the names around it, and what the person may read."""
    agents = Agent.objects.of(tenant).filter(pk=OuterRef("run__agent_id"))
    people = User.objects.filter(pk=OuterRef("run__on_behalf_of_id"), memberships__tenant_id=tenant.pk)
    workers = Worker.objects.of(tenant).filter(pk=OuterRef("run__lease__worker_id"))
    handoffs = Handoff.objects.of(tenant).filter(run_id=OuterRef("run_id"), blocks_run=True, state__in=OPEN_HANDOFFS)
    readable = permissions.visible(user, Verb.SEE_PAYLOADS).filter(pk=OuterRef("workflow_id"))

    def one(rows: QuerySet[Any], field: str) -> Subquery:
        return Subquery(rows.values(field)[:1], output_field=CharField())

    rows = seen_by(user, tenant).select_related("run__lease", "workflow")
    return rows.annotate(
        agent_name=one(agents, "name"),
        agent_owner=one(agents, "owner__name"),
        person_name=one(people, "name"),
        worker_name=one(workers, "name"),
        handoff_owner=one(handoffs, "owner__name"),
        worker_code=one(workers, "code_digest"),
        sees_payloads=Exists(readable),
    )


def _beyond(tenant: Tenant, view: RunView, found: Sequence[Effect]) -> list[Effect]:
    """Effects that say something of how the run stands, where they are older than those that are shown."""
    if len(found) <= MOST_EFFECTS:
        return []
    awaited = {member.effect_id for member in view.members if member.effect_id}
    return list(telling(tenant.pk, [view.head.run_id], awaited))


def _silence(view: RunView) -> Silence | None:
    """What comes by itself, whatever people do; nothing once the run has ended."""
    if view.handoff is not None:
        return Silence(view.handoff.due_at, "Handoff to be closed by")
    if view.wait is not None:
        action, ends = silence(view.wait, view.members, failed(view.effects))
        if action is Inaction.ASK:
            return Silence(ends, "The engine asks again")
        return Silence(ends, f"If nothing {'else ' if action is Inaction.FIRE else ''}comes, {DEADLINES[action]}")
    if view.wake is not None:
        return Silence(view.wake.due_at, "Checked at")
    if view.head.status == "running" and view.lease is not None:
        return Silence(view.lease.expires_at, "A silent worker loses it")
    if view.head.status == "ready" and view.clearance is not None:
        return Silence(view.clearance.ready_by, "Checked again, if nobody takes it")
    return None


def _attention(
    tenant: Tenant, effects: Sequence[Effect], handoff: HandoffRow | None, asked: Sequence[ApprovalRequest]
) -> tuple[str, str]:
    """What a person should open first, and where."""
    if handoff is not None:
        return "Open the handoff", reverse("handoff", args=[tenant.slug, handoff.id])
    for effect in effects:
        if effect.state == "unknown" or effect.disputed:
            return "Open in Reconcile", reverse("effect", args=[tenant.slug, effect.pk])
    for request in asked:
        if request.state == "pending":
            return "Open the request", reverse("approval", args=[tenant.slug, request.pk])
    return "", ""


def _facts(head: RunHead) -> tuple[Fact, ...]:
    run = head.run
    agent, owner, person = head.agent_name, head.agent_owner, head.person_name  # type: ignore[attr-defined]
    return (
        Fact("Workflow", f"{shown(head.workflow.name)}, version {shown(head.version)}"),
        Fact("Agent", shown(agent), note=f"owned by {shown(owner)}" if agent else ""),
        Fact("Acts for", shown(person) or "nobody named"),
        Fact("Started", time=run.created_at),
        Fact("Ended", time=head.ended_at) if head.ended_at else Fact("Last moved", time=head.moved_at),
        Fact("Run", str(run.pk), mono=True, copy_text=str(run.pk)),
    )


def _attributes(head: RunHead) -> tuple[Fact, ...]:
    return tuple(Fact(shown(name), shown(value), mono=True) for name, value in sorted(head.run.attributes.items())[:20])


def _owner(head: RunHead, now: datetime) -> tuple[Fact, ...]:
    """Who holds the run: worker, code, fence, lease."""
    lease = getattr(head.run, "lease", None)
    name, code = head.worker_name, head.worker_code  # type: ignore[attr-defined]
    fence = Fact("Fence", f"{head.fence_epoch}.{head.fence_count}", mono=True, note=FENCE)
    if lease is None:
        return (Fact("Worker", "none yet"), fence)
    return (
        Fact(
            "Worker",
            shown(name) or f"worker {lease.worker_id.hex[-8:]}",
            note="" if lease.active else "no longer holds it",
        ),
        Fact("Claimed", time=lease.claimed_at),
        Fact("Lease until" if lease.active and lease.expires_at > now else "Lease ended", time=lease.expires_at),
        Fact("Version", shown(lease.version), note=f"code {shown(code)}" if code else ""),
        fence,
    )


def _next(head: RunHead, clearance: ClearanceRow | None) -> tuple[Fact, ...]:
    """The one next transition, and what its clearance allows."""
    if head.status in ENDED:
        return ()
    rows = [Fact("Transition", shown(head.transition), mono=True)]
    if clearance is None:
        return (
            *rows,
            Fact("Cleared", "by the commit before it" if head.status == "running" else "not yet: it is checked first"),
        )
    return (
        *rows,
        Fact("Targets", shown(", ".join(clearance.targets)) or "none"),
        Fact("Tools", shown(", ".join(clearance.tools)) or "as the transition declares"),
        Fact("Cleared until", time=clearance.valid_until),
        *([Fact("Claim by", time=clearance.ready_by)] if head.status == "ready" else []),
    )
