"""The product's own processes under measurement, and what a process tree takes of the machine, from /proc."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path

from resumeapp import supervisor
from resumeapp.processes import Tree
from tests.postgres import free_port

TICK = os.sysconf("SC_CLK_TCK")
ROOT = Path(__file__).resolve().parent.parent


@contextmanager
def web(logs: Path) -> Iterator[tuple[int, int]]:
    """The web server alone, as `manage.py up` starts it; its port and process id."""
    port = free_port()
    tree = Tree(logs, say=lambda line: None)
    child = tree.start(supervisor.web("127.0.0.1", port))
    try:
        _wait(port, logs / "web.log")
        yield port, child.pid
    finally:
        tree.stop_child(child)


@contextmanager
def everything(logs: Path) -> Iterator[tuple[int, int]]:
    """`manage.py up`: web, queue and timer; the web server's port and the process id of the tree's root."""
    port = free_port()
    logs.mkdir(parents=True, exist_ok=True)
    with (logs / "up.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, str(ROOT / "manage.py"), "up", "--port", str(port)], stdout=log, stderr=log, cwd=ROOT
        )
    try:
        _wait(port, logs / "up.log")
        yield port, process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def _wait(port: int, log: Path) -> None:
    until = time.monotonic() + 120
    while time.monotonic() < until:
        with closing(HTTPConnection("127.0.0.1", port, timeout=5)) as asked:
            try:
                asked.request("GET", "/readyz")
                if asked.getresponse().status == 200:
                    return
            except OSError:
                pass
        time.sleep(0.05)
    raise RuntimeError(f"the server doesn't answer: {log.read_text()[-1_000:]}")


def tree_of(pid: int) -> list[int]:
    """A process and all below it."""
    found = [pid]
    for each in found:  # grows while it is walked
        for children in Path(f"/proc/{each}/task").glob("*/children"):
            try:
                found += map(int, children.read_text().split())
            except OSError:
                continue
    return found


def cpu_of(pid: int) -> float:
    """CPU seconds that a process tree has used."""
    return sum(_cpu(each) for each in tree_of(pid))


def _cpu(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICK


def memory_of(pid: int) -> float:
    """MB that a process tree holds, with shared pages shared out among those who share them."""
    total = 0
    for each in tree_of(pid):
        try:
            lines = Path(f"/proc/{each}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024
