"""The harness's side of a load: writers in processes of their own, and whether everything that they were answered is in the record."""

import time
from collections import Counter
from pathlib import Path

from tests.crash.processes import Gone, Process
from tests.storms.ground import Ground
from tests.storms.report import Failure

WRITERS = 3


class Writers:
    """Some writers on one database of a ground; `port` is where they look for it."""

    def __init__(self, ground: Ground, database: str, seed: int, port: int = 0) -> None:
        self._ground = ground
        self._database = database
        self._seed = seed
        self._inside = ground.inside(database, port)
        self._home = ground.home / f"writers-{database}"
        self._home.mkdir()
        self._stop = self._home / "stop"
        self._processes: list[Process] = []
        self.counted: Counter[str] = Counter()

    def start(self) -> None:
        """Start them, and wait until each is at work."""
        for number in range(WRITERS):
            args = {
                "key": self._ground.tenant["key"],
                "seed": self._seed * 100 + number,
                "stop": str(self._stop),
                "acks": str(self._acks(number)),
            }
            self._processes.append(self._inside.start("tests.storms.load:write", args))
        for process in self._processes:
            process.wait_for("started", 60)

    def _acks(self, number: int) -> Path:
        return self._home / f"acks-{number}"

    def acknowledged(self) -> int:
        """How many writes were answered so far."""
        return sum(
            self._acks(number).read_bytes().count(b"\n") for number in range(WRITERS) if self._acks(number).exists()
        )

    def alive(self) -> bool:
        """Is any of them still at work?"""
        return any(process.alive() and not process.of_kind("done") for process in self._processes)

    def finish(self) -> list[Failure]:
        """Let each end its story; then everything acknowledged is looked for, and everything there verified."""
        self._stop.touch()
        failures = []
        for number, process in enumerate(self._processes):
            try:
                said = process.wait_for("done", 120)
            except Gone as gone:
                failures.append(self._failure(f"writer {number}: {gone}: {process.log.read_text()[-500:]}"))
                continue
            finally:
                process.close()
            self.counted.update(said["counted"])
            if said["error"]:
                failures.append(self._failure(f"writer {number}: {said['error']}"))
        inside = self._ground.inside(self._database)
        places = [str(self._acks(number)) for number in range(WRITERS) if self._acks(number).exists()]
        checked = inside.run("tests.storms.load:check", {"acks": places}, 300)
        self.counted["acknowledged"] = checked["acks"]
        if not checked["acks"]:
            failures.append(self._failure("nothing was acknowledged"))
        failures += [self._failure(f"LOST, of {checked['lost_count']}: {text}") for text in checked["lost"]]
        began = time.monotonic()
        failures += [self._failure(f"CHAIN: {fault}") for fault in self._ground.verify(self._database)]
        self.counted["seconds of verifying"] = round(time.monotonic() - began)
        self._ground.kept = self._ground.kept or bool(failures)
        return failures

    def _failure(self, text: str) -> Failure:
        return Failure(self._seed, text)
