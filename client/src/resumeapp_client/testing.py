"""A real server for tests of agents, and points at which a worker's process can be killed.

`serve()` runs the product's own programs from its source tree on a temporary SQLite: there is no second implementation of
the rules. The tree is given by path or in RESUMEAPP_SERVER_DIR, its interpreter in RESUMEAPP_SERVER_PYTHON (default: this).
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock
from typing import Any

import httpx2 as httpx

from resumeapp_client.client import Client

DIRECTORY, INTERPRETER = "RESUMEAPP_SERVER_DIR", "RESUMEAPP_SERVER_PYTHON"
ALLOW_ALL: tuple[Mapping[str, Any], ...] = ({"tool": "*", "verdict": "allow"},)
START_SECONDS = 60.0

_PROVISION = """
import json, sys
from ledger.domain.identity import Emit, Scope, Verb
from ledger.domain.targets import TargetSpec
from ledger.services import administration, authority, identity, targets
given = json.loads({given!r})
tenant = identity.open_tenant("test", "Test")
admin = administration.command_line(tenant.pk)
owner = identity.add_person(admin, "owner@example.org", "Owner", None)
for target in given["targets"]:
    targets.register(admin, TargetSpec(**target))
authority.publish_policy(admin, given["policy"])
agent = identity.add_agent(admin, "agent", owner)
scopes = [Scope.WORKFLOWS_REGISTER, Scope.RUNS_START, Scope.RUNS_WORK, Scope.RUNS_READ, Scope.EVENTS_EMIT]
leave = {{"workflows": ["*"], "emits": [Emit("*", "*")]}}
print("key:" + identity.issue_key(admin, "test", scopes, agent_id=agent, **leave).secret)
"""


@dataclass(frozen=True, slots=True)
class Server:
    """A running server: its address, an agent's key, its source tree and environment, and where its logs are."""

    url: str
    key: str = field(repr=False)
    directory: Path
    environment: Mapping[str, str] = field(repr=False)
    logs: Path

    def client(self, transport: httpx.BaseTransport | None = None) -> Client:
        """A client with the agent's key."""
        return Client(self.url, self.key, transport)

    def manage(self, *arguments: str) -> str:
        """Run a management command; answers its output. Raises RuntimeError with the end of what it said."""
        return _manage(self.directory, self.environment, *arguments)


@contextmanager
def serve(
    directory: Path | str | None = None,
    *,
    targets: Sequence[Mapping[str, Any]] = (),
    policy: Sequence[Mapping[str, Any]] = ALLOW_ALL,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Server]:
    """A server with one tenant, an agent's key, these targets (fields of the product's `TargetSpec`) and this policy.

    Raises RuntimeError when it doesn't come up, with the end of its log.
    """
    tree = Path(directory or os.environ.get(DIRECTORY) or _missing()).resolve()
    with tempfile.TemporaryDirectory(prefix="resumeapp-") as kept, ExitStack() as stack:
        logs = Path(kept)
        settings = {**os.environ, "RESUMEAPP_MODE": "test", "RESUMEAPP_VAR": kept, "DATABASE_URL": ""}
        settings |= {"RESUMEAPP_HINTS": "false", **(environment or {})}
        _manage(tree, settings, "migrate", "--verbosity", "0")
        given = json.dumps({"targets": list(targets), "policy": list(policy)})
        said = _manage(tree, settings, "shell", "-c", _PROVISION.format(given=given))
        key = next(line.removeprefix("key:") for line in said.splitlines() if line.startswith("key:"))
        port = _free_port()
        web = ["-m", "granian", "--interface", "wsgi", "--host", "127.0.0.1", "--port", str(port)]
        web += ["--workers", "1", "--blocking-threads", "4", "resumeapp.wsgi:application"]
        started = stack.enter_context(_process(tree, settings, "web", web, logs))
        stack.enter_context(_process(tree, settings, "timer", ["manage.py", "timer"], logs))
        url = f"http://127.0.0.1:{port}"
        _wait_until_ready(url, started, logs / "web.log")
        yield Server(url, key, tree, settings, logs)


@contextmanager
def _process(
    tree: Path, settings: Mapping[str, str], name: str, arguments: Sequence[str], logs: Path
) -> Iterator[subprocess.Popen[bytes]]:
    with (logs / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [_interpreter(), *arguments],
            cwd=tree,
            env={**settings, "RESUMEAPP_PROCESS": name},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _manage(tree: Path, settings: Mapping[str, str], *arguments: str) -> str:
    done = subprocess.run(
        [_interpreter(), "manage.py", *arguments],
        cwd=tree,
        env=dict(settings),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"manage.py {arguments[0]} failed: {done.stderr[-2000:]}")
    return done.stdout


def _wait_until_ready(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + START_SECONDS
    with httpx.Client(trust_env=False, timeout=2) as http:
        while time.monotonic() < until and process.poll() is None:
            try:
                http.get(f"{url}/healthz")
            except httpx.TransportError:
                time.sleep(0.05)
                continue
            return
    raise RuntimeError(f"the server didn't come up: {log.read_text(errors='replace')[-2000:]}")


def _interpreter() -> str:
    return os.environ.get(INTERPRETER) or sys.executable


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _missing() -> str:
    raise RuntimeError(f"name the server's source tree: serve(directory) or {DIRECTORY}")


class Boundaries:
    """Numbers every boundary of a worker's exchanges, before sending and after receiving; at one of them its process stops.

    `report` is told the number, then the thread blocks until the process is killed: write it to a pipe, and let the parent
    send SIGKILL. Point 0 never comes: a run with it only counts (`count`). Heartbeats aren't counted; they come by the clock.
    """

    def __init__(self, point: int = 0, report: Callable[[int], None] = lambda point: None) -> None:
        self.count = 0
        self._point = point
        self._report = report
        self._lock = Lock()

    def around(self, transport: httpx.BaseTransport | None = None) -> httpx.BaseTransport:
        """The transport to hand to Client, or to answer from a worker's `target_transport`."""
        return _Bounded(self, transport or httpx.HTTPTransport(trust_env=False))

    def passed(self) -> None:
        """One boundary was reached."""
        with self._lock:
            self.count += 1
            here = self.count == self._point
        if here:
            self._report(self._point)
            Event().wait()


class _Bounded(httpx.BaseTransport):
    def __init__(self, boundaries: Boundaries, inner: httpx.BaseTransport) -> None:
        self._boundaries = boundaries
        self._inner = inner

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/heartbeat"):
            return self._inner.handle_request(request)
        self._boundaries.passed()
        reply = self._inner.handle_request(request)
        reply.read()
        self._boundaries.passed()
        return reply

    def close(self) -> None:
        self._inner.close()
