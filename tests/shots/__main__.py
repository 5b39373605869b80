"""`python -m tests.shots [--only TEXT] [--to FOLDER]`: picture every page × state × theme × width."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests import chromium
from tests.live import served
from tests.shots import sheet, stage

if TYPE_CHECKING:
    from tests.shots.catalogue import Shot

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 120_000
TALLEST = 6_000
"""Pixels of one picture: what is below is more of the same."""


def main(arguments: list[str]) -> int:
    """Take the pictures; 1 when a page answered with a fault of the server's."""
    parser = argparse.ArgumentParser(prog="python -m tests.shots", description=__doc__)
    parser.add_argument("--to", type=Path, default=ROOT / "var" / "shots")
    parser.add_argument("--only", default="", help="pictures whose name has this text")
    options = parser.parse_args(arguments)
    options.to.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with stage.database(), served() as address:
        from tests.clock import moved_clock
        from tests.shop import open_shop

        with moved_clock() as clock, open_shop() as shop:
            shots = [shot for shot in _staged(clock, shop) if options.only in shot.name]
            print(f"{len(shots)} pages ready after {time.monotonic() - began:.0f} s", flush=True)
            faults = _taken(shots, address, options.to)
    if not options.only:
        sheet.write(options.to, [shot.name for shot in shots])
    count = len(shots) * len(stage.THEMES) * len(stage.WIDTHS)
    print(f"{count} pictures in {options.to} after {time.monotonic() - began:.0f} s")
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


def _staged(clock: Any, shop: Any) -> list[Shot]:
    """Make the tenants with what happened in them."""
    from tests.shots import catalogue, scenes
    from tests.shots.house import House

    clock.set(-48 * scenes.HOUR)
    story = scenes.Story(House("harbour", "Harbour Goods", shop.url), shop, clock)
    scenes.told(story)
    clock.set(-6 * scenes.HOUR)
    worst = scenes.Story(House("hostile", "W" * 80, shop.url, agent="agent-" + "w" * 70), shop, clock)
    scenes.hostile(worst)
    clock.set(0)
    nothing = House("quiet", "Quiet Bay", shop.url)
    return [*catalogue.plain(), *catalogue.empty(nothing), *catalogue.full(story), *catalogue.hostile(worst)]


def _taken(shots: Iterable[Shot], address: str, folder: Path) -> list[str]:
    faults: list[str] = []
    with chromium.chromium() as browser:
        for theme in stage.THEMES:
            for width in stage.WIDTHS:
                context = stage.window(browser, address, theme, width)
                for shot in shots:
                    faults += _take(context, shot, address, folder / sheet.picture(shot.name, theme, width))
                context.close()
    return faults


@cache
def _session(person: Any) -> str:
    from django.test import Client

    client = Client()
    client.force_login(person)
    return str(client.cookies["resumeapp_session"].value)


def _take(context: Any, shot: Shot, address: str, path: Path) -> list[str]:
    context.clear_cookies()
    if shot.person is not None:
        context.add_cookies([{"name": "resumeapp_session", "value": _session(shot.person), "url": address}])
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    try:
        answer = page.goto(shot.address, wait_until="load")
        if shot.act is not None:
            shot.act(page)
        if shot.page == "card" or shot.act is not None:
            page.wait_for_load_state("networkidle")
        wide, tall = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
        window = page.viewport_size
        # The window grows with the page, so that what is fixed to its edge doesn't lie over the middle of the picture.
        page.set_viewport_size({"width": window["width"], "height": min(max(tall, window["height"]), TALLEST)})
        page.screenshot(path=path, animations="disabled")
        sideways = [f"{path.name} is {wide} px wide"] if wide > window["width"] else []
        broken = answer is None or (answer.status >= 500 and shot.name != "fault-500")
        return [*sideways, *([f"{path.name}: the server answered {answer and answer.status}"] if broken else [])]
    finally:
        page.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
