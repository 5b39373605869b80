"""How much waits for a person, as badges: each from the very queryset that its page lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import QuerySet

from approvals.services import handoff_pages, inbox, reconcile_pages

if TYPE_CHECKING:
    from approvals.views.access import TenantRequest

MOST = 1_000


def badges(request: TenantRequest) -> dict[str, str]:
    """The badge of each place of the navigation; empty where nothing waits."""
    person, tenant = request.person, request.tenant
    waiting = {
        "inbox": inbox.pending_for(person, tenant),
        "reconcile": reconcile_pages.waiting_for(person, tenant),
        "handoffs": handoff_pages.open_for(person, tenant),
    }
    return {name: bounded(rows) for name, rows in waiting.items()}


def bounded(rows: QuerySet[Any]) -> str:
    """How many rows there are, as text: never more work than for a thousand of them, nothing for none."""
    count = rows.order_by()[: MOST + 1].count()
    if count > MOST:
        return f"{MOST:,}+"
    return f"{count:,}" if count else ""
