"""A tree of processes in the foreground: start named children, watch them, restart them, stop all of them in order.

Each child leads a session of its own, so that a terminal's Ctrl-C reaches only the tree, and gets SIGTERM when the tree dies. A child is asked to
stop by a signal to itself alone, which lets it stop what it started; what then remains of its session is killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

PR_SET_PDEATHSIG: Final = 1
LONGEST_BACK_OFF: Final = 10.0
SETTLED_AFTER: Final = 30.0
_libc: Final = ctypes.CDLL(None, use_errno=True)


class Restart(StrEnum):
    """What happens when a child ends by itself."""

    ALWAYS = "always"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Program:
    """A child to run. `grace` is in seconds; `healthy` is asked at each look and restarts the child when it answers False."""

    name: str
    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    restart: Restart = Restart.ALWAYS
    stop_signal: signal.Signals = signal.SIGTERM
    grace: float = 10.0
    healthy: Callable[[int], bool] | None = None


@dataclass(slots=True)
class Child:
    """A program as it runs: `starts` counts its processes, `ended` is the return code of one that won't run again."""

    program: Program
    log: Path
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0
    started_at: float = 0.0
    not_before: float = 0.0
    failures: int = 0
    ended: int | None = None

    @property
    def pid(self) -> int:
        return self.process.pid if self.process else 0

    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        """Start it in a session of its own, its output appended to its log."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                list(self.program.argv),
                env={**os.environ, **self.program.env},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_die_with_parent(os.getpid()),
            )
        self.starts += 1
        self.started_at = time.monotonic()

    def ask_to_stop(self) -> None:
        if self.process is not None and self.alive():
            self.process.send_signal(self.program.stop_signal)

    def finish(self, deadline: float) -> None:
        """Wait for it until then (by the monotonic clock), and kill what is left of its session."""
        if self.process is None:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(max(0.0, deadline - time.monotonic()))
        kill_group(self.process.pid)
        self.process.wait()


def kill_group(group: int) -> None:
    """SIGKILL to every process of a group; nothing when it is gone."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


def _die_with_parent(parent: int) -> Callable[[], None]:
    def prepare() -> None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(1)

    return prepare


def _leave(number: int, frame: object) -> None:
    raise SystemExit(128 + number)


class Tree:
    """Children in the order of their start; they are stopped in the opposite one."""

    def __init__(self, logs: Path, say: Callable[[str], None] = print) -> None:
        logs.mkdir(parents=True, exist_ok=True)
        self.logs = logs
        self.say = say
        self.children: dict[str, Child] = {}
        self.stopping = False

    def start(self, program: Program) -> Child:
        """Start a child now. Raises ValueError for a name that is taken."""
        if program.name in self.children:
            raise ValueError(f"there is already a child named {program.name}")
        child = Child(program, self.logs / f"{program.name}.log")
        self.children[program.name] = child
        child.start()
        return child

    @contextlib.contextmanager
    def starting(self) -> Iterator[None]:
        """While children are started: whatever ends the block early, a SIGTERM too, stops those that are there."""
        handler = signal.signal(signal.SIGTERM, _leave)
        try:
            yield
        except BaseException:
            self.stop()
            raise
        finally:
            signal.signal(signal.SIGTERM, handler)

    def look(self) -> None:
        """Once over all children: restart what ended or is no longer healthy, as each one's policy says."""
        for child in self.children.values():
            if child.ended is not None:
                continue
            if child.alive():
                self._check(child)
            else:
                self._ended(child)

    def _check(self, child: Child) -> None:
        if time.monotonic() - child.started_at > SETTLED_AFTER:
            child.failures = 0
        healthy = child.program.healthy
        if healthy is not None and not healthy(child.pid):
            self.say(f"{child.program.name} (process {child.pid}) does no work any more: restarting it")
            self.stop_child(child)
            child.start()

    def _ended(self, child: Child) -> None:
        if child.program.restart is Restart.NEVER and child.process is not None:
            child.ended = child.process.returncode
            return
        now = time.monotonic()
        if not child.not_before:
            code = child.process.returncode if child.process else None
            pause = min(LONGEST_BACK_OFF, 0.5 * 2**child.failures)
            self.say(
                f"{child.program.name} ended with {code}: starting it again in {pause:g} s; its log is {child.log}"
            )
            kill_group(child.pid)
            child.failures += 1
            child.not_before = now + pause
        elif now >= child.not_before:
            child.not_before = 0.0
            child.start()
            self.say(f"{child.program.name} runs again, as process {child.pid}")

    def stop_child(self, child: Child) -> None:
        """Ask one child to stop, wait for its grace, and kill what is left of it."""
        child.ask_to_stop()
        child.finish(time.monotonic() + child.program.grace)

    def run(self, every: float = 0.5, until: Callable[[], bool] = lambda: False) -> None:
        """Watch in the foreground until SIGINT, SIGTERM or `until`, then stop everything."""
        handlers = {number: signal.signal(number, self._stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            while not self.stopping and not until():
                self.look()
                time.sleep(every)
        finally:
            self.stop()
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def _stop(self, number: int, frame: object) -> None:
        self.stopping = True

    def stop(self) -> None:
        """Stop every child, last started first; a second call finds nothing to do."""
        if self.children:
            self.say("Stopping …")
        for child in reversed(self.children.values()):
            self.stop_child(child)
        self.children.clear()
