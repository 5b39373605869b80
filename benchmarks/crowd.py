"""Among 100,000 waiting runs: how soon a worker has the run that an event or a person woke, what rest costs, and how long pages take."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from uuid import UUID, uuid4

import orjson
from django.db import connection
from django.test.utils import CaptureQueriesContext

from benchmarks import processes
from benchmarks.acts import STRUCTURED, Item, claim_body, event_body, expect, requests_of
from benchmarks.figures import Figure, percentile
from benchmarks.loader import Copies, golden, load, reckon
from benchmarks.scene import WORKFLOW, Scene, Seat
from benchmarks.wire import Inside, Wire
from benchmarks.worker import WAIT, work
from benchmarks.yard import Yard
from ledger.engine import sweep
from ledger.services import meetings
from tests.postgres import PostgresServer

ASKED = 1_000
STATE = 1024
SETTLED = 5.0
"""Seconds that processes get before their rest is measured."""
RESTED = 30.0
PATIENCE = 20
FEWEST = 200
"""Times that a meeting is measured at least."""
SWEEPS = 5
LEASE = 1
"""Seconds for which a worker that is about to die has a run."""
WARM = 100
"""Meetings before any is measured: a connection plans each statement again for its first eight times, and a server has many."""
DEATHS, LIVES = 10, 3
"""Runs whose workers die, and how often each is claimed: nobody may have it once more."""


def figures(waiting: int) -> dict[str, str]:
    """The figures' names, beside those of pages."""
    return {
        "empty": "rest with nothing waiting",
        "load": f"load {waiting:,} waiting runs",
        "rest": f"rest with {waiting:,} waiting",
        "event": f"event to packet among {waiting:,} waiting",
        "approval": f"approval to packet among {waiting:,} waiting",
        "death": f"a worker's death to packet among {waiting:,} waiting, less its lease",
        "sweep": f"whole sweep among {waiting:,} waiting",
    }


def names(waiting: int) -> list[str]:
    """All of them."""
    nobody = Seat(UUID(int=0), "", "", UUID(int=0), "", "")
    return [*figures(waiting).values(), *(f"{page} at {waiting:,} runs" for page in addresses(nobody, UUID(int=0)))]


def addresses(seat: Seat, run_id: UUID) -> dict[str, str]:
    """The pages, by name."""
    at = f"/t/{seat.slug}"
    return {
        "inbox": f"{at}/inbox/",
        "runs": f"{at}/runs/",
        "runs by status": f"{at}/runs/?status=waiting",
        "runs by workflow": f"{at}/runs/?workflow={WORKFLOW}",
        "runs by text": f"{at}/runs/?q=word-000003e8",
        "runs by id": f"{at}/runs/?q={run_id.hex[-8:]}",
        "run page": f"{at}/runs/{run_id}/",
        "history": f"{at}/history/",
        "history by verb": f"{at}/history/?verb=run.claim",
        "history by run": f"{at}/history/?run={run_id}",
    }


@dataclass(frozen=True, slots=True)
class Crowd:
    """The tenant with everything that waits in it."""

    seat: Seat
    waiting: Sequence[Item]
    asked: Sequence[Item]


