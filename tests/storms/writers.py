"""The harness's side of a load: writers in processes of their own, and whether everything that they were answered is in the record."""

import contextlib
import time
from collections import Counter
from pathlib import Path

from tests.crash.judge import Record
from tests.crash.processes import Gone, Process
from tests.storms.acknowledged import absent, broken
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

    def stop(self) -> list[Failure]:
        """Let each end its story; what went wrong in it."""
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
        return failures

    def judged(self) -> list[Failure]:
        """Everything acknowledged is looked for, every chain is hashed anew without the product, and the product verifies everything as well."""
        failures = []
        places = [self._acks(number) for number in range(WRITERS) if self._acks(number).exists()]
        with contextlib.closing(Record("postgres", self._ground.address(self._database))) as record:
            acknowledged, lost = absent(record, places)
            runs, chains = broken(record)
        self.counted["acknowledged"] = acknowledged
        self.counted["runs whose chains were hashed anew"] = runs
        if not acknowledged:
            failures.append(self._failure("nothing was acknowledged"))
        failures += [self._failure(f"LOST, of {len(lost)}: {text}") for text in lost[:20]]
        failures += [self._failure(f"CHAIN: {text}") for text in chains[:20]]
        began = time.monotonic()
        failures += [self._failure(f"CHAIN: {fault}") for fault in self._ground.verify(self._database)]
        self.counted["seconds of verifying"] = round(time.monotonic() - began)
        self._ground.kept = self._ground.kept or bool(failures)
        return failures

    def _failure(self, text: str) -> Failure:
        return Failure(self._seed, text)
