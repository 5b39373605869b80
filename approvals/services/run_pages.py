"""Everything that a run's page shows, read in a number of queries that the length of its history doesn't change."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.http import Http404
from django.urls import reverse

from approvals.domain.health import Standing, standing
from approvals.labels import HEALTH
from approvals.services import effect_lines, run_parts, timelines, verification_pages
from approvals.services.effect_lines import EffectLine
from approvals.services.pieces import Fact, Item
from approvals.services.run_lists import seen_by, surroundings
from approvals.services.run_parts import AuthorityLine, CheckpointLine, WaitLine, WakeLine
from approvals.services.verification_pages import Verified
from approvals.templatetags.console import visible_text as shown
from ledger.domain.identity import Verb
from ledger.domain.runs import ENDED
from ledger.models import Agent, Effect, Handoff, RunHead, Tenant, User, Worker
from ledger.services import explain, facts, permissions

MOST_EFFECTS = 50
READINGS = 3
"""How often a page is read at most while its run goes on moving."""
NOBODY = UUID(int=0)
FENCE = "each owner has its own number; a write under an older one is refused"


@dataclass(frozen=True, slots=True)
class RunPage:
    """A run as its page shows it."""

    id: UUID
    task: str
    workflow: str
    status: str
    intent: str
    stands: Standing
    health_badge: tuple[str, str] | None
    attention: str
    attention_href: str
    text: str
    facts: tuple[Fact, ...]
    attributes: tuple[Fact, ...]
    owner: tuple[Fact, ...]
    next: tuple[Fact, ...]
    wait: WaitLine | None
    wakes: tuple[WakeLine, ...]
    effects: tuple[EffectLine, ...]
    more_effects: bool
    checkpoints: tuple[CheckpointLine, ...]
    authority: tuple[AuthorityLine, ...]
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


def run(user: User, tenant: Tenant, run_id: UUID, before: int | None = None) -> RunPage:
    """The page of one run; `before` is the journal's sequence before which its timeline goes on. Http404 for what this person can't see.

    A run that moves while it is read is read again, so that no part of its page contradicts another.
    """
    for _ in range(READINGS - 1):
        page = _read(user, tenant, run_id, before)
        if length(user, tenant, run_id) == page.head_seq:
            return page
    return _read(user, tenant, run_id, before)


def _read(user: User, tenant: Tenant, run_id: UUID, before: int | None) -> RunPage:
    rows = seen_by(user, tenant).select_related("run__lease", "workflow").filter(run_id=run_id)
    head: RunHead | None = verification_pages.with_last(rows, tenant).first()
    if head is None:
        raise Http404
    payloads = permissions.can(user, Verb.SEE_PAYLOADS, head.workflow)
    around = surroundings(tenant, [head])[run_id]
    found = list(
        Effect.objects.of(tenant)
        .filter(run_id=run_id)
        .select_related("target")
        .order_by("-proposed_at", "-pk")[: MOST_EFFECTS + 1]
    )
    effects = {effect.pk: effect for effect in [*around.effects, *found]}
    asked = run_parts.requests_of(tenant, run_id)
    by_effect = {request.subject_id: request.pk for request in reversed(asked)}
    named = {str(e.pk): {"name": e.name, "target": e.target.name} for e in found}
    named |= {str(request.pk): named[str(request.subject_id)] for request in asked if str(request.subject_id) in named}
    lines = effect_lines.lines(tenant, found[:MOST_EFFECTS], may_see=payloads)
    timeline, older = timelines.of_run(tenant, run_id, named, before)
    stands = standing(head, around, facts.read().now)
    attention, attention_href = _attention(tenant, found, around.handoff)
    return RunPage(
        id=run_id,
        task=shown(head.run.task),
        workflow=shown(head.workflow.name),
        status=head.status,
        intent=head.intent,
        stands=Standing(shown(explain.explain(run_id, tenant.pk).sentence), shown(stands.actor), stands.health),
        health_badge=HEALTH.get(stands.health),
        attention=attention,
        attention_href=attention_href,
        text=shown(head.run.text) if payloads else "",
        facts=_facts(tenant, head),
        attributes=_attributes(head),
        owner=_owner(tenant, head),
        next=_next(head, around.clearance),
        wait=run_parts.wait(tenant, run_id, effects, by_effect),
        wakes=run_parts.wakes(tenant, run_id, {key: line["name"] for key, line in named.items()}),
        effects=lines,
        more_effects=len(found) > MOST_EFFECTS,
        checkpoints=run_parts.checkpoints(tenant, run_id, may_see=payloads),
        authority=run_parts.authority(tenant, run_id, asked, effects, {line.id: line.told_apart for line in lines}),
        timeline=timeline,
        older=older,
        sees_payloads=payloads,
        verified=verification_pages.last(tenant, head),
        head_seq=head.head_seq,
    )


def _attention(tenant: Tenant, effects: list[Effect], handoff: Handoff | None) -> tuple[str, str]:
    """What a person should open first, and where."""
    if handoff is not None:
        return "Open the handoff", reverse("handoff", args=[tenant.slug, handoff.pk])
    for effect in effects:
        if effect.state == "unknown" or effect.disputed:
            return "Open in reconcile", reverse("effect", args=[tenant.slug, effect.pk])
    return "", ""


def _facts(tenant: Tenant, head: RunHead) -> tuple[Fact, ...]:
    run = head.run
    agent = Agent.objects.of(tenant).filter(pk=run.agent_id or NOBODY).select_related("owner").first()
    person = User.objects.filter(pk=run.on_behalf_of_id or NOBODY, memberships__tenant_id=tenant.pk).first()
    return (
        Fact("Workflow", f"{shown(head.workflow.name)}, version {shown(head.version)}"),
        Fact("Agent", shown(agent.name) if agent else "", note=f"owned by {shown(agent.owner.name)}" if agent else ""),
        Fact("Acts for", shown(person.name) if person else "nobody named"),
        Fact("Started", time=run.created_at),
        Fact("Ended", time=head.ended_at) if head.ended_at else Fact("Last moved", time=head.moved_at),
        Fact("Run", str(run.pk), mono=True, copy_text=str(run.pk)),
        *((Fact("Forked from", str(run.lineage_id), mono=True),) if run.lineage_id != run.pk else ()),
    )


def _attributes(head: RunHead) -> tuple[Fact, ...]:
    return tuple(Fact(shown(name), shown(value), mono=True) for name, value in sorted(head.run.attributes.items())[:20])


def _owner(tenant: Tenant, head: RunHead) -> tuple[Fact, ...]:
    """Who holds the run: worker, code, fence, lease."""
    lease = getattr(head.run, "lease", None)
    holder = lease.worker_id if lease is not None else None
    worker = Worker.objects.of(tenant).filter(pk=holder or NOBODY).first()
    fence = Fact("Fence", f"{head.fence_epoch}.{head.fence_count}", mono=True, note=FENCE)
    if lease is None:
        return (Fact("Worker", "none yet"), fence)
    name = shown(worker.name) if worker is not None else f"worker {holder.hex[-8:] if holder else ''}"
    return (
        Fact("Worker", name, note="" if lease.active else "no longer holds it"),
        Fact("Version", shown(lease.version)),
        Fact("Code", shown(worker.code_digest) if worker is not None else "", mono=True),
        fence,
        Fact("Claimed", time=lease.claimed_at),
        Fact("Lease until" if lease.active else "Lease was until", time=lease.expires_at),
    )


def _next(head: RunHead, clearance: object | None) -> tuple[Fact, ...]:
    """The one next transition, and what its clearance allows."""
    if head.status in ENDED:
        return ()
    rows = [Fact("Transition", shown(head.transition), mono=True)]
    if clearance is None:
        return (*rows, Fact("Cleared", "not yet" if head.status != "running" else "by the commit before it"))
    tools = ", ".join(clearance.tools)  # type: ignore[attr-defined]
    targets = ", ".join(clearance.targets)  # type: ignore[attr-defined]
    return (
        *rows,
        Fact("Targets", shown(targets) or "none"),
        Fact("Tools", shown(tools) or "as the transition declares"),
        Fact("Cleared until", time=clearance.valid_until),  # type: ignore[attr-defined]
        Fact("Claim by", time=clearance.ready_by),  # type: ignore[attr-defined]
    )
