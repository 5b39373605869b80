"""The queue as real processes: work goes on after a worker is killed where it hurts most, and stopping leaves nothing."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests import templates
from tests.database import chosen
from tests.deployment.test_processes import of_session

ROOT = Path(__file__).resolve().parents[2]
AGAIN_WITHIN = 30.0


class Deployment:
    """A database of its own with `manage.py up` on it."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.url = ""
        if chosen() == "postgres":
            name = f"up_{secrets.token_hex(4)}"
            server = os.environ["RESUMEAPP_TEST_POSTGRES_URL"]
            with psycopg.connect(server, autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {name} TEMPLATE {templates.DATABASE}")
            self.url = server.rpartition("/")[0] + f"/{name}"
        else:
            shutil.copyfile(templates.sqlite(), data / "resumeapp.sqlite3")
        self.env = {
            **os.environ,
            "RESUMEAPP_MODE": "test",
            "RESUMEAPP_VAR": str(data),
            "RESUMEAPP_HINTS": "true",
            "DATABASE_URL": self.url,
            "DJANGO_SETTINGS_MODULE": "resumeapp.settings",
        }
        self.out = (data / "up.out").open("wb")
        self.up = subprocess.Popen(
            [sys.executable, "manage.py", "up", "--without-web"],
            cwd=ROOT,
            env=self.env,
            stdout=self.out,
            stderr=self.out,
        )

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        if self.url:
            with psycopg.connect(self.url) as connection:
                return connection.execute(query).fetchall()
        with sqlite3.connect(self.data / "resumeapp.sqlite3", timeout=20) as file:
            return list(file.execute(query).fetchall())

    def hearts(self) -> dict[int, tuple[int, int]]:
        """Session of a cluster → (beats, the worker that beat last)."""
        return {
            int(name.rpartition(":")[2]): (beats, pid)
            for name, beats, pid in self.ask("SELECT name, beats, pid FROM ledger_heartbeat")
        }

    def until(self, true: Callable[[], object], seconds: float) -> float:
        """Wait for a condition; how long it took, in seconds."""
        began = time.monotonic()
        while not true():
            assert time.monotonic() - began < seconds, (self.data / "up.out").read_text()
            assert self.up.poll() is None
            time.sleep(0.1)
        return time.monotonic() - began

    def stop(self) -> int:
        self.up.send_signal(signal.SIGTERM)
        code = self.up.wait(40)
        self.out.close()
        return code


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    made = Deployment(tmp_path)
    yield made
    if made.up.poll() is None:
        made.stop()


@pytest.mark.slow
def test_tasks_run_again_within_half_a_minute_of_killing_an_idle_worker_and_nothing_is_left(
    deployment: Deployment,
) -> None:
    deployment.until(lambda: any(beats > 1 for beats, _ in deployment.hearts().values()), 40)
    session, (before, worker) = next(iter(deployment.hearts().items()))
    assert os.getsid(worker) == session and worker != session
    os.kill(worker, signal.SIGKILL)

    def working_again() -> bool:
        hearts = deployment.hearts()
        others = any(beats > 1 for other, (beats, _) in hearts.items() if other != session)
        beats, pid = hearts.get(session, (0, 0))
        return others or (beats > before + 3 and pid != worker)

    took = deployment.until(working_again, AGAIN_WITHIN)
    assert took < AGAIN_WITHIN
    sessions = list(deployment.hearts())
    assert deployment.stop() == 0
    assert not [pid for each in sessions for pid in of_session(each)]


@pytest.mark.slow
def test_a_frozen_cluster_is_replaced_and_its_processes_are_gone(deployment: Deployment) -> None:
    deployment.until(lambda: any(beats > 1 for beats, _ in deployment.hearts().values()), 40)
    session = next(iter(deployment.hearts()))
    for pid in of_session(session):
        os.kill(pid, signal.SIGSTOP)
    deployment.until(lambda: any(each != session for each in deployment.hearts()), AGAIN_WITHIN)
    assert not of_session(session)


HELD = """
import django
django.setup()
from tests.world import World
world = World()
world.start_run()
world.claim(seconds=1)
"""
WITHOUT_TIMER = 45.0


@pytest.mark.slow
def test_with_the_timer_frozen_the_queue_takes_a_silent_worker_s_run_back(deployment: Deployment) -> None:
    deployment.until(lambda: any(beats > 1 for beats, _ in deployment.hearts().values()), 40)
    for timer in timers(deployment.up.pid):
        os.kill(timer, signal.SIGSTOP)
    env = {**deployment.env, "PYTHONPATH": str(ROOT), "RESUMEAPP_HINTS": "false"}
    subprocess.run([sys.executable, "-c", HELD], cwd=ROOT, env=env, check=True)
    held = "SELECT count(*) FROM ledger_run_head WHERE status = 'running'"
    assert deployment.ask(held) == [(1,)]
    took = deployment.until(lambda: deployment.ask(held) == [(0,)], 1 + WITHOUT_TIMER)
    assert took <= 1 + WITHOUT_TIMER


def timers(parent: int) -> list[int]:
    """The timer processes that this one started."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    found = [int(pid) for pid in children if b"timer" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")]
    assert found
    return found
