"""How much waits for a person, as badges: each from the very queryset that its page lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import QuerySet

from approvals.services import inbox
from ledger.domain.effects import EffectState
from ledger.domain.handoffs import HandoffState
from ledger.domain.identity import Verb
from ledger.models import Effect, Handoff, Tenant, User
from ledger.services import permissions

if TYPE_CHECKING:
    from approvals.views.access import TenantRequest

MOST = 1_000


def badges(request: TenantRequest) -> dict[str, str]:
    """The badge of each place of the navigation; empty where nothing waits."""
    person, tenant = request.person, request.tenant
    waiting = {
        "inbox": inbox.pending_for(person, tenant),
        "reconcile": to_reconcile(person, tenant),
        "handoffs": open_handoffs(person, tenant),
    }
    return {name: bounded(rows) for name, rows in waiting.items()}


def bounded(rows: QuerySet[Any]) -> str:
    """How many rows there are, as text: never more work than for a thousand of them, nothing for none."""
    count = rows.order_by()[: MOST + 1].count()
    if count > MOST:
        return f"{MOST:,}+"
    return f"{count:,}" if count else ""


def to_reconcile(person: User, tenant: Tenant) -> QuerySet[Effect]:
    """Effects with an unknown outcome, in workflows that the person operates."""
    types = permissions.visible(person, Verb.OPERATE).filter(tenant=tenant)
    rows: QuerySet[Effect] = Effect.objects.of(tenant).filter(state=EffectState.UNKNOWN, run__workflow__in=types)
    return rows


def open_handoffs(person: User, tenant: Tenant) -> QuerySet[Handoff]:
    """Handoffs that nobody has closed, in workflows that the person operates."""
    types = permissions.visible(person, Verb.OPERATE).filter(tenant=tenant)
    states = (HandoffState.OPEN, HandoffState.ACCEPTED)
    rows: QuerySet[Handoff] = Handoff.objects.of(tenant).filter(state__in=states, run__workflow__in=types)
    return rows
