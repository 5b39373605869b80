"""One page in one state, pictured in each theme and width, and looked at by axe-core in each theme."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playwright.sync_api import BrowserContext, Page

from tests import axe
from tests.shots import sheet, stage

if TYPE_CHECKING:
    from tests.shots.catalogue import Shot

PATIENCE = 60_000
TALLEST = 6_000
"""Pixels of one picture: what is below is more of the same."""
BROKEN = 500


def take(context: BrowserContext, shot: Shot, address: str, folder: Path) -> list[str]:
    """Write the pictures; what is wrong with the page, each with the picture's name. It is loaded once, and acted on once."""
    context.clear_cookies()
    if shot.person is not None:
        context.add_cookies([{"name": "resumeapp_session", "value": _session(shot.person), "url": address}])
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    try:
        answer = page.goto(shot.address, wait_until="load")
        if answer is None or answer.status >= BROKEN:
            return [f"{shot.name}: the server answered {answer and answer.status}"]
        if shot.page == "card":
            page.wait_for_load_state("networkidle")  # It looks at its target by itself.
        end = shot.act(page) if shot.act is not None else None
        faults = _pictured(page, shot, folder)
        if end is not None:
            end()
        return faults
    finally:
        page.evaluate("localStorage.clear()")  # Drafts of one picture are no other's.
        page.close()


def _pictured(page: Page, shot: Shot, folder: Path) -> list[str]:
    faults: list[str] = []
    for width in stage.WIDTHS:
        page.set_viewport_size(stage.size(width))
        tall = page.evaluate("document.documentElement.scrollHeight")
        for theme in stage.THEMES:
            page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
            page.evaluate(axe.SETTLED)
            name = sheet.picture(shot.name, theme, width)
            if width in stage.CHECKED:
                faults += [f"{name}: {fault}" for fault in axe.faults(page)]
            # The window grows with the page, so that what is fixed to its edge doesn't lie over the middle of the picture.
            page.set_viewport_size({"width": width, "height": min(max(tall, stage.size(width)["height"]), TALLEST)})
            page.screenshot(path=folder / name, animations="disabled")
            page.set_viewport_size(stage.size(width))
    return faults


@cache
def _session(person: Any) -> str:
    from django.test import Client

    client = Client()
    client.force_login(person)
    return str(client.cookies["resumeapp_session"].value)
