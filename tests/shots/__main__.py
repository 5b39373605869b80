"""`python -m tests.shots [--only TEXT] [--to FOLDER]`: picture every page × state × theme × width, and let axe-core look at each."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests import chromium
from tests.live import served
from tests.shots import manifest, sheet, stage
from tests.shots.taking import take

if TYPE_CHECKING:
    from tests.shots.catalogue import Shot

ROOT = Path(__file__).resolve().parents[2]


def main(arguments: list[str]) -> int:
    """Take the pictures; 1 when a page is at fault, or when what is staged isn't what the manifest lists."""
    parser = argparse.ArgumentParser(prog="python -m tests.shots", description=__doc__)
    parser.add_argument("--to", type=Path, default=ROOT / "var" / "shots")
    parser.add_argument("--only", default="", help="pictures whose name has this text")
    options = parser.parse_args(arguments)
    options.to.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    faults: list[str] = []
    taken: list[str] = []
    with stage.database(), served() as address:
        from tests.clock import moved_clock
        from tests.shop import open_shop

        with moved_clock() as clock, open_shop() as shop, chromium.chromium() as browser:
            staged: list[str] = []
            context = stage.window(browser, address)
            for shot in _staged(clock, shop):
                staged.append(shot.name)
                if options.only in shot.name:
                    taken.append(shot.name)
                    faults += take(context, shot, address, options.to)
            faults += manifest.gaps(staged)
    if not options.only:
        sheet.write(options.to, taken)
    count = len(taken) * len(stage.THEMES) * len(stage.WIDTHS)
    print(f"{count} pictures of {len(taken)} pages in {options.to} after {time.monotonic() - began:.0f} s")
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


def _staged(clock: Any, shop: Any) -> list[Shot]:
    """Make the tenants with what happened in them."""
    from tests.shots import catalogue, hostile, scenes
    from tests.shots.house import House

    clock.set(-48 * scenes.HOUR)
    story = scenes.Story(House("harbour", "Harbour Goods", shop.url), shop, clock)
    scenes.told(story)
    clock.set(-6 * scenes.HOUR)
    worst = scenes.Story(House("hostile", "W" * 80, shop.url, agent="agent-" + "w" * 70), shop, clock)
    hostile.hostile(worst)
    clock.set(0)
    clock.hold()
    nothing = House("quiet", "Quiet Bay", shop.url)
    return [*catalogue.plain(), *catalogue.empty(nothing), *catalogue.full(story), *catalogue.hostile(worst)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
