"""The worker: claims runs, keeps their leases, runs their transitions, commits, drains."""

from __future__ import annotations

import logging
import os
import signal
import socket
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import BoundedSemaphore, Event, current_thread, main_thread
from types import FrameType
from typing import Any
from uuid import uuid4

import httpx2 as httpx

from resumeapp_client.client import Client
from resumeapp_client.clocks import monotonic
from resumeapp_client.context import Context, Step
from resumeapp_client.errors import (
    EffectEnded,
    OwnershipLost,
    ResumeappError,
    RunGivenBack,
    RunLost,
    StateMismatch,
    Unreachable,
)
from resumeapp_client.holding import Holding, Position, Targets
from resumeapp_client.leases import Held, Leases
from resumeapp_client.records import Packet
from resumeapp_client.wire import jittered
from resumeapp_client.workflows import Workflow, verified

log = logging.getLogger("resumeapp_client")

DEFAULT_LEASE_SECONDS = 60
WAIT_SECONDS = 5
_LONGEST_PAUSE = 5.0
# Between claims that a server answers empty at once although it was asked to wait.
_SHORTEST_POLL = 0.05


class Worker:
    """A process's worker for some workflow versions.

    `limit` runs are held at a time, one in the calling thread or several in a small pool. `lease_seconds` asks for leases of
    that length (default: the server's); they are renewed while a transition runs. `wait_seconds` is how long one
    claim waits on the server, and so how long draining may take while idle. `targets` maps target names to base URLs for
    `ctx.http`; `target_transport` makes the transport of each call; `call_tries` bounds how often a call that
    certainly didn't happen is tried before the run is given back.
    """

    def __init__(
        self,
        client: Client,
        workflows: Sequence[Workflow[Any]],
        *,
        lease_seconds: int | None = None,
        limit: int = 1,
        name: str | None = None,
        wait_seconds: int = WAIT_SECONDS,
        targets: Mapping[str, str] | None = None,
        target_transport: Callable[[], httpx.BaseTransport] | None = None,
        call_tries: int = 5,
    ) -> None:
        if not workflows or limit < 1:
            raise ValueError("a worker needs a workflow, and a limit of at least 1")
        self.id = str(uuid4())
        self.name = name or f"{socket.gethostname()}:{os.getpid()}"
        self._client = client
        self._workflows = list(workflows)
        self._digests = {(flow.type, flow.version): flow.code_digest() for flow in workflows}
        self._lease_seconds = lease_seconds
        self._limit = limit
        self._wait_seconds = wait_seconds
        self._targets = Targets(dict(targets or {}), target_transport, call_tries)
        self._draining = Event()
        self._slots = BoundedSemaphore(limit)
        self._leases = Leases(client, self.id, lease_seconds or DEFAULT_LEASE_SECONDS)

    def stop(self) -> None:
        """Drain: finish current calls, give back what is held, and let `run` return. From any thread."""
        self._draining.set()

    def run(self) -> None:
        """Work until SIGTERM, SIGINT or `stop`. Raises ResumeappError when the key or a workflow's registration is refused."""
        self._leases.start()
        try:
            with self._signals():
                self._patiently(self._register)
                if self._limit == 1:
                    self._loop(self._work)
                else:
                    with ThreadPoolExecutor(self._limit, thread_name_prefix="resumeapp-run") as pool:
                        self._loop(lambda held, packet: pool.submit(self._work, held, packet))
        finally:
            self._leases.stop()

    def _loop(self, begin: Callable[[Held, Packet], Any]) -> None:
        while not self._draining.is_set():
            free = self._wait_for_slots()
            asked_at = monotonic()
            packets = self._patiently(lambda free=free: self._claim(free)) or []  # type: ignore[misc]
            for packet in packets:
                held = self._leases.take(packet.run.id, packet.fence, packet.lease_seconds)
                if held is None:
                    log.warning("run %s: this claim was delivered twice; the second is dropped", packet.run.id)
                    self._slots.release()
                elif self._draining.is_set():
                    self._release(held)
                    self._finish(held)
                else:
                    begin(held, packet)
            for _ in range(free - len(packets)):
                self._slots.release()
            if not packets and monotonic() - asked_at < _SHORTEST_POLL:
                self._draining.wait(_SHORTEST_POLL)

    def _wait_for_slots(self) -> int:
        """Take at least one free slot, and all others that are free."""
        self._slots.acquire()
        free = 1
        while self._slots.acquire(blocking=False):
            free += 1
        return free

    def _register(self) -> None:
        for flow in self._workflows:
            self._client.register(flow.type, flow.version, flow.spec())

    def _claim(self, free: int) -> list[Packet]:
        digest = self._digests[self._workflows[0].type, self._workflows[0].version]
        versions: dict[str, list[str]] = {}
        for flow in self._workflows:
            versions.setdefault(flow.type, []).append(flow.version)
        return self._client.claim(
            {"id": self.id, "name": self.name, "code_digest": digest},
            [{"workflow": type, "versions": listed} for type, listed in versions.items()],
            limit=free,
            wait_seconds=self._wait_seconds,
            lease_seconds=self._lease_seconds,
        )

    def _patiently(self, call: Callable[[], Any]) -> Any:
        """Ask until the server answers or the worker drains; what it refuses is raised. None when draining."""
        turn = 0
        while not self._draining.is_set():
            try:
                return call()
            except ResumeappError as error:
                if not isinstance(error, Unreachable) and error.status < 500 and error.status != 429:
                    raise
                log.warning("%s: trying again", error.code)
            self._draining.wait(jittered(0.2, turn, _LONGEST_PAUSE))
            turn += 1
        return None

    # -- one run

    def _work(self, held: Held, packet: Packet) -> None:
        try:
            self._guarded(held, packet)
        except Exception as error:  # the pool would swallow it, and the loop must go on
            log.error("run %s: %s", held.run_id, type(error).__name__)  # noqa: TRY400 - values stay out of logs
        finally:
            self._finish(held)

    def _finish(self, held: Held) -> None:
        self._leases.drop(held)
        self._slots.release()

    def _guarded(self, held: Held, packet: Packet) -> None:
        """Run what the packet says; whatever goes wrong leaves the run with the ledger, never in between."""
        try:
            self._transitions(held, packet)
        except RunGivenBack as given:
            log.info("run %s: given back (%s)", held.run_id, given)
            self._release(held)
        except (RunLost, OwnershipLost) as lost:
            log.warning("run %s: lost (%s); nothing more is written", held.run_id, lost)
        except ResumeappError as error:
            log.error("run %s: %s; left to its lease", held.run_id, error.code)  # noqa: TRY400 - facts stay out of logs
        except Exception as error:
            # Not released: a transition that fails each time must count as a crash does, until the ledger hands it to a person.
            log.error("run %s: %s at %s; left to its lease", held.run_id, type(error).__name__, _place(error))  # noqa: TRY400
        except BaseException:
            self._release(held)
            raise

    def _transitions(self, held: Held, packet: Packet) -> None:
        flow = self._workflow_for(packet)
        position = Position.of(packet)
        state = flow.load(packet.checkpoint.version or packet.version, verified(packet.checkpoint.state))
        while True:
            holding = Holding(self._client, held, position, self._targets, self._draining.is_set)
            step = self._step(Context(flow, holding, state), flow, position.transition)
            done = holding.commit(
                {
                    "state": flow.dump(step.state),
                    "code_version": self._digests[flow.type, flow.version],
                    "version": flow.version,
                    "next": dict(step.next),
                }
            )
            if done.status != "running" or done.fence is None or done.transition is None:
                return
            self._leases.renewed(held, done.fence)
            position = position.after(done, done.transition)
            state = step.state
            if self._draining.is_set():
                raise RunGivenBack("draining")

    def _step(self, context: Context[Any], flow: Workflow[Any], transition: str) -> Step:
        try:
            step = flow.require(transition).function(context, context.state)
        except EffectEnded as ended:
            return context.fail(f"effect {ended.facts['effect']}: {ended.facts['cause']}")
        if not isinstance(step, Step):
            raise TypeError(
                f"the transition {transition!r} returned no step; return ctx.wait(…), ctx.complete(…) or the like"
            )
        return step

    def _workflow_for(self, packet: Packet) -> Workflow[Any]:
        flows = [flow for flow in self._workflows if flow.type == packet.run.workflow]
        for flow in flows:
            if flow.version == packet.version:
                return flow
        for flow in flows:
            if packet.version in flow.takes_over_from:
                return flow
        raise StateMismatch(
            "state-mismatch",
            f"no workflow of this worker goes on with {packet.run.workflow} {packet.version}",
            "Offer only what this worker can run.",
        )

    def _release(self, held: Held) -> None:
        if held.lost:
            return
        try:
            self._client.release(held.run_id, held.fence)
        except ResumeappError as error:
            log.info("run %s: not released (%s); its wake or its lease sees to it", held.run_id, error.code)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Drain on the first SIGTERM or SIGINT; the second one acts as it did before."""
        if current_thread() is not main_thread():
            yield
            return
        before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

        def drain(number: int, _frame: FrameType | None) -> None:
            self.stop()
            signal.signal(number, before[signal.Signals(number)])

        for number in before:
            signal.signal(number, drain)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _place(error: BaseException) -> str:
    """File and line of the failure; an exception's text may hold a payload, so it isn't shown."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "?"