def measure(
    wanted: Sequence[str], count: int, server: PostgresServer, seconds: float, logs: Path, yard: Yard
) -> Iterator[Figure]:
    """The figures that are wanted, with all of the product's processes running and so many waiting runs."""
    named = {key: name for key, name in figures(count).items() if name in wanted}
    scene = Scene()
    waits, asks = golden(scene.waiting(STATE)), golden(scene.asked(STATE))
    if "empty" in named:
        with processes.everything(logs) as (_, pid):
            yield _rest(named["empty"], pid, server)
    began = time.monotonic()
    waiting = load(waits, count, shift=lambda number: timedelta(seconds=-number * 0.2))
    took = time.monotonic() - began
    asked = load(asks, ASKED, first=count + 1, shift=lambda number: timedelta(seconds=number))
    reckon("VACUUM ANALYZE")
    if "load" in named:
        rate = yard.measure()
        yield Figure(named["load"], count / took / rate, count / took, note=f"{took:.0f} s")
    crowd = Crowd(scene.seat, _items(waiting), _items(asked))
    with processes.everything(logs) as (port, pid):
        if "rest" in named:
            yield _rest(named["rest"], pid, server)
        for page, path in addresses(crowd.seat, crowd.waiting[count // 2].run_id).items():
            if (name := f"{page} at {count:,} runs") in wanted:
                yield _page(name, path, port, crowd.seat, seconds)
        # Before the meetings: of their worker a claim is left with the server, which would take what is claimed here.
        if "death" in named:
            yield _deaths(named["death"], crowd, port)
        if "event" in named or "approval" in named:
            yield from _all_meetings(named, crowd, port, seconds * 5)
    if "sweep" in named:
        yield _sweep(named["sweep"])


def _items(copies: Copies) -> list[Item]:
    return [Item(run_id, word) for run_id, word in zip(copies.ids, copies.words, strict=True)]


def _rest(name: str, pid: int, server: PostgresServer) -> Figure:
    """What the product's processes and PostgreSQL take while nothing happens."""
    database = server.process.pid if server.process else 0
    time.sleep(SETTLED)
    before = processes.cpu_of(pid), processes.cpu_of(database)
    time.sleep(RESTED)
    own, its = (
        (after - first) / RESTED * 100
        for after, first in zip((processes.cpu_of(pid), processes.cpu_of(database)), before, strict=True)
    )
    memory, served = processes.memory_of(pid), processes.memory_of(database)
    note = f"{memory:.0f} MB, {own:.1f} % of a core; PostgreSQL {served:.0f} MB, {its:.1f} %"
    return Figure(name, memory_mb=memory, core_percent=own, note=note)


def _sweep(name: str) -> Figure:
    """What a process does when it begins and every ten minutes: the sweep with its look at all that waits, however old."""
    times = []
    for _ in range(SWEEPS):
        looks = meetings.Looks(meetings.unmet)
        began = time.perf_counter()
        looks.found(sweep.BATCH)
        sweep.sweep()
        times.append(time.perf_counter() - began)
    return Figure(name, p50=percentile(times, 0.5), p99=max(times) * 1000, calls=SWEEPS)


# Pages ------------------------------------------------------------------------------------------


def _page(name: str, path: str, port: int, seat: Seat, seconds: float) -> Figure:
    """A page as a signed-in person opens it again and again; its statements as counted in this process."""
    inside = Inside(seat.person)
    expect(inside.send("GET", path), 200)
    with CaptureQueriesContext(connection) as caught:
        expect(inside.send("GET", path), 200)
    wire = Wire(port, seat.person)
    expect(wire.send("GET", path), 200)
    times: list[float] = []
    began = now = time.perf_counter()
    while now - began < seconds or len(times) < 5:
        expect(wire.send("GET", path), 200)
        before, now = now, time.perf_counter()
        times.append(now - before)
    wire.close()
    return Figure(
        name,
        per_second=len(times) / (now - began),
        p50=percentile(times, 0.5),
        p99=percentile(times, 0.99),
        trips=len(caught),
        calls=len(times),
    )


# Meetings ---------------------------------------------------------------------------------------

Begin = tuple[UUID, Callable[[], object]]


def _events(crowd: Crowd, port: int) -> Iterator[Begin]:
    """Events for one waiting run after the other."""
    wire = Wire(port, crowd.seat.agent)
    for item in crowd.waiting:
        body = event_body(item, STATE)
        yield item.run_id, lambda body=body: expect(wire.send("POST", "/api/v1/events", body, STRUCTURED), 202)  # type: ignore[misc]


def _approvals(crowd: Crowd, port: int) -> Iterator[Begin]:
    """A person's approvals, one request after the other."""
    wire = Wire(port, crowd.seat.person)
    for request in requests_of(crowd.seat, crowd.asked):
        path = f"/api/v1/approvals/{request.pk}/decision"
        body = {"decision": "approve", "revision": 1, "digest": bytes(request.digest).hex()}
        yield request.run_id, lambda path=path, body=body: expect(wire.send("POST", path, body), 200)  # type: ignore[misc]


def _all_meetings(named: dict[str, str], crowd: Crowd, port: int, seconds: float) -> Iterator[Figure]:
    """With one worker throughout: the server goes on with the claim of one that is gone, and gives it a run."""
    context = multiprocessing.get_context("spawn")
    end, theirs = context.Pipe()
    worker = context.Process(target=work, args=(theirs, port, crowd.seat.agent, claim_body(uuid4())), daemon=True)
    worker.start()
    try:
        end.recv()
        for key, begin in (("event", _events), ("approval", _approvals)):
            if key in named:
                yield _meetings(named[key], begin(crowd, port), end, seconds)
    finally:
        worker.kill()
        worker.join()


def _meetings(name: str, begins: Iterator[Begin], end: Connection, seconds: float) -> Figure:
    """From before the request is sent until the worker, which waits with a claim, holds the packet."""
    times = []
    until = 0.0
    for number, (run_id, begin) in enumerate(begins):
        # Not in step with whoever looks at fixed intervals.
        time.sleep(number % 10 * 0.025)
        began = time.monotonic()
        begin()
        if not end.poll(PATIENCE):
            raise AssertionError(f"nobody had the run {run_id} after {PATIENCE} s")
        got, at = end.recv()
        if got != str(run_id):
            raise AssertionError(f"the worker got {got} instead of {run_id}")
        if number < WARM:
            until = at + seconds
            continue
        times.append(at - began)
        if at > until and len(times) >= FEWEST:
            break
    return Figure(name, p50=percentile(times, 0.5), p99=percentile(times, 0.99), calls=len(times))


def _deaths(name: str, crowd: Crowd, port: int) -> Figure:
    """From the end of the lease of a worker that never renewed it until the next one holds the packet; each run is taken till it is blocked."""
    times: list[float] = []
    wire = Wire(port, crowd.seat.agent)
    claim = {**claim_body(uuid4()), "lease_seconds": LEASE, "wait_seconds": WAIT}
    for item in crowd.waiting[-DEATHS:]:
        expect(wire.send("POST", "/api/v1/events", event_body(item, STATE), STRUCTURED), 202)
        taken = None
        for _ in range(LIVES):
            packets = orjson.loads(expect(wire.send("POST", "/api/v1/runs/claim", claim), 200))["packets"]
            assert [packet["run"]["id"] for packet in packets] == [str(item.run_id)], packets
            if taken is not None:
                times.append(time.monotonic() - taken - LEASE)
            taken = time.monotonic()
    return Figure(name, p50=percentile(times, 0.5), p99=percentile(times, 0.99), calls=len(times))
