"""What speaks for a request beside its own state: the run's other calls whose outcome is known, each with who said so."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import OuterRef, Subquery

from approvals.services.cards import Card
from ledger.domain.effects import EffectState, LookAnswer, ReportKind
from ledger.models import Effect, EffectReport

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


def calls(card: Card) -> tuple[Called, ...]:
    """The run's newest settled calls but the one that is asked about: one query."""
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
