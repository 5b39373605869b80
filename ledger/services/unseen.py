"""What couldn't be asked when runs were checked last: read where the engine asks again later."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from uuid import UUID

from django.db.models import OuterRef, Subquery

from ledger.domain.wakes import Answer, Unseen
from ledger.models import Decision, Effect, Run, WakeCheck


def unseen(tenant_id: UUID, run_ids: Collection[UUID]) -> Mapping[UUID, tuple[Unseen, ...]]:
    """By run, each target and resource that its newest decision couldn't be told of, in the order of the checks. Two queries at most."""
    if not run_ids:
        return {}
    newest = Decision.objects.of(tenant_id).filter(run=OuterRef("pk")).order_by("-decided_at", "-pk").values("pk")[:1]
    decided = Run.objects.of(tenant_id).filter(pk__in=run_ids).annotate(newest=Subquery(newest)).values("newest")
    checks = WakeCheck.objects.of(tenant_id).filter(decision__in=decided, answer=Answer.CANNOT_TELL, name="target")
    rows = [row for row in checks.order_by("ordinal").values_list("run_id", "subject", "reason") if row[1]]
    named = Effect.objects.of(tenant_id).filter(pk__in={subject for _, subject, _ in rows}).select_related("target")
    about = {str(effect.pk): effect for effect in named}
    found: dict[UUID, dict[Unseen, None]] = defaultdict(dict)
    for run_id, subject, why in rows:
        if effect := about.get(subject):
            found[run_id][Unseen(effect.target.name, effect.resource, why)] = None
    return {run_id: tuple(each) for run_id, each in found.items()}
