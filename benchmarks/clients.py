"""Client processes: each prepares what it is given, waits for the word, acts for so long, and tells how long each act took."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.acts import Acts, Item
    from benchmarks.scene import Seat


@dataclass(frozen=True, slots=True)
class Job:
    """What a client is to do; over HTTP where there is a port."""

    verb: str
    seat: Seat
    items: Sequence[Item]
    size: int
    port: int = 0


@dataclass(frozen=True, slots=True)
class Lap:
    """The acts of one client in one slice: times of each in seconds, how long all took, and the client's own CPU seconds."""

    times: list[float]
    elapsed: float
    cpu: float


class Clients:
    """Processes that are kept for many measurements."""

    def __init__(self, count: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.ends: list[Connection] = []
        self.processes = []
        for _ in range(count):
            own, theirs = context.Pipe()
            process = context.Process(target=serve, args=(theirs,), daemon=True)
            process.start()
            theirs.close()
            self.ends.append(own)
            self.processes.append(process)

    def prepare(self, jobs: Sequence[Job]) -> None:
        """Give the first clients a job each, and wait until they are ready. Raises RuntimeError with what went wrong in one."""
        for end, job in zip(self.ends, jobs, strict=False):
            end.send(job)
        for end in self.ends[: len(jobs)]:
            _received(end)

    def act(self, count: int, seconds: float) -> list[Lap]:
        """Let the first clients act for so long, all at once."""
        for end in self.ends[:count]:
            end.send(seconds)
        return [_received(end) for end in self.ends[:count]]

    def close(self) -> None:
        for end in self.ends:
            end.close()
        for process in self.processes:
            process.join(10)
            if process.is_alive():
                process.kill()


def _received(end: Connection) -> Lap:
    told: Lap | Exception = end.recv()
    if isinstance(told, Exception):
        raise RuntimeError(f"a client failed: {told}") from told
    return told


def serve(end: Connection) -> None:
    """A client's life: jobs and seconds come in, laps go out, until the pipe is closed."""
    import django

    django.setup()
    acts: Acts = iter(())
    while True:
        try:
            told: Job | float = end.recv()
        except EOFError:
            return
        try:
            if isinstance(told, Job):
                acts = _prepared(told)
                end.send(lap(acts, 0.0))
            else:
                end.send(lap(acts, told))
        except Exception as fault:
            end.send(RuntimeError(f"{type(fault).__name__}: {fault}"))


def _prepared(job: Job) -> Acts:
    from benchmarks.acts import VERBS
    from benchmarks.wire import Wire

    verb = VERBS[job.verb]
    if not job.port:
        return verb.inside(job.seat, job.items, job.size)
    if verb.over_http is None:
        raise ValueError(f"{job.verb} has no request")
    agent, person = Wire(job.port, job.seat.agent), Wire(job.port, job.seat.person)
    return verb.over_http(job.seat, job.items, job.size, agent, person)


def lap(acts: Acts, seconds: float) -> Lap:
    """Act until time is up or nothing is left; at least once."""
    times: list[float] = []
    cpu, began = time.process_time(), time.perf_counter()
    before = began
    for _ in acts:
        now = time.perf_counter()
        times.append(now - before)
        before = now
        if now - began >= seconds:
            break
    return Lap(times, before - began, time.process_time() - cpu)
