"""Runs that stand still though nobody is asked anything: cleared and claimed by no worker, or with a record that doesn't verify."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, QuerySet

from approvals.labels import HEALTH
from approvals.services.counts import clock
from approvals.templatetags.console import absolute
from approvals.templatetags.console import visible_text as shown
from ledger.domain.explain import explain
from ledger.domain.handoffs import OPEN_HANDOFFS
from ledger.domain.health import UNCLAIMED_AFTER, Health
from ledger.domain.identity import Verb
from ledger.domain.runs import Status
from ledger.domain.verifications import Reach
from ledger.models import Handoff, RunHead, Tenant, User, VerifiedChain
from ledger.services import facts, permissions, search
from ledger.services.standings import standings

RUNBOOK = "The runbook “A chain is broken” in docs/operations.md says what to do."


@dataclass(frozen=True, slots=True)
class Row:
    """One run that stands still, with why and since when."""

    id: UUID
    task: str
    said: str
    badge: tuple[str, str]
    since: datetime


def unclaimed_for(person: User, tenant: Tenant) -> QuerySet[RunHead]:
    """Runs that were cleared and that no worker has claimed in its time, for who operates or administers their workflow."""
    rows = _watched(person, tenant, Verb.OPERATE, Verb.ADMINISTER)
    faulty = search.unverified(tenant.pk).filter(pk=OuterRef("pk"))
    return rows.filter(~Exists(faulty), status=Status.READY, moved_at__lte=clock() - UNCLAIMED_AFTER)


def unverified_for(person: User, tenant: Tenant) -> QuerySet[RunHead]:
    """Runs whose record didn't verify when it was checked last, for who operates, administers or audits their workflow.

    A handoff that was opened for the same is the case itself: then it stands there alone.
    """
    rows = _watched(person, tenant, Verb.OPERATE, Verb.ADMINISTER, Verb.AUDIT)
    handed = Handoff.objects.of(tenant).filter(
        run_id=OuterRef("pk"), state__in=OPEN_HANDOFFS, reason__startswith="integrity:"
    )
    return rows.filter(~Exists(handed), pk__in=search.unverified(tenant.pk))


def _watched(person: User, tenant: Tenant, *verbs: Verb) -> QuerySet[RunHead]:
    """Heads of the runs that this person may see, in workflows where they may do one of these."""
    seen = permissions.visible(person, Verb.SEE).of(tenant).values("pk")
    able = permissions.visible(person, verbs[0])
    for verb in verbs[1:]:
        able |= permissions.visible(person, verb)
    rows: QuerySet[RunHead] = RunHead.objects.of(tenant).filter(
        workflow__in=seen, workflow_id__in=able.of(tenant).values("pk")
    )
    return rows


def administration_fails(person: User, tenant: Tenant) -> bool:
    """Did what belongs to no run not verify when it was checked last, and is this a person who may know?"""
    chain = VerifiedChain.objects.of(tenant).filter(reach=Reach.TENANT, intact=False)
    return chain.exists() and any(permissions.can(person, verb, tenant) for verb in (Verb.AUDIT, Verb.ADMINISTER))


def unclaimed_rows(tenant: Tenant, heads: Sequence[RunHead]) -> list[Row]:
    """Unclaimed runs as lines of the inbox, in the same order; they come with run and workflow."""
    now = facts.read().now
    return [
        Row(
            id=head.pk,
            task=shown(head.run.task),
            said=shown(explain(view).sentence),
            badge=HEALTH[Health.UNCLAIMED],
            since=head.moved_at,
        )
        for head, view, _ in standings(tenant.pk, heads, now)
    ]


def unverified_rows(heads: Sequence[Any]) -> list[Row]:
    """Runs that don't verify as lines of the inbox, in the same order; they come with their run, and `urgent` is when that was found."""
    return [
        Row(
            id=head.pk,
            task=shown(head.run.task),
            said=f"Its record did not verify when it was checked at {absolute(head.urgent)}: don’t act on it. {RUNBOOK}",
            badge=HEALTH[Health.UNVERIFIED],
            since=head.urgent,
        )
        for head in heads
    ]
