"""Where each line of a card comes from: its facts, each with a link to the row, as far as that has a page."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.urls import reverse

from approvals.services.cards import Card
from approvals.services.sightings import Seen
from approvals.templatetags.console import visible_text, words
from ledger.models import Tenant


def facts(card: Card, tenant: Tenant, *, audits: bool) -> list[dict[str, Any]]:
    """Who asks, for whom, with which credential, from which run and checkpoint, for which call, under which policy.

    What only the history shows is linked for who `audits` the tenant; an agent, a person and a resource lead to the runs that they are in.
    """
    effect, now = card.effect, "" if card.pending else " by now"
    return [
        {**_who(card, tenant), "label": "Agent", "note": f"version {visible_text(card.head.version)}{now}"},
        {"label": "Acts for", **_named(card.acts_for.name if card.acts_for else "", tenant, "nobody named")},
        {
            "label": "Credential",
            "value": card.key_prefix and f"key {card.key_prefix}…",
            "mono": True,
            "href": _history(tenant, verb="key.issue") if audits and card.key_prefix else "",
        },
        {
            "label": "Run",
            "value": visible_text(effect.run.task),
            "href": run(card, tenant),
            "note": f"{visible_text(card.workflow.name)}, {words(card.head.status)}{now}",
        },
        _checkpoint(card, tenant),
        {
            "label": "Call",
            "value": f"{visible_text(effect.name)} ({visible_text(effect.tool)})",
            "mono": True,
            "href": reverse("effect", args=[tenant.slug, effect.pk]),
            "note": f"{words(effect.state)}{now}",
        },
        {
            "label": "Target",
            "value": visible_text(" ".join(filter(None, [effect.target.name, effect.resource]))),
            "mono": True,
            "href": _target(card, tenant, audits),
        },
        _policy(card, tenant, audits),
        {"label": "Asked", "time": card.revision.opened_at, "href": run(card, tenant, "authority")},
    ]


def _checkpoint(card: Card, tenant: Tenant) -> dict[str, Any]:
    """The run's last one while it waits for the decision; afterwards the one from which it was asked."""
    head = card.head
    last = f"next “{visible_text(head.transition)}”"
    asked = "from which it was asked" + (
        "" if head.checkpoint_seq == card.checkpoint else f"; the run is at {head.checkpoint_seq} by now"
    )
    return {
        "label": "Last checkpoint" if card.pending else "Checkpoint",
        "value": str(head.checkpoint_seq if card.pending else card.checkpoint),
        "href": run(card, tenant, "checkpoints"),
        "note": last if card.pending else asked,
    }


def run(card: Card, tenant: Tenant, part: str = "") -> str:
    """The address of the request's run, or of a part of its page."""
    return _run(tenant, card.request.run_id, part)


def sighting(seen: Seen | None, tenant: Tenant) -> str:
    """The address of the run whose record holds what was seen of the target; '' where nobody looked."""
    return _run(tenant, seen.run_id) if seen is not None else ""


def _run(tenant: Tenant, run_id: UUID | None, part: str = "") -> str:
    page = reverse("run", args=[tenant.slug, run_id])
    return f"{page}#{part}" if part else page


def _who(card: Card, tenant: Tenant) -> dict[str, Any]:
    return _named(card.agent.name if card.agent else "", tenant, "")


def _named(name: str, tenant: Tenant, otherwise: str) -> dict[str, Any]:
    """A name that leads to the runs it is in."""
    if not name:
        return {"value": otherwise}
    return {"value": visible_text(name), "href": f"{reverse('runs', args=[tenant.slug])}?{urlencode({'q': name})}"}


def _target(card: Card, tenant: Tenant, audits: bool) -> str:
    if audits:
        return _history(tenant, target=card.effect.target.name)
    if not card.effect.resource:
        return ""
    return f"{reverse('runs', args=[tenant.slug])}?{urlencode({'q': card.effect.resource})}"


def _policy(card: Card, tenant: Tenant, audits: bool) -> dict[str, Any]:
    """The version under which it was asked, and whether another one is in force by now."""
    then, now = card.policy.asked_under, card.policy.in_force
    return {
        "label": "Policy",
        "value": f"version {then}" if then else "",
        "href": _history(tenant, verb="policy.publish") if audits else "",
        "note": f"version {now} is in force now" if now != then else "in force",
    }


def _history(tenant: Tenant, **asked: str) -> str:
    return f"{reverse('history', args=[tenant.slug])}?{urlencode(asked)}"
