"""The inbox: all that waits for this person, the most urgent first."""

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
from approvals.services import listing, stalled_runs, waiting
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

APPROVALS, STALLED = "approvals", "stalled"
PARTS = {APPROVALS: frozenset({Kind.REQUEST}), STALLED: waiting.STALLED}
"""What `show` asks for: a part of the inbox. Without it the inbox has everything."""
NOTHING = {APPROVALS: "No request waits for you", STALLED: "No run stands still"}
BADGES = {
    Kind.REQUEST: "approvals",
    Kind.EFFECT: "reconcile",
    Kind.HANDOFF: "apart",
    Kind.UNCLAIMED: "unclaimed",
    Kind.UNVERIFIED: "unverified",
}
TEMPLATES = {
    Kind.REQUEST: "approvals/_row.html",
    Kind.EFFECT: "reconcile/_row.html",
    Kind.HANDOFF: "handoffs/_row.html",
    Kind.UNCLAIMED: "runs/_stalled.html",
    Kind.UNVERIFIED: "runs/_stalled.html",
}


@require_safe
@tenant_page
def inbox(request: TenantRequest) -> HttpResponse:
    """One page of all that waits for this person, or with `show` of a part of it alone."""
    after, part = Cursor.parse(request.GET.get("after", "")), _part(request)
    kinds = PARTS.get(part, waiting.EVERY)
    now = facts.read().now
    badges = counts.badges(request)
    listed = frozenset(kind for kind in kinds if badges[BADGES[kind]])
    found, more = waiting.page_for(request.person, request.tenant, listed, after)
    here, newer = (reverse(name, args=[request.tenant.slug]) for name in ("inbox", "inbox_newer"))
    show = {"show": part} if part else {}
    warnings = [*_spoilt(request), *_impossible(request)]
    asked = {"since": canonical.rfc3339(now), "shown": _shown(found)}
    return render(
        request,
        "inbox.html",
        {
            "entries": [_entry(request, each) for each in found],
            "total": badges[part or "inbox"] or "0",
            "tabs": _tabs(request, badges, part),
            "part": part,
            "nothing": NOTHING.get(part, ""),
            "elsewhere": bool(show and badges["inbox"]),
            "warnings": warnings,
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
    shown, part = _ids(request.GET.get("shown", "")), _part(request)
    found = waiting.moved(request.person, request.tenant, PARTS.get(part, waiting.EVERY), since, shown)
    if not found.new and not found.gone:
        return HttpResponse(status=204)
    badges = counts.badges(request)
    told = [f"{found.new} new"] if found.new else []
    if found.gone:
        told.append(f"{found.gone} decided meanwhile" if found.decided else f"{found.gone} no longer waiting")
    show = f"?{urlencode({'show': part})}" if part else ""
    context = {
        "said": ", ".join(told),
        "href": reverse("inbox", args=[request.tenant.slug]) + show,
        "total": badges[part or "inbox"] or "0",
        "badge": badges["inbox"],
        "gone": found.gone,
        "shown": len(shown),
    }
    return render(request, "approvals/_newer.html", context)


def _part(request: TenantRequest) -> str:
    """The part of the inbox that is asked for; '' for all of it."""
    asked = request.GET.get("show", "")
    return asked if asked in PARTS else ""


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


def _tabs(request: TenantRequest, badges: dict[str, str], part: str) -> list[dict[str, Any]]:
    """All of it, its parts, and the pages of the other two. Runs stand still rarely: that tab is there when one does."""
    here = reverse("inbox", args=[request.tenant.slug])
    own = [{"label": "All", "url": here, "count": badges["inbox"] or "0", "active": not part}]
    own += [
        {
            "label": label,
            "url": f"{here}?{urlencode({'show': name})}",
            "count": badges[name] or "0",
            "active": part == name,
        }
        for name, label in ((APPROVALS, "Approvals"), (STALLED, "Stalled"))
        if name != STALLED or part == name or badges[name]
    ]
    others = [
        {"label": label, "url": url, "count": badges[name] or "0", "active": False}
        for name, label in (("reconcile", "Reconcile"), ("handoffs", "Handoffs"))
        if (url := address(name, request.tenant.slug))
    ]
    return own + others


def _spoilt(request: TenantRequest) -> list[dict[str, str]]:
    """That the tenant's administration doesn't verify, for who may know it: it belongs to no run, and no list has it."""
    if not stalled_runs.administration_fails(request.person, request.tenant):
        return []
    text = "The record of this tenant’s administration did not verify when it was checked last. See the runbook “A chain is broken”."
    return [{"href": address("history", request.tenant.slug), "text": text}]


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
