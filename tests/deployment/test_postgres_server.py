"""The server that tests start: below the client ports, durable, and gone with its owner."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.conventions.sources import ROOT
from tests.postgres import PostgresServer

pytestmark = pytest.mark.postgres_only

_OWNER = """
import sys, time
from tests.postgres import PostgresServer
server = PostgresServer()
server.start()
print(server.process.pid, server.home, flush=True)
sys.stdin.read()
"""


def wait_gone(pid: int) -> None:
    """Wait until no process has this id; it isn't our child, so the kernel is asked by pidfd."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        ready, _, _ = select.select([descriptor], [], [], 20)
        assert ready, f"process {pid} outlived its owner"
    finally:
        os.close(descriptor)


def test_the_server_dies_with_an_owner_that_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _OWNER],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        pid, home = owner.stdout.readline().split()
        owner.kill()
        owner.wait()
        wait_gone(int(pid))
    with PostgresServer():
        assert not Path(home).exists(), "the next server erases what a killed owner left"


def test_the_wrapper_stops_its_server_on_sigterm() -> None:
    command = [sys.executable, "-c", "import os; print(os.environ['DATABASE_URL'], flush=True);"]
    command[-1] += "import sys; sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-m", "tests.postgres", "--", *command],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as wrapper:
        assert wrapper.stdout is not None
        url = wrapper.stdout.readline().strip()
        with psycopg.connect(url) as connection:
            assert connection.execute("SHOW fsync").fetchone() == ("on",)
        wrapper.send_signal(signal.SIGTERM)
        assert wrapper.wait(20) != 0
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url, connect_timeout=2)


def test_the_wrapper_hands_on_the_exit_code() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "tests.postgres", "--", sys.executable, "-c", "raise SystemExit(7)"],
        cwd=ROOT,
        check=False,
    )
    assert result.returncode == 7


def test_a_server_that_was_killed_comes_back_with_its_data_on_a_low_port() -> None:
    with PostgresServer() as server:
        assert server.port < 32_768
        with psycopg.connect(server.url) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 1 AS one")
        assert server.process is not None
        server.process.send_signal(signal.SIGQUIT)
        server.process.wait(20)
        server.launch()
        with psycopg.connect(server.url) as connection:
            assert connection.execute("SELECT one FROM kept").fetchone() == (1,)
