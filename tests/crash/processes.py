"""The harness's side of the forge: start processes, hear what they report, stop them by their recorded pid."""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


class Gone(Exception):
    """A process ended, or time was over, before it reported what was waited for."""


class Process:
    """A forked process. `lines` holds everything it has reported so far."""

    def __init__(self, pid: int, report: int, control: int, log: Path) -> None:
        self.pid = pid
        self.log = log
        self.lines: list[dict[str, Any]] = []
        self._report = report
        self._control = control
        self._rest = b""
        self._reading = threading.Lock()
        self._pidfd = _pidfd(pid)
        self._closed = False

    def hear(self, seconds: float) -> bool:
        """Take in what it reported, waiting up to so long. False once nothing more can come."""
        if self._closed:
            return False
        readable, _, _ = select.select([self._report], [], [], max(0.0, seconds))
        if not readable:
            return True
        with self._reading:
            # Another thread may have read meanwhile what made it readable; a read would then wait for the process's end.
            if self._closed or not select.select([self._report], [], [], 0)[0]:
                return not self._closed
            data = os.read(self._report, 65_536)
            self._rest += data
            *whole, self._rest = self._rest.split(b"\n")
            self.lines.extend(json.loads(line) for line in whole)
        return bool(data)

    def wait_for(self, kind: str, seconds: float, matches: Callable[[dict[str, Any]], bool] = bool) -> dict[str, Any]:
        """The first report of a kind that matches. Raises Gone."""
        deadline = time.monotonic() + seconds
        seen = 0
        while True:
            for line in self.lines[seen:]:
                if line["kind"] == kind and matches(line):
                    return line
            seen = len(self.lines)
            left = deadline - time.monotonic()
            if left <= 0 or not self.hear(left):
                raise Gone(f"no {kind} from pid {self.pid}, {self._standing()}; see {self.log}")

    def _standing(self) -> str:
        """Whether it still lives; one that does writes to its log where each of its threads stands."""
        if not self.alive():
            return "which has ended"
        self.send(signal.SIGUSR1)
        return "which lives"

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        """All reports of a kind that have come in by now."""
        with contextlib.suppress(OSError):
            while not self._closed and select.select([self._report], [], [], 0)[0] and self.hear(0):
                pass
        return [line for line in self.lines if line["kind"] == kind]

    def release(self) -> None:
        """Let it go on from where it blocks."""
        os.write(self._control, b".")

    def send(self, number: signal.Signals) -> None:
        """A signal to the recorded pid; nothing happens to one that has ended."""
        if self._pidfd is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, number)

    def alive(self) -> bool:
        return self._pidfd is not None and not select.select([self._pidfd], [], [], 0)[0]

    def end(self, number: signal.Signals = signal.SIGKILL, seconds: float = 10.0) -> None:
        """Send a signal and wait for the end, by SIGKILL when it takes too long."""
        self.send(number)
        if self._pidfd is not None and not select.select([self._pidfd], [], [], seconds)[0]:
            self.send(signal.SIGKILL)
            select.select([self._pidfd], [], [], 10)

    def close(self) -> None:
        """End it and close the pipes, once: a second time their numbers may be another process's."""
        if self._closed:
            return
        self.end()
        self.of_kind("")
        with self._reading:
            self._closed = True
            for descriptor in (self._report, self._control, self._pidfd):
                if descriptor is not None:
                    with contextlib.suppress(OSError):
                        os.close(descriptor)
            self._pidfd = None


def _pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return None


class Forge:
    """A preloaded parent, as a child of this process."""

    def __init__(self, modules: list[str], environment: Mapping[str, str], logs: Path) -> None:
        self._logs = logs
        self._lock = threading.Lock()
        self._count = 0
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, (logs / "forge.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.crash.forge", str(theirs.fileno()), *modules],
                cwd=ROOT,
                env=dict(environment),
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._socket = ours
        if not self._socket.recv(1000):
            raise RuntimeError(f"the forge did not start: {(logs / 'forge.log').read_text()[-2000:]}")

    def start(self, role: str, args: Mapping[str, Any]) -> Process:
        """Fork a process that runs `module:function` with `args` and its two pipes."""
        report_read, report_write = os.pipe()
        control_read, control_write = os.pipe()
        with self._lock:
            self._count += 1
            log = self._logs / f"{role.partition(':')[2]}-{self._count}.log"
            request = {"role": role, "args": dict(args), "log": str(log)}
            socket.send_fds(self._socket, [json.dumps(request).encode()], [report_write, control_read])
            answer = json.loads(self._socket.recv(1000))
        os.close(report_write)
        os.close(control_read)
        return Process(answer["pid"], report_read, control_write, log)

    def run(self, role: str, args: Mapping[str, Any], seconds: float = 120.0) -> dict[str, Any]:
        """Fork, wait for its `done`, answer that. Raises Gone."""
        process = self.start(role, args)
        try:
            return process.wait_for("done", seconds)
        except Gone:
            tail = process.log.read_text()[-3000:] if process.log.exists() else ""
            raise Gone(f"{role} failed:\n{tail}") from None
        finally:
            process.close()

    def stop(self) -> None:
        """Close the socket: the forge ends, and its children with it."""
        self._socket.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
