"""What axe-core finds on a page, and whether the page is wider than its window."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

RULE_SETS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
SETTLED = "() => Promise.allSettled(document.getAnimations().map((each) => each.finished))"
"""For a page's `evaluate`: its colours have arrived where they go."""

_SOURCE = Path(__file__).parent / "browser" / "vendor" / "axe-core-4.12.1.min.js"
_RUN = """(tags) => axe.run(document, {runOnly: tags, resultTypes: ['violations']}).then((found) => found.violations.flatMap(
    (rule) => rule.nodes.map((node) => `${rule.id}: ${node.target.join(' ')} ${node.html.slice(0, 200)}`)))"""


@cache
def _source() -> str:
    return _SOURCE.read_text(encoding="utf-8")


def faults(page: Page) -> list[str]:
    """Every violation of WCAG 2.2 AA, as `rule: selector element`, and the page's width where it scrolls sideways."""
    page.evaluate(f"window.axe || (() => {{ {_source()} }})()")
    found: list[Any] = page.evaluate(_RUN, list(RULE_SETS))
    wide, window = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    return [*found, *([f"scrolls sideways: {wide} px in a window of {window} px"] if wide > window else [])]
