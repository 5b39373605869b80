"""Where Python's time goes in one verb: the functions that take most of it themselves, waiting for the database aside."""

from __future__ import annotations

import cProfile
import pstats
import time
from itertools import islice
from pathlib import Path

from benchmarks.acts import VERBS, Item
from benchmarks.loader import golden, load
from benchmarks.scene import GOLDEN, Scene
from ledger.services import facts

ACTS = 300
WARM = 20
SHOWN = 25
ROOT = Path(__file__).resolve().parent.parent


def profile(name: str) -> None:
    """Act so often in this process, by its CPU clock, and print the functions. Raises KeyError for a verb that isn't measured."""
    verb = VERBS[name]
    scene = Scene()
    made = golden(GOLDEN[verb.golden](scene, 1024))
    since = facts.read().now - made.entries[-1]["at"]
    copies = load(made, ACTS + WARM, shift=lambda number: since)
    items = [Item(run_id, word) for run_id, word in zip(copies.ids, copies.words, strict=True)]
    acts = verb.inside(scene.seat, items, 1024)
    assert len(list(islice(acts, WARM))) == WARM
    watched = cProfile.Profile(time.process_time)
    watched.enable()
    done = len(list(islice(acts, ACTS)))
    watched.disable()
    stats = pstats.Stats(watched)
    functions = sorted(stats.stats.items(), key=lambda each: each[1][2], reverse=True)  # type: ignore[attr-defined]
    total = sum(each[1][2] for each in functions)
    print(f"{name}: {total / done * 1000:.2f} ms of CPU each, as the profile sees it")
    for (path, line, function), (_, calls, own, _, _) in functions[:SHOWN]:
        place = path.removeprefix(f"{ROOT}/").rpartition("site-packages/")[2]
        print(f"{own / total:6.1%} {calls / done:7.1f} calls  {place}:{line} {function}")
