"""Why a run isn't moving, as of now."""

from __future__ import annotations

from uuid import UUID

from ledger.domain.explain import Explanation
from ledger.domain.explain import explain as told
from ledger.models import RunHead
from ledger.services.endings import UNHAPPY, endings
from ledger.services.views import telling_view


def explain(run_id: UUID, tenant_id: UUID | None = None, *, names: bool = True) -> Explanation:
    """One sentence and a list, with people's `names` or only their teams. Raises LedgerError `not-found` for a foreign or missing run."""
    view = telling_view(run_id, tenant_id)
    if view.head.status not in UNHAPPY:
        return told(view)
    head = RunHead.objects.of(view.run.tenant_id).get(run_id=run_id)
    return told(view, endings([head]).get(run_id), names)
