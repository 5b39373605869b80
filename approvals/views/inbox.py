"""The inbox: all that waits for this person, the most urgent first."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from approvals.context import address
from approvals.renderers import Asked, words_for
from approvals.services import listing, waiting
from approvals.services.pieces import Cursor
from approvals.services.standing import team_names
from approvals.services.waiting import Entry, Kind
from approvals.templatetags.console import visible_text
from approvals.views import counts
from approvals.views.access import TenantRequest, tenant_page
from approvals.views.cards import team
from ledger.domain import canonical
from ledger.domain.errors import LedgerError
from ledger.services import facts

APPROVALS = "approvals"
PLACES = {Kind.REQUEST: "approvals", Kind.EFFECT: "reconcile", Kind.HANDOFF: "handoffs"}
TEMPLATES = {
    Kind.REQUEST: "approvals/_row.html",
    Kind.EFFECT: "reconcile/_row.html",
    Kind.HANDOFF: "handoffs/_row.html",
}


@require_safe
@tenant_page
def inbox(request: TenantRequest) -> HttpResponse:
    """One page of all that waits for this person, or with `show=approvals` of the requests alone."""
    after, kinds = Cursor.parse(request.GET.get("after", "")), _kinds(request)
    now = facts.read().now
    badges = counts.badges(request)
    listed = frozenset(kind for kind in kinds if badges[PLACES[kind]])
    found, more = waiting.page_for(request.person, request.tenant, listed, after)
    here, newer = (reverse(name, args=[request.tenant.slug]) for name in ("inbox", "inbox_newer"))
    show = {"show": APPROVALS} if kinds != waiting.EVERY else {}
    asked = {"since": canonical.rfc3339(now), "shown": _shown(found)}
    return render(
        request,
        "inbox.html",
        {
            "entries": [_entry(request, each) for each in found],
            "total": _badge(badges, kinds) or "0",
            "tabs": _tabs(request, badges, kinds),
            "only_approvals": bool(show),
            "elsewhere": bool(show and badges["inbox"]),
            "impossible": _impossible(request),
            "newer_url": f"{newer}?{urlencode({**show, **asked})}",
            "next_url": f"?{urlencode({**show, 'after': str(more)})}" if more else "",
            "first_url": f"{here}?{urlencode(show)}" if after else "",
            "inbox_url": here,
        },
    )


@require_safe
@tenant_page
def inbox_newer(request: TenantRequest) -> HttpResponse:
    """204 while what waits is as the page has it (`since`, and `shown`, the ids on it), otherwise the bar that offers it, with the counts."""
    since = canonical.parse_time(request.GET.get("since", ""), "since")
    shown, kinds = _ids(request.GET.get("shown", "")), _kinds(request)
    found = waiting.moved(request.person, request.tenant, kinds, since, shown)
    if not found.new and not found.gone:
        return HttpResponse(status=204)
    badges = counts.badges(request)
    told = [f"{found.new} new"] if found.new else []
    if found.gone:
        told.append(f"{found.gone} decided meanwhile" if found.decided else f"{found.gone} no longer waiting")
    show = f"?{urlencode({'show': APPROVALS})}" if kinds != waiting.EVERY else ""
    context = {
        "said": ", ".join(told),
        "href": reverse("inbox", args=[request.tenant.slug]) + show,
        "total": _badge(badges, kinds) or "0",
        "badge": badges["inbox"],
        "gone": found.gone,
        "shown": len(shown),
    }
    return render(request, "approvals/_newer.html", context)


def _kinds(request: TenantRequest) -> frozenset[Kind]:
    return frozenset({Kind.REQUEST}) if request.GET.get("show") == APPROVALS else waiting.EVERY


def _badge(badges: dict[str, str], kinds: Collection[Kind]) -> str:
    return badges["inbox" if kinds == waiting.EVERY else "approvals"]


def _shown(entries: list[Entry]) -> str:
    return "~".join(entry.id.hex for entry in entries)


def _ids(text: str) -> list[UUID]:
    """Ids of one page's rows, as its address has them."""
    try:
        found = [UUID(hex=each) for each in text.split("~")[: waiting.PAGE + 1]] if text else []
    except ValueError:
        found = [UUID(int=0)] * (waiting.PAGE + 1)
    if len(found) > waiting.PAGE:
        raise LedgerError("invalid", "the page's address is broken", "Start at the inbox's first page.")
    return found


def _entry(request: TenantRequest, entry: Entry) -> dict[str, Any]:
    """What waits, with the template of the list that it is also on."""
    row = _line(request, entry.row) if isinstance(entry.row, listing.Row) else entry.row
    return {"template": TEMPLATES[entry.kind], "row": row}


def _line(request: TenantRequest, row: listing.Row) -> dict[str, Any]:
    words = words_for(Asked(row.effect.tool, row.effect.target.name, row.effect.resource, row.arguments))
    return {
        "href": reverse("approval", args=[request.tenant.slug, row.request.pk]),
        "title": visible_text(words.headline),
        "agent": visible_text(row.agent),
        "workflow": visible_text(row.workflow),
        "task": visible_text(row.task),
        "quorum": f"{row.given} of {row.wanted} approvals" if row.wanted > 1 else "",
        "again": row.request.revision if row.request.revision > 1 else 0,
        "amount": words.amount,
        "risk": words.risk,
        "risk_label": words.risk_label if not words.rated else f"{words.risk.capitalize()} risk",
        "due": row.request.decide_by,
    }


def _tabs(request: TenantRequest, badges: dict[str, str], kinds: Collection[Kind]) -> list[dict[str, Any]]:
    """All of it, the requests alone, and the pages of the other two."""
    here = reverse("inbox", args=[request.tenant.slug])
    every = kinds == waiting.EVERY
    own = [
        {"label": "All", "url": here, "count": badges["inbox"] or "0", "active": every},
        {
            "label": "Approvals",
            "url": f"{here}?{urlencode({'show': APPROVALS})}",
            "count": badges["approvals"] or "0",
            "active": not every,
        },
    ]
    others = [
        {"label": label, "url": url, "count": badges[name] or "0", "active": False}
        for name, label in (("reconcile", "Reconcile"), ("handoffs", "Handoffs"))
        if (url := address(name, request.tenant.slug))
    ]
    return own + others


def _impossible(request: TenantRequest) -> list[dict[str, str]]:
    found = listing.impossible_for(request.person, request.tenant)[:5]
    names = team_names(request.tenant.pk, {slug for _, _, groups in found for slug in groups}) if found else {}
    return [
        {
            "href": reverse("approval", args=[request.tenant.slug, request_id]),
            "text": f"A request of {visible_text(workflow)} can be approved by nobody: too few people in "
            f"{' and '.join(team(slug, names) for slug in groups)}. Add somebody, or it expires.",
        }
        for request_id, workflow, groups in found
    ]
