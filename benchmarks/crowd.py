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
from benchmarks.loader import Copies, golden, load
from benchmarks.scene import WORKFLOW, Scene, Seat
from benchmarks.wire import Inside, Wire
from benchmarks.yard import Yard
from tests.postgres import PostgresServer

WAITING = 100_000
ASKED = 1_000
STATE = 1024
SETTLED = 5.0
"""Seconds that processes get before their rest is measured."""
RESTED = 10.0
PATIENCE = 20
AT = f"at {WAITING:,} runs"
LOADED, IDLE_BEFORE, IDLE = (
    f"load {WAITING:,} waiting runs",
    "rest with nothing waiting",
    f"rest with {WAITING:,} waiting",
)
EVENT, APPROVAL = f"event to packet among {WAITING:,} waiting", f"approval to packet among {WAITING:,} waiting"


def addresses(seat: Seat, run_id: UUID) -> dict[str, str]:
    """The pages, by the figure's name."""
    at = f"/t/{seat.slug}"
    return {
        f"inbox {AT}": f"{at}/inbox/",
        f"runs {AT}": f"{at}/runs/",
        f"runs by status {AT}": f"{at}/runs/?status=waiting",
        f"runs by workflow {AT}": f"{at}/runs/?workflow={WORKFLOW}",
        f"runs by text {AT}": f"{at}/runs/?q=word-000003e8",
        f"runs by id {AT}": f"{at}/runs/?q={run_id.hex[-8:]}",
        f"run page {AT}": f"{at}/runs/{run_id}/",
        f"history {AT}": f"{at}/history/",
        f"history by verb {AT}": f"{at}/history/?verb=run.claim",
        f"history by run {AT}": f"{at}/history/?run={run_id}",
    }


PAGES = tuple(addresses(Seat(UUID(int=0), "", "", UUID(int=0), "", ""), UUID(int=0)))
NAMES = (LOADED, IDLE_BEFORE, IDLE, EVENT, APPROVAL, *PAGES)


@dataclass(frozen=True, slots=True)
class Crowd:
    """The tenant with everything that waits in it."""

    seat: Seat
    waiting: Sequence[Item]
    asked: Sequence[Item]


def measure(wanted: Sequence[str], server: PostgresServer, seconds: float, logs: Path, yard: Yard) -> Iterator[Figure]:
    """The figures that are wanted, with all of the product's processes running."""
    scene = Scene()
    made = {name: golden(getattr(scene, name)(STATE)) for name in ("waiting", "asked")}
    if IDLE_BEFORE in wanted:
        with processes.everything(logs) as (_, pid):
            yield _rest(IDLE_BEFORE, pid, server)
    began = time.monotonic()
    waiting = load(made["waiting"], WAITING, shift=lambda number: timedelta(seconds=-number * 0.2))
    took = time.monotonic() - began
    asked = load(made["asked"], ASKED, first=WAITING, shift=lambda number: timedelta(seconds=number))
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    if LOADED in wanted:
        yield Figure(LOADED, WAITING / took / yard.measure(), WAITING / took, note=f"{took:.0f} s")
    crowd = Crowd(scene.seat, _items(waiting), _items(asked))
    with processes.everything(logs) as (port, pid):
        if IDLE in wanted:
            yield _rest(IDLE, pid, server)
        for name, path in addresses(crowd.seat, crowd.waiting[WAITING // 2].run_id).items():
            if name in wanted:
                yield _page(name, path, port, crowd.seat, seconds)
        for name, begin in ((EVENT, _events), (APPROVAL, _approvals)):
            if name in wanted:
                yield _meetings(name, begin(crowd, port), port, crowd.seat, seconds * 5)


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
    memory = processes.memory_of(pid)
    return Figure(
        name, memory_mb=memory, core_percent=own, note=f"{memory:.0f} MB, {own:.1f} % of a core, PostgreSQL {its:.1f} %"
    )


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


def _meetings(name: str, begins: Iterator[Begin], port: int, seat: Seat, seconds: float) -> Figure:
    """From before the request is sent until a worker, which waits with a claim, holds the packet."""
    context = multiprocessing.get_context("spawn")
    end, theirs = context.Pipe()
    worker = context.Process(target=work, args=(theirs, port, seat.agent), daemon=True)
    worker.start()
    end.recv()
    times = []
    until = time.monotonic() + seconds
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
        times.append(at - began)
        if at > until and len(times) >= 20:
            break
    worker.kill()
    worker.join()
    return Figure(name, p50=percentile(times, 0.5), p99=percentile(times, 0.99), note=f"{len(times)} times")


def work(end: Connection, port: int, headers: dict[str, str]) -> None:
    """A worker: waits with a claim, tells which run it got and when (by the machine's monotonic clock), and waits again."""
    wire = Wire(port, headers)
    body = claim_body(uuid4(), wait_seconds=20)
    wire.send("POST", "/api/v1/runs/claim", claim_body(uuid4()))
    end.send("waiting")
    while True:
        status, content = wire.send("POST", "/api/v1/runs/claim", body)
        if status == 200:
            at = time.monotonic()
            for packet in orjson.loads(content)["packets"]:
                end.send((packet["run"]["id"], at))
        elif status != 204:
            raise AssertionError(content[:300])
