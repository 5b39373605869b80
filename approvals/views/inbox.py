"""The inbox: what waits for this person, the oldest deadline first."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from approvals.context import address
from approvals.renderers import Asked, words_for
from approvals.services import listing
from approvals.services.listing import After, Row
from approvals.templatetags.console import visible_text
from approvals.views import counts
from approvals.views.access import TenantRequest, tenant_page
from ledger.domain import canonical
from ledger.domain.errors import LedgerError
from ledger.services import facts


@require_safe
@tenant_page
def inbox(request: TenantRequest) -> HttpResponse:
    """One page of the inbox; the tabs lead to what waits elsewhere."""
    after = _after(request.GET.get("after", ""))
    now = facts.read().now
    badges = counts.badges(request)
    rows, more = listing.page_for(request.person, request.tenant, after)
    here = reverse("inbox", args=[request.tenant.slug])
    newer = reverse("inbox_newer", args=[request.tenant.slug])
    return render(
        request,
        "inbox.html",
        {
            "rows": [_line(request, row) for row in rows],
            "total": badges["inbox"] or "0",
            "tabs": _tabs(request, badges),
            "impossible": _impossible(request),
            "newer_url": f"{newer}?{urlencode({'since': canonical.rfc3339(now), 'shown': _shown(rows)})}",
            "next_url": f"{here}?{urlencode({'after': _cursor(more)})}" if more else "",
            "first_url": here if after else "",
        },
    )


@require_safe
@tenant_page
def inbox_newer(request: TenantRequest) -> HttpResponse:
    """204 while what waits is as the page has it (`since`, and `shown`, the ids on it), otherwise the bar that offers it, with the counts."""
    since = canonical.parse_time(request.GET.get("since", ""), "since")
    shown = _ids(request.GET.get("shown", ""))
    new = listing.newer_for(request.person, request.tenant, since)
    gone = listing.gone_for(request.person, request.tenant, shown)
    if not new and not gone.count:
        return HttpResponse(status=204)
    badge = counts.badges(request)["inbox"]
    told = [f"{new} new"] if new else []
    if gone.count:
        told.append(f"{gone.count} decided meanwhile" if gone.decided else f"{gone.count} no longer waiting")
    context = {
        "said": ", ".join(told),
        "href": reverse("inbox", args=[request.tenant.slug]),
        "total": badge or "0",
        "badge": badge,
        "gone": gone.count,
        "shown": len(shown),
    }
    return render(request, "approvals/_newer.html", context)


def _shown(rows: list[Row]) -> str:
    return "~".join(row.request.pk.hex for row in rows)


def _ids(text: str) -> list[UUID]:
    """Ids of one page's rows, as its address has them."""
    try:
        found = [UUID(hex=each) for each in text.split("~")[: listing.PAGE + 1]] if text else []
    except ValueError:
        found = [UUID(int=0)] * (listing.PAGE + 1)
    if len(found) > listing.PAGE:
        raise LedgerError("invalid", "the page's address is broken", "Start at the inbox's first page.")
    return found


def _line(request: TenantRequest, row: Row) -> dict[str, Any]:
    words = words_for(Asked(row.effect.tool, row.effect.target.name, row.effect.resource, row.arguments))
    return {
        "href": reverse("approval", args=[request.tenant.slug, row.request.pk]),
        "title": visible_text(words.headline),
        "agent": visible_text(row.agent),
        "workflow": visible_text(row.workflow),
        "task": visible_text(row.task),
        "quorum": f"{row.given} of {row.wanted} approvals" if row.wanted > 1 else "",
        "again": row.request.revision if row.request.revision > 1 else 0,
        "risk": words.risk,
        "risk_label": words.risk_label if not words.rated else f"{words.risk.capitalize()} risk",
        "due": row.request.decide_by,
    }


def _tabs(request: TenantRequest, badges: dict[str, str]) -> list[dict[str, Any]]:
    places = (("inbox", "Approvals"), ("reconcile", "Reconcile"), ("handoffs", "Handoffs"))
    return [
        {"label": label, "url": url, "count": badges[name] or "0", "active": name == "inbox"}
        for name, label in places
        if (url := address(name, request.tenant.slug))
    ]


def _impossible(request: TenantRequest) -> list[dict[str, str]]:
    return [
        {
            "href": reverse("approval", args=[request.tenant.slug, request_id]),
            "text": f"A request of {visible_text(workflow)} can be approved by nobody: too few people in "
            + ", ".join(visible_text(group) or "a group without a name" for group in groups),
        }
        for request_id, workflow, groups in listing.impossible_for(request.person, request.tenant)[:5]
    ]


def _cursor(after: After) -> str:
    return f"{canonical.rfc3339(after.decide_by)}_{after.id}"


def _after(text: str) -> After | None:
    if not text:
        return None
    at, _, key = text.partition("_")
    try:
        return After(canonical.parse_time(at, "after"), UUID(key))
    except ValueError:
        raise LedgerError("invalid", "the page's address is broken", "Start at the inbox's first page.") from None
