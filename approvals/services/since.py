"""What happened to an effect after somebody read it."""

from __future__ import annotations

from uuid import UUID

from approvals.services import actors, effect_lines
from approvals.services.pieces import Content, Item, bodies, content
from ledger.domain.effects import Read
from ledger.models import Effect, EffectReport, Permit

MOST = 50


def since(effect: Effect, read: Read, *, may_see: bool) -> tuple[Item, ...]:
    """Calls that were allowed and whatever was said of it, oldest first; contents only where the reader `may_see` them."""
    permits = Permit.objects.of(effect.tenant_id).filter(effect=effect, attempt__gt=read.attempt)
    allowed = [
        Item(permit.permitted_at, f"Allowed again: attempt {permit.attempt}", "in_flight")
        for permit in permits.order_by("attempt")[:MOST]
    ]
    told = EffectReport.objects.of(effect.tenant_id).filter(effect=effect, ordinal__gt=read.ordinal)
    reports = list(told.order_by("ordinal")[:MOST])
    found = bodies([report.evidence_id for report in reports], effect.tenant_id)

    def evidence(body_id: UUID | None) -> Content:
        return content(found.get(body_id) if body_id else None, may_see=may_see)

    names = actors.names(effect.tenant_id, {report.actor for report in reports})
    return tuple(sorted([*allowed, *effect_lines.items(reports, names, evidence)], key=lambda item: item.at))
