"""What speaks for a request: the state that its agent committed, and the run's other calls whose outcome is known, each with who said so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import OuterRef, Subquery

from approvals.services import sightings
from approvals.services.cards import Card
from ledger.domain import canonical
from ledger.domain.effects import EffectState, LookAnswer, ReportKind
from ledger.models import Checkpoint, Effect, EffectReport

MOST_CALLS = 10
SETTLED = (EffectState.COMMITTED, EffectState.FAILED)
ASKED = (ReportKind.LOOKUP, ReportKind.REPLAY)
SURE = (LookAnswer.APPLIED, LookAnswer.REFUSED, LookAnswer.ABSENT)


@dataclass(frozen=True, slots=True)
class Called:
    """Another call of the run. `confirmed` is when its target, asked by us, said what became of it; None where we have only `said`, the kind of
    somebody's report."""

    effect: Effect
    confirmed: datetime | None
    said: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """`state` is what the agent committed at the `checkpoint` from which it asked; None for who may not see it, or where it was erased."""

    calls: Sequence[Called]
    checkpoint: int
    state: Any


def of(card: Card) -> Evidence:
    """The evidence of a card: two queries."""
    rows = Checkpoint.objects.of(card.request.tenant_id).filter(
        run=card.request.run_id, created_at__lte=card.revision.opened_at
    )
    found: Checkpoint | None = rows.select_related("state").order_by("-seq").first()
    raw = sightings.content_of(found.state) if found is not None and card.reads else None
    return Evidence(_calls(card), found.seq if found else 0, canonical.parse(raw) if raw else None)


def _calls(card: Card) -> tuple[Called, ...]:
    tenant_id = card.request.tenant_id
    reports = EffectReport.objects.of(tenant_id).filter(effect=OuterRef("pk")).order_by("-ordinal")
    confirmed = reports.filter(kind__in=ASKED, answer__in=SURE)
    rows = Effect.objects.of(tenant_id).filter(run=card.request.run_id, state__in=SETTLED).exclude(pk=card.effect.pk)
    annotated: Any = rows.select_related("target").annotate(
        confirmed=Subquery(confirmed.values("reported_at")[:1]), said=Subquery(reports.values("kind")[:1])
    )
    return tuple(
        Called(row, None if row.disputed else row.confirmed, row.said or "")
        for row in annotated.order_by("-proposed_at", "-pk")[:MOST_CALLS]
    )
