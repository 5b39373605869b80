"""One answer for every open list: 204 while it is as its page has it, otherwise the bar that offers it, with the navigation's counts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse

from approvals.services.newer import Moved
from approvals.views import counts
from approvals.views.access import TenantRequest
from ledger.domain import canonical
from ledger.domain.errors import LedgerError

MOST = 60
"""Ids of a page's rows that an address carries, at most."""


def url(
    request: TenantRequest,
    name: str,
    kept: dict[str, str],
    *,
    since: datetime | None = None,
    shown: Sequence[UUID] = (),
    total: str = "",
) -> str:
    """Where a list of these filters asks, with what its page has: the time of its newest, or its ids and its length as the page tells it;
    and the badges."""
    asked = {
        **kept,
        "since": canonical.rfc3339(since) if since else "",
        "shown": "~".join(row.hex for row in shown),
        "total": total.replace(",", "").rstrip("+"),
        "badges": _badges(request),
    }
    return (
        f"{reverse(name, args=[request.tenant.slug])}?{urlencode({key: text for key, text in asked.items() if text})}"
    )


def since(request: TenantRequest) -> datetime:
    """The time of the newest that the page has; of an empty one, before everything. Raises LedgerError `invalid`."""
    text = request.GET.get("since", "")
    return canonical.parse_time(text, "since") if text else datetime.min.replace(tzinfo=UTC)


def shown(request: TenantRequest) -> tuple[list[UUID], int]:
    """The ids on the page and the length of its list. Raises LedgerError `invalid` for an address that no page made."""
    text, total = request.GET.get("shown", ""), request.GET.get("total", "") or "0"
    try:
        found = [UUID(hex=each) for each in text.split("~")[: MOST + 1]] if text else []
        if len(found) > MOST or len(total) > 9 or not total.isascii():
            raise ValueError(text)
        return found, int(total)
    except ValueError:
        raise LedgerError("invalid", "the page's address is broken", "Start at the list's first page.") from None


def answer(request: TenantRequest, moved: Moved, href: str, new: str = "new", gone: str = "gone") -> HttpResponse:
    """What came and what left, in these words, and an address that shows it; the counts alone when only they changed."""
    told = [f"{number} {word}" for number, word in ((moved.new, new), (moved.gone, gone)) if number]
    if not told and request.GET.get("badges", "") == _badges(request):
        return HttpResponse(status=204)
    badges = counts.badges(request).items()
    return render(request, "partials/_newer.html", {"said": ", ".join(told), "href": href, "badges": badges})


def _badges(request: TenantRequest) -> str:
    return "~".join(counts.badges(request).values())
