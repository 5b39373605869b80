"""Every boundary of a reference run, failed once by a kill and once by an error, a statement also by one after it; somebody else finishes, and it
is judged."""

import contextlib
import queue
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.crash.harness import judged
from tests.storms.ground import Corner, Ground
from tests.storms.report import Failure, Outcome
from tests.storms.trips import PROCESSES, Trip

SLOTS = 12
DROPPED_AT_MOST = 0.05
"""Such a share of the boundaries may differ between two runs in which nothing fails."""


@dataclass(frozen=True, slots=True)
class Fall:
    """One boundary and how it fails."""

    seed: int
    process: str
    name: str
    how: str

    @property
    def again(self) -> str:
        return f"--only '{self.process}|{self.name}|{self.how}'"


def reference(corner: Corner) -> list[tuple[str, str]]:
    """Process and name of each boundary of a run in which nothing fails, in the order of each process."""
    trip = Trip(corner, 0, {name: {"name": None, "how": "count"} for name in PROCESSES})
    trip.go()
    if trip.run.error:
        raise RuntimeError(f"the reference run: {trip.run.error}")
    found = [(line["process"], line["name"]) for line in trip.reported("boundary")]
    return [each for name in PROCESSES for each in _to_the_last_commit([b for b in found if b[0] == name])]


def _to_the_last_commit(boundaries: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Without what a worker asks for once the run is over."""
    commits = [number for number, (_, name) in enumerate(boundaries) if "/checkpoints" in name]
    return boundaries[: commits[-1] + 1] if commits else boundaries


def falls(boundaries: Sequence[tuple[str, str]], seed: int) -> list[Fall]:
    """A kill and an error for each; for a statement also an error that comes once it was carried out."""
    found = []
    for process, name in boundaries:
        for how in ("kill", "error", "late") if is_statement(name) else ("kill", "error"):
            found.append(Fall(seed + len(found), process, name, how))
    return found


def is_statement(name: str) -> bool:
    return " sql " in name


def storm(ground: Ground, passes: int, seed: int = 1, only: str = "") -> Outcome:
    """All boundaries so many times over. `only` is `process|name|how`."""
    began = time.monotonic()
    with Corner(ground) as corner:
        # What only one of two runs has, such as a statement of a writer that had to read again, can't be struck at will.
        once, twice = reference(corner), reference(corner)
        boundaries = [boundary for boundary in once if boundary in set(twice)]
        dropped = len({*once, *twice}) - len(boundaries)
    todo = [fall for turn in range(passes) for fall in falls(boundaries, seed + turn)]
    if only:
        process, name, how = only.split("|")
        todo = [Fall(seed, process, name, how)]
    trips = _side_by_side(ground, todo)
    failures = [_missed(fall) for fall, trip in trips if not trip.run.notes.get("struck")]
    failures += _found(ground, trips)
    if dropped > DROPPED_AT_MOST * len(boundaries):
        failures.append(
            Failure(seed, f"{dropped} boundaries were in one of two runs only, and {len(boundaries)} in both")
        )
    counted = {
        "boundaries": len(boundaries),
        "statements": sum(is_statement(name) for _, name in boundaries),
        "dropped": dropped,
        "of them": {name: sum(one == name for one, _ in boundaries) for name in PROCESSES},
        "kills": sum(len(trip.run.kills) for _, trip in trips),
    }
    return Outcome("boundaries", len(todo), time.monotonic() - began, counted, failures)


def _side_by_side(ground: Ground, todo: Sequence[Fall]) -> list[tuple[Fall, Trip]]:
    left: queue.SimpleQueue[Fall] = queue.SimpleQueue()
    for fall in todo:
        left.put(fall)
    done: list[tuple[Fall, Trip]] = []

    def work() -> None:
        with contextlib.ExitStack() as stack:
            corner = stack.enter_context(Corner(ground))
            while True:
                try:
                    fall = left.get_nowait()
                except queue.Empty:
                    return
                trip = _one(corner, fall)
                done.append((fall, trip))
                if trip.run.error:
                    # A run that was left unfinished would be claimed by the next trial's workers.
                    corner = stack.enter_context(Corner(ground))

    threads = [threading.Thread(target=work) for _ in range(min(SLOTS, len(todo)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return done


def _one(corner: Corner, fall: Fall) -> Trip:
    trip = Trip(corner, fall.seed, {fall.process: {"name": fall.name, "how": fall.how}})
    trip.go()
    struck = [line for line in trip.reported("struck") if line["name"] == fall.name]
    trip.run.notes["struck"] = trip.felled if fall.how == "kill" else bool(struck)
    return trip


def _missed(fall: Fall) -> Failure:
    return Failure(fall.seed, f"{fall.process} never came to {fall.name}", fall.again)


def _found(ground: Ground, trips: list[tuple[Fall, Trip]]) -> list[Failure]:
    """What the judge finds in each corner, what the product's own verification does, and that each order was refunded once."""
    failures = []
    by_corner: dict[str, list[tuple[Fall, Trip]]] = {}
    for fall, trip in trips:
        by_corner.setdefault(trip.corner.name, []).append((fall, trip))
    for name, here in by_corner.items():
        corner = here[0][1].corner
        by_seed = {trip.run.trial.id: fall for fall, trip in here}
        for finding in judged(corner, "boundaries", [trip.run for _, trip in here]):
            at: Any = by_seed.get(finding.trial)
            where = f" at {at.process} {at.name} by {at.how}" if at else ""
            failures.append(
                Failure(at.seed if at else 0, f"{finding.kind}{where}: {finding.text}", at.again if at else "")
            )
        failures += [Failure(0, f"{name}: {fault}") for fault in ground.verify(name)]
        ground.kept = ground.kept or corner.kept
    return failures
