"""PostgreSQL is killed with all its processes while writers write, and started again, many times over."""

import contextlib
import os
import random
import signal
import time
from pathlib import Path

from tests.postgres import PostgresServer
from tests.storms.errands import Errands
from tests.storms.ground import Ground
from tests.storms.report import Failure, Outcome
from tests.storms.writers import Writers

SHORTEST, LONGEST = 0.05, 0.5
"""Seconds of work between a start and the next kill."""
LEAST_WRITES = 3
"""So many writes are acknowledged between two kills, however slow the machine is."""


def kill(server: PostgresServer) -> int:
    """SIGKILL to the server and each of its children; answers how many processes died. It can't fork meanwhile: it is stopped first."""
    assert server.process is not None
    pid = server.process.pid
    os.kill(pid, signal.SIGSTOP)
    children = [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    for each in (pid, *children):
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
    server.process.wait()
    deadline = time.monotonic() + 20
    while any(_alive(each) for each in children) and time.monotonic() < deadline:
        time.sleep(0.005)
    return 1 + len(children)


def _alive(pid: int) -> bool:
    """Zombies that nobody has collected yet hold nothing any more."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def storm(ground: Ground, kills: int, seed: int = 1) -> Outcome:
    """So many kills in one go."""
    began = time.monotonic()
    chance = random.Random(seed)
    died = 0
    database = ground.take()
    ground.checkpoint()
    writers, errands = Writers(ground, database, seed), Errands(ground, database, seed)
    writers.start()
    errands.start()
    made = 0
    while made < kills:
        before = writers.acknowledged()
        time.sleep(chance.uniform(SHORTEST, LONGEST))
        deadline = time.monotonic() + 60
        while writers.acknowledged() < before + LEAST_WRITES and writers.alive() and time.monotonic() < deadline:
            time.sleep(0.01)
        if not writers.alive():
            break
        died += kill(ground.server)
        ground.server.launch()
        made += 1
    failures = writers.stop() + errands.finish() + writers.judged()
    if made < kills:
        failures.append(Failure(seed, f"only {made} of {kills} kills were made: nobody wrote any more"))
    counted = {"processes killed": died, **writers.counted, **{f"errands: {k}": n for k, n in errands.counted.items()}}
    return Outcome("kills", made, time.monotonic() - began, counted, failures)
