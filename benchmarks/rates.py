"""How many of each verb a second, beside the yardstick: in process and over HTTP, by one, four and eight clients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from django.db import connection
from django.test.utils import CaptureQueriesContext

from benchmarks import processes
from benchmarks.acts import VERBS, Acts, Item, Verb
from benchmarks.clients import Clients, Job, Lap
from benchmarks.figures import Figure, percentile
from benchmarks.loader import Golden, golden, load, reckon
from benchmarks.scene import GOLDEN, Scene
from benchmarks.wire import Inside
from benchmarks.yard import Yard
from ledger.services import facts

SIZES = (1024, 4096)
PLACES = ("in-process", "http")
COUNTS = {1024: (1, 4, 8), 4096: (1, 4, 8)}
SLICES = 3
IN_USE = 300
"""Runs of each kind that are there from the beginning."""
COUNTED = 4
"""Acts whose statements are counted: the most of all but the first, which may note a key's use or send a hint."""


@dataclass(frozen=True, slots=True)
class Rate:
    """One figure to be measured."""

    verb: str
    size: int
    place: str
    clients: int

    @property
    def name(self) -> str:
        """`commit http 8`, with the state's size where it isn't 1 KiB."""
        size = "" if self.size == SIZES[0] else f" {self.size // 1024} KiB"
        return f"{self.verb}{size} {self.place} {self.clients}"


def offered() -> Iterator[Rate]:
    """Every figure, in the table's order."""
    for name, verb in VERBS.items():
        for size in SIZES:
            for place in PLACES:
                if place == "in-process" or verb.over_http is not None:
                    yield from (Rate(name, size, place, clients) for clients in COUNTS[size])


class Rates:
    """Measures figures on a database of its own."""

    def __init__(self, yard: Yard, seconds: float, logs: Path) -> None:
        self.yard, self.seconds, self.logs = yard, seconds, logs
        self.scenes: dict[int, Scene] = {}
        self.golden: dict[tuple[str, int], Golden] = {}
        self.word = 1
        self.trips: dict[tuple[str, int, str], int] = {}

    def measure(self, wanted: Sequence[Rate]) -> Iterator[Figure]:
        """The figures, one after the other; those over HTTP share a server."""
        self._prepare(sorted({rate.size for rate in wanted}))
        with ExitStack() as stack:
            clients = Clients(max(rate.clients for rate in wanted))
            stack.callback(clients.close)
            port, pid = 0, 0
            if any(rate.place == "http" for rate in wanted):
                port, pid = stack.enter_context(processes.web(self.logs))
            for rate in wanted:
                yield self._one(rate, clients, port if rate.place == "http" else 0, pid)

    def _prepare(self, sizes: Sequence[int]) -> None:
        """Make every golden run before anything is loaded; the one that is ready last, since whoever claims would take it. Some of all others are
        there from the beginning: plans that were made for empty tables are of no use in a database that is in use, which has replaced them."""
        for size in sizes:
            scene = self.scenes[size] = Scene()
            for name in sorted(GOLDEN, key=lambda each: each == "ready"):
                self.golden[name, size] = golden(GOLDEN[name](scene, size))
        for (name, size), _ in list(self.golden.items()):
            if name != "ready":
                self.items(name, size, IN_USE)

    def items(self, name: str, size: int, count: int) -> list[Item]:
        """So many fresh runs, copies of the golden one of this name, as of now."""
        made = self.golden[name, size]
        since = facts.read().now - made.entries[-1]["at"]
        copies = load(made, count, first=self.word, shift=lambda number: since)
        self.word += count
        reckon()
        return [Item(run_id, word) for run_id, word in zip(copies.ids, copies.words, strict=True)]

    def _one(self, rate: Rate, clients: Clients, port: int, pid: int) -> Figure:
        verb = VERBS[rate.verb]
        each = 1 if verb.one_run else int(self.seconds * verb.most / rate.clients) + COUNTED
        items = self.items(verb.golden, rate.size, each * rate.clients + COUNTED)
        trips = self._trips(rate, verb, items[-COUNTED:])
        seat = self.scenes[rate.size].seat
        clients.prepare(
            [
                Job(rate.verb, seat, items[number * each : (number + 1) * each], rate.size, port)
                for number in range(rate.clients)
            ]
        )
        yards, laps, cpu = [self.yard.measure()], [], 0.0
        for _ in range(SLICES):
            before = processes.cpu_of(pid) if port else 0.0
            laps.append(clients.act(rate.clients, self.seconds / SLICES))
            cpu += processes.cpu_of(pid) - before if port else sum(lap.cpu for lap in laps[-1])
            yards.append(self.yard.measure())
        return _figure(rate.name, laps, yards, cpu, trips)

    def _trips(self, rate: Rate, verb: Verb, items: Sequence[Item]) -> int:
        """Statements of one act, counted here: over HTTP through Django's whole handling in this process."""
        of = (rate.verb, rate.size, rate.place)
        if of not in self.trips:
            seat = self.scenes[rate.size].seat
            if rate.place == "in-process":
                acts = verb.inside(seat, items, rate.size)
            elif verb.over_http is not None:
                acts = verb.over_http(seat, items, rate.size, Inside(seat.agent), Inside(seat.person))
            self.trips[of] = counted(acts)
        return self.trips[of]


def counted(acts: Acts) -> int:
    """The most statements that one of these acts takes, the first aside."""
    found = []
    for _ in range(COUNTED):
        with CaptureQueriesContext(connection) as caught:
            done = len(list(islice(acts, 1)))
        if done:
            found.append(len(caught))
    return max(found[1:])


def _figure(name: str, laps: Sequence[Sequence[Lap]], yards: Sequence[float], cpu: float, trips: int) -> Figure:
    times = [each for slice_ in laps for lap in slice_ for each in lap.times]
    rates = [sum(len(lap.times) / lap.elapsed for lap in slice_) for slice_ in laps if all(lap.times for lap in slice_)]
    per_second = sum(rates) / len(rates)
    return Figure(
        name=name,
        ratio=per_second / (sum(yards) / len(yards)),
        per_second=per_second,
        p50=percentile(times, 0.5),
        p99=percentile(times, 0.99),
        cpu_ms=cpu / len(times) * 1000,
        trips=trips,
        calls=len(times),
    )
