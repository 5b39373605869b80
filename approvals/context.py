"""What every page's frame needs: navigation with counts, the tenant, addresses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from approvals.services.history_pages import readable
from approvals.views import counts


@dataclass(frozen=True, slots=True)
class Place:
    """An entry of the navigation: the address's name, what it is called, its icon, the key after "g", and the names of the pages below it."""

    name: str
    label: str
    icon: str
    key: str
    below: tuple[str, ...] = ()


PLACES = (
    Place("inbox", "Inbox", "inbox", "i", ("approval",)),
    Place("runs", "Runs", "runs", "r", ("run",)),
    Place("reconcile", "Reconcile", "reconcile", "c", ("effect",)),
    Place("handoffs", "Handoffs", "handoff", "h", ("handoff",)),
    Place("history", "History", "history", "y", ("entry", "verification")),
)


def console(request: HttpRequest) -> Mapping[str, Any]:
    """`nav`, `tenant`, `home_url` and `search_url` of a tenant's page; nothing on others."""
    tenant = getattr(request, "tenant", None)
    if tenant is None:
        return {}
    here = request.resolver_match.url_name if request.resolver_match else ""

    @cache
    def nav() -> list[dict[str, Any]]:
        badges = counts.badges(request)  # type: ignore[arg-type]
        shown = [place for place in PLACES if place.name != "history" or readable(request.person, tenant)]  # type: ignore[attr-defined]
        return [
            {
                "name": place.name,
                "label": place.label,
                "url": url,
                "icon": place.icon,
                "key": place.key,
                "badge": badges.get(place.name, ""),
                "hot": place.name == "inbox",
                "active": here == place.name or here in place.below,
            }
            for place in shown
            if (url := address(place.name, tenant.slug))
        ]

    return {
        "nav": nav,
        "tenant": tenant,
        "home_url": address("inbox", tenant.slug),
        "search_url": address("runs", tenant.slug),
        "search_query": request.GET.get("q", ""),
    }


def address(name: str, *args: Any) -> str:
    """The address of a page, or nothing when this deployment doesn't serve it."""
    try:
        return reverse(name, args=args)
    except NoReverseMatch:
        return ""
