"""Connections to PostgreSQL are cut within statements and around their commits while writers write: every write is answered by its key."""

import time

from tests.storms.cutter import WAYS, Cutter
from tests.storms.errands import Errands
from tests.storms.ground import Ground
from tests.storms.report import Failure, Outcome
from tests.storms.writers import Writers

SECONDS_A_CUT = 1.0
"""So long a cut may take on the average before the storm is given up as stuck."""


def storm(ground: Ground, cuts: int, seed: int = 1) -> Outcome:
    """So many cuts."""
    began = time.monotonic()
    cutter = Cutter(ground.server.port, cuts, seed)
    try:
        database = ground.take()
        writers, errands = Writers(ground, database, seed, cutter.port), Errands(ground, database, seed, cutter.port)
        writers.start()
        errands.start()
        cutter.begin()
        deadline = time.monotonic() + 30 + cuts * SECONDS_A_CUT
        while not cutter.done.wait(0.2) and writers.alive() and time.monotonic() < deadline:
            pass
        failures = writers.stop() + errands.finish() + writers.judged()
    finally:
        cutter.close()
    made = sum(cutter.counted.values())
    if not cutter.done.is_set():
        failures.append(Failure(seed, f"only {made} of {cuts} cuts were made"))
    if cuts >= 20 * len(WAYS):
        missing = [way for way in WAYS if not cutter.counted[way]]
        failures += [Failure(seed, f"no connection was cut in the way {way!r}") for way in missing]
        if not writers.counted["found by key"] or not writers.counted["carried out when sent again"]:
            failures.append(Failure(seed, "no lost answer was found by its key, or none had to be carried out"))
    counted = {**cutter.counted, **writers.counted, **{f"errands: {k}": n for k, n in errands.counted.items()}}
    return Outcome("cuts", made, time.monotonic() - began, counted, failures)
