"""The design system, shown by itself: tokens as the style sheet has them, and every piece in every state."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from pathlib import Path

from django.contrib.staticfiles import finders
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from approvals.services.pieces import Fact, Item
from approvals.views.access import TenantRequest, tenant_page
from ledger.services import facts

COLOUR = re.compile(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\);")
LENGTH = re.compile(r"--(t-\w+|[sr]\d): ([\d.]+(?:rem|px));")
SYMBOL = re.compile(r'<symbol id="([\w-]+)"')
STATES = (
    ("running", "waiting", "waking", "ready", "blocked", "completed", "failed", "cancelled"),
    ("proposed", "in_flight", "committed", "failed", "unknown", "withdrawn", "disputed"),
    ("pass", "changed", "fail", "cannot_tell"),
    ("resume", "replan", "retry_later", "ask_again", "reconcile", "hand_off"),
    ("pending", "approved", "denied", "expired", "voided", "used", "high", "medium"),
)
FOREIGN = "<b>refund</b> {{ 7|add:7 }} ‹U+202E›gnp.exe " + "W" * 90


@dataclass(frozen=True, slots=True)
class Colour:
    """A colour's name, and what it is in light and in dark."""

    name: str
    light: str
    dark: str


@dataclass(frozen=True, slots=True)
class Sheet:
    """What the style sheet and the sprite declare."""

    colours: tuple[Colour, ...]
    lengths: tuple[tuple[str, str], ...]
    icons: tuple[str, ...]


@require_safe
@tenant_page
def design(request: TenantRequest) -> HttpResponse:
    """Tokens, type, spacing, states, icons and pieces, for whoever builds a page."""
    now = facts.read().now
    soon = now + timedelta(minutes=42)
    found = Item(now - timedelta(minutes=3), "Asked payments about “pay”", "reconcile", text="asked by key: can’t tell")
    context = {
        "sheet": sheet(),
        "states": STATES,
        "soon": soon,
        "past": now - timedelta(minutes=9),
        "facts": (
            Fact("Agent", "refund-agent", note="version 7"),
            Fact("Asked", time=now - timedelta(hours=2)),
            Fact("Key", "ra_56c40bce5d40441a49f3", mono=True, copy_text="ra_56c40bce5d40441a49f3"),
            Fact("Reference"),
        ),
        "items": (
            found,
            replace(found, title="Worker lost: its lease ran out", state="unknown", gap="12 min", text=""),
            replace(found, at=now - timedelta(minutes=15), title="Started", state="running", text="checkpoint 1"),
        ),
        "diff": (
            {"field": "amount_minor", "before": "4450", "after": "2200", "changed": True},
            {"field": "currency", "before": "EUR", "after": "EUR", "changed": False},
            {"field": "receipt", "before": None, "after": "re_5512", "changed": True},
        ),
        "checks": (
            {"label": "Target unchanged", "answer": "changed", "recorded": "version 12", "observed": "version 13"},
            {"label": "Record intact", "answer": "pass", "recorded": "digest", "observed": "recomputed, the same"},
        ),
        "foreign": FOREIGN,
    }
    return render(request, "design.html", context)


@cache
def sheet() -> Sheet:
    """Read once from the files that browsers get, so that this page can't say anything else."""
    tokens, sprite = _text("css/tokens.css"), _text("img/icons.svg")
    colours = tuple(Colour(*found) for found in COLOUR.findall(tokens))
    return Sheet(colours, tuple(LENGTH.findall(tokens)), tuple(SYMBOL.findall(sprite)))


def _text(name: str) -> str:
    path = finders.find(name)
    return Path(path).read_text(encoding="utf-8") if path else ""
