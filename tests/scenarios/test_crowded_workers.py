"""Workers that come and go, are slow, or keep another time, over sockets: each step is done once, by whoever holds the run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from resumeapp_client import Context, Step, Workflow, timer

from ledger.domain import canonical
from ledger.domain.commits import Next, NextKind
from ledger.domain.effects import ProposalSpec, Settled, SettleSpec
from ledger.domain.starts import StartSpec
from ledger.engine import wakes
from ledger.models import JournalEntry, Lease
from ledger.services import effects, leases, runs, verify, waits
from ledger.services.packets import Packet
from tests.clock import Clock
from tests.conventions.sources import ROOT
from tests.documents import STATE
from tests.live import served
from tests.patience import until
from tests.sandbox.process import Caller, Sandbox
from tests.scenarios.agents import Wire, keep_notes, rows, worker
from tests.scenarios.tasks import Task, note
from tests.world import World

STEPS = 40
SPIN = "kept = bytearray(64 * 1024 * 1024)\nwhile True: kept[::4096] = kept[::4096]"


def start(world: World, flow: Workflow[Any], name: str) -> UUID:
    """A run of the workflow, once a worker has registered it."""
    spec = StartSpec(flow.type, flow.version, name, {"name": name, "steps": 0}, {}, "", name)
    return runs.start(world.caller, spec).run_id


def verbs(world: World, run_id: UUID, verb: str) -> int:
    return JournalEntry.objects.of(world.tenant).filter(stream_id=run_id, verb=verb).count()


def status(world: World, run_id: UUID) -> str:
    return str(world.head(run_id).status)


def registered(world: World, flow: Workflow[Any], url: str, service: Sandbox) -> None:
    """A worker has been here, and left."""
    with worker(url, world, flow, service) as wire:
        until(lambda: wire.of("/claim"), "its first claim")


@contextmanager
def pressure() -> Iterator[None]:
    """Every core is busy and memory is touched, by processes of their own."""
    busy = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(os.cpu_count() or 2)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def sleeping() -> Workflow[Task]:
    """Propose a note, sleep for six hours, then send it."""
    flow = Workflow("sleeping", "1", "rest", Task)

    @flow.transition
    def rest(ctx: Context[Task], s: Task) -> Step:
        ctx.propose("note", target="notes", tool="notes.add", request=note(s))
        return ctx.wait(timer("6h"), deadline="1d", then="send")

    @flow.transition(targets=["notes"], tools=["notes.add"])
    def send(ctx: Context[Task], s: Task) -> Step:
        ctx.perform("note", call=lambda http, permit: http.post("/notes").json())
        return ctx.complete()

    return flow


def test_five_workers_restarted_until_a_wait_is_due_make_one_wake_one_claim_and_one_call(
    world: World, service: Sandbox, clock: Clock
) -> None:
    keep_notes(world, service)
    flow = sleeping()
    with served() as url:
        registered(world, flow, url, service)
        run_id = start(world, flow, f"sleep-{world.tenant.slug}")
        with worker(url, world, flow, service):
            until(lambda: status(world, run_id) == "waiting", "its wait")
        claims = verbs(world, run_id, "run.claim")
        for _ in range(6):
            _come_and_go(url, world, flow, service)
            clock.shift(3_500)
            assert not waits.expire_due(run_id) and status(world, run_id) == "waiting"
        clock.shift(700)
        assert waits.expire_due(run_id) and not waits.expire_due(run_id)
        assert [str(wakes.run(run_id)), wakes.run(run_id)] == ["resume", None]
        _come_and_go(url, world, flow, service)
        with worker(url, world, flow, service):
            until(lambda: status(world, run_id) == "completed", "its end")
    assert verbs(world, run_id, "run.claim") == claims + 1 and verbs(world, run_id, "wake.decide") == 1
    assert len(rows(service, f"sleep-{world.tenant.slug}")) == 1 and verify.run(run_id).intact


def _come_and_go(url: str, world: World, flow: Workflow[Any], service: Sandbox) -> None:
    """Five workers at once, each of which asks for runs and is stopped."""
    with ExitStack() as stack:
        wires = [stack.enter_context(worker(url, world, flow, service)) for _ in range(5)]
        for wire in wires:
            until(lambda wire=wire: wire.of("/claim"), "its claim")  # type: ignore[misc]


def climb(world: World, service: Sandbox, ids: list[UUID]) -> None:
    """Take whichever of the runs is ready and go one step: its row is called for, settled, and the next one proposed."""
    caller = service.caller()
    try:
        while not all(status(world, run_id) == "completed" for run_id in ids):
            for packet in leases.claim(world.caller, world.offer("1")):
                _step(world, caller, packet)
            for run_id in ids:
                wakes.run(run_id)
    finally:
        connection.close()


def _step(world: World, caller: Caller, packet: Packet) -> None:
    state = json.loads(packet.state.text)
    number = state["amount_minor"]
    if number >= 0:
        effect_id = world.effect(packet.run.id, f"row{number}").pk
        given = effects.permit(world.caller, effect_id, packet.fence)
        made = caller.call("POST", "/notes", given.request, Idempotency_Key=given.key)
        assert made.status == 201, made
        outcome = SettleSpec(given.attempt, Settled.COMMITTED, reference=made.body["id"])
        effects.settle(world.caller, effect_id, outcome, packet.fence)
    state["amount_minor"] = number + 1
    if number + 1 == STEPS:
        world.commit(packet, Next(NextKind.COMPLETE), state=state)
        return
    row = {"to": "ann@example.org", "subject": f"{state['order']} {number + 1}", "text": "as agreed"}
    proposal = ProposalSpec(f"row{number + 1}", "notes.add", "notes", "", canonical.canonical(row))
    world.commit(packet, Next(NextKind.GIVE_BACK, "issue"), propose=(proposal,), state=state)


@pytest.mark.slow
def test_forty_steps_of_parallel_runs_on_a_loaded_machine_add_exactly_their_rows(
    world: World, service: Sandbox
) -> None:
    keep_notes(world, service)
    names = [f"climb{number}-{world.tenant.slug}" for number in range(2)]
    ids = [world.start_run({**STATE, "order": name, "amount_minor": -1}) for name in names]
    with pressure(), ThreadPoolExecutor(len(ids)) as pool:
        for done in [pool.submit(climb, world, service, ids) for _ in ids]:
            done.result(300)
    for name, run_id in zip(names, ids, strict=True):
        assert rows(service, name) == [f"{name} {number}" for number in range(STEPS)]
        assert len(world.checkpoints(run_id)) == STEPS + 2 and verify.run(run_id).intact


def paused(reached: threading.Event, goes_on: threading.Event) -> Workflow[Task]:
    """Two notes; the first worker stands still between them."""
    flow = Workflow("paused", "1", "send", Task)

    @flow.transition(targets=["notes"], tools=["notes.add"])
    def send(ctx: Context[Task], s: Task) -> Step:
        for number in (0, 1):
            name = f"note{number}"
            ctx.propose(name, target="notes", tool="notes.add", request=note(s.model_copy(update={"steps": number})))
            ctx.perform(name, call=lambda http, permit: http.post("/notes").json())
            if number == 0 and not reached.is_set():
                reached.set()
                assert goes_on.wait(60)
        return ctx.complete()

    return flow


@pytest.mark.slow
def test_a_worker_whose_heartbeats_are_late_on_a_saturated_machine_is_followed_once_and_repeats_nothing(
    world: World, service: Sandbox
) -> None:
    """Its heartbeats go out only after the run was taken over, while it works all the time; then it goes on with what it had begun."""
    keep_notes(world, service)
    reached, goes_on, taken = threading.Event(), threading.Event(), threading.Event()
    flow, name = paused(reached, goes_on), f"late-{world.tenant.slug}"
    late = Wire(lambda path: None if not path.endswith("/heartbeat") else taken.wait(60) and None)
    with served() as url, pressure():
        registered(world, flow, url, service)
        run_id = start(world, flow, name)
        wakes.run(run_id)
        with worker(url, world, flow, service, late, lease_seconds=2):
            until(reached.is_set, "its first call", 60)
            until(lambda: leases.lapse(run_id), "its lease to run out", 60)
            assert str(wakes.run(run_id)) == "resume"
            with worker(url, world, flow, service, lease_seconds=600):
                until(lambda: status(world, run_id) == "completed", "the other to finish", 60)
                taken.set()
                goes_on.set()
                until(lambda: 409 in [code for _, code in late.seen], "the first to be refused", 60)
    assert rows(service, name) == [f"{name} 0", f"{name} 1"]
    assert (verbs(world, run_id, "lease.lapse"), verbs(world, run_id, "run.claim")) == (1, 2)
    assert not [path for path, code in late.seen if path.endswith("/checkpoints") and code < 300]
    assert verify.run(run_id).intact and status(world, run_id) == "completed"


def run_agent(url: str, world: World, service: Sandbox, *arguments: str) -> subprocess.Popen[bytes]:
    """An agent in a process of its own (`lone_agent.py`)."""
    env = {**os.environ, "SERVER": url, "KEY": world.secret, "NOTES": f"http://{service.host}"}
    env["PYTHONPATH"] = f"{ROOT}{os.pathsep}{ROOT / 'client' / 'src'}"
    return subprocess.Popen([sys.executable, str(Path(__file__).with_name("lone_agent.py")), *arguments], env=env)


@pytest.mark.slow
def test_a_run_that_kills_each_worker_is_counted_before_it_runs_blocked_at_the_third_and_others_flow(
    world: World, service: Sandbox, clock: Clock
) -> None:
    keep_notes(world, service)
    with served() as url:
        first = run_agent(url, world, service, "register")
        assert first.wait(60) == 0
        deadly, healthy = _start_lone(world, "deadly"), []
        for number in range(1, 4):
            assert run_agent(url, world, service, "work", "9").wait(60) == -9, "killed by what it ran"
            assert world.head(deadly).claims_since_commit == number, "counted before it ran"
            clock.shift(61)
            assert leases.lapse(deadly)
            wakes.run(deadly)
            assert status(world, deadly) == ("blocked" if number == 3 else "ready")
            healthy.append(_start_lone(world, f"healthy{number}"))
        left = [run_id for run_id in healthy if status(world, run_id) != "completed"]
        assert left == healthy[2:], "the others went on between the kills"
        assert run_agent(url, world, service, "work", "1").wait(60) == 0
    assert [status(world, run_id) for run_id in healthy] == ["completed"] * 3
    assert status(world, deadly) == "blocked" and verify.run(deadly).intact


@pytest.mark.parametrize("ahead", [30, -3_600])
def test_a_worker_whose_own_clock_is_wrong_keeps_its_lease_by_the_server_s(
    world: World, service: Sandbox, ahead: int
) -> None:
    keep_notes(world, service)
    with served() as url:
        assert run_agent(url, world, service, "register").wait(60) == 0
        run_id = _start_lone(world, f"skewed{ahead}")
        assert run_agent(url, world, service, "work", "1", str(ahead)).wait(60) == 0
    lease = Lease.objects.of(world.tenant).get(pk=run_id)
    assert lease.beaten_at > lease.claimed_at, "its heartbeats counted"
    assert (lease.expires_at - lease.beaten_at).total_seconds() == pytest.approx(lease.seconds, abs=1) == 60
    assert (verbs(world, run_id, "run.claim"), verbs(world, run_id, "lease.lapse")) == (1, 0)
    assert status(world, run_id) == "completed" and len(rows(service, f"skewed{ahead}-{world.tenant.slug}")) == 1


def _start_lone(world: World, name: str) -> UUID:
    state = {"name": f"{name}-{world.tenant.slug}", "steps": 0}
    run_id = runs.start(world.caller, StartSpec("lone", "1", name, state, {}, "", name)).run_id
    wakes.run(run_id)
    assert status(world, run_id) == "ready"
    return run_id
