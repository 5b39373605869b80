"""The connection on which a web process hears of ready runs is killed, then falls silent: claims find their runs by the clock, and it comes back."""

from __future__ import annotations

import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest
from django.db import connection

from ledger.models import Worker
from ledger.services import bell
from tests.api.conftest import claim_body
from tests.api.server import serving
from tests.patience import until
from tests.world import World

pytestmark = [pytest.mark.postgres_only, pytest.mark.slow]
WAITS = 30


def listeners() -> list[int]:
    """The backends that listen for the bell on this database."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query = %s",
            [f"LISTEN {bell.CHANNEL}"],
        )
        return [row[0] for row in cursor.fetchall()]


def claim(port: int, world: World) -> tuple[float, str]:
    """Wait for a run as a worker does: when it came, and which."""
    headers = {"Authorization": f"Bearer {world.secret}", "Content-Type": "application/json"}
    with closing(HTTPConnection("127.0.0.1", port, timeout=WAITS + 30)) as asked:
        asked.request("POST", "/api/v1/runs/claim", json.dumps(claim_body("1", wait_seconds=WAITS)), headers)
        answer = asked.getresponse()
        assert answer.status == 200, "it was found only when the claim's time was over, or not at all"
        return time.monotonic(), str(json.loads(answer.read())["packets"][0]["run"]["id"])


def found_by_the_clock(port: int, world: World) -> None:
    known = Worker.objects.of(world.tenant).count()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(claim, port, world)
        until(lambda: Worker.objects.of(world.tenant).count() > known, "the claim to have looked")
        run_id = world.start_run()
        began = time.monotonic()
        at, given = waiting.result(WAITS + 60)
    assert given == str(run_id) and at - began < WAITS / 2


def test_a_claim_finds_its_run_while_nobody_listens_and_the_listener_comes_back(world: World, tmp_path: Path) -> None:
    with serving(tmp_path) as port:
        (first,) = until(listeners, "the listener")
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s)", [first])
        found_by_the_clock(port, world)
        log = tmp_path / "server.log"
        until(lambda: "bell_not_heard" in log.read_text(), "the log to say so")
        (second,) = until(lambda: [pid for pid in listeners() if pid != first], "the next listener", 60)
        os.kill(second, signal.SIGSTOP)
        try:
            found_by_the_clock(port, world)
        finally:
            os.kill(second, signal.SIGCONT)
        assert listeners() == [second]
