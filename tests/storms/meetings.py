"""Events and waits that meet: both sides commit first and look afterwards, and each run is woken once."""

import time
from collections import Counter

from tests.crash.processes import Gone
from tests.storms.ground import Ground
from tests.storms.report import Failure, Outcome

PROCESSES = 2


def storm(ground: Ground, meetings: int, seed: int = 1) -> Outcome:
    """So many meetings, each event delivered five times."""
    began = time.monotonic()
    inside = ground.inside(ground.take())
    counted: Counter[str] = Counter()
    failures = []
    shares = [meetings // PROCESSES + (number < meetings % PROCESSES) for number in range(PROCESSES)]
    key = ground.tenant["key"]
    tables = [
        inside.start("tests.storms.meet:work", {"key": key, "seed": seed * PROCESSES + number, "count": share})
        for number, share in enumerate(shares)
        if share
    ]
    for table in tables:
        try:
            said = table.wait_for("done", 120 + meetings * 0.2)
            counted.update(said["counted"])
            failures += [Failure(seed, text) for text in said["failures"]]
        except Gone as gone:
            failures.append(Failure(seed, f"{gone}: {table.log.read_text()[-800:]}"))
        finally:
            table.close()
    held = sum(counted[when] for when in ("early", "same time", "late"))
    if held != meetings and not failures:
        failures.append(Failure(seed, f"only {held} of {meetings} meetings took place"))
    if meetings >= 400:
        if counted["overlapped"] < counted["same time"] // 2:
            failures.append(Failure(seed, "fewer than half of those at the same time overlapped"))
        if counted["both stored before either looked"] < counted["same time"] * 2 // 5:
            failures.append(Failure(seed, "too few looked when both had stored: this proves nothing"))
        if not 0 < counted["met by the event"] < held:
            failures.append(Failure(seed, "one side of the meetings never was the second"))
    ground.kept = ground.kept or bool(failures)
    return Outcome("meetings", held, time.monotonic() - began, counted, failures)
