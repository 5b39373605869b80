"""How much waits for a person, as badges: each from the very queryset that its page lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import QuerySet

from approvals.services import handoff_pages, inbox, reconcile_pages, stalled_runs
from approvals.services.counts import lengths

if TYPE_CHECKING:
    from approvals.views.access import TenantRequest

MOST = 1_000


def badges(request: TenantRequest) -> dict[str, str]:
    """The badge of each place of the navigation, in one statement; empty where nothing waits. Never more work than for a thousand rows of each.

    The inbox lists what the places hold, a case that is at two of them once, so that its badge is the sum of its own lines. A page that is only
    read counts once: what it says and its navigation are the same.
    """
    kept: dict[str, str] | None = getattr(request, "counted", None)
    if kept is not None:
        return kept
    person, tenant = request.person, request.tenant
    waiting: dict[str, QuerySet[Any]] = {
        "approvals": inbox.pending_for(person, tenant),
        "reconcile": reconcile_pages.waiting_for(person, tenant),
        "handoffs": handoff_pages.open_for(person, tenant),
        "apart": handoff_pages.apart_for(person, tenant),
        "unclaimed": stalled_runs.unclaimed_for(person, tenant),
        "unverified": stalled_runs.unverified_for(person, tenant),
    }
    found = dict(zip(waiting, lengths(list(waiting.values()), MOST + 1), strict=True))
    told = {name: bounded(count) for name, count in found.items()}
    told["inbox"] = bounded(sum(found.values()) - found["handoffs"])
    told["stalled"] = bounded(found["unclaimed"] + found["unverified"])
    if request.method in {"GET", "HEAD"}:
        request.counted = told
    return told


def bounded(count: int) -> str:
    """A number of rows as text: nothing for none, "1,000+" for more than a thousand."""
    if count > MOST:
        return f"{MOST:,}+"
    return f"{count:,}" if count else ""
