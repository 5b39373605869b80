"""A database that is there and never answers: whoever waits for it gives up after a stated time, and goes on once it speaks again."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection

from ledger.services import bell
from resumeapp.databases import SILENCE, database, process_kinds
from tests.api.server import environment, serving
from tests.conventions.sources import ROOT
from tests.engine.waking import commit, timer
from tests.patience import until
from tests.silent import SilentPeer
from tests.world import World

pytestmark = pytest.mark.postgres_only
STATEMENT = timedelta(seconds=1)
PATIENCE = (STATEMENT + SILENCE).total_seconds()
CONNECTING = 10
"""Seconds of the driver's own limit for a new connection."""
SLOW = 30
"""Seconds that a slow machine may need beside the time that is stated."""


@pytest.fixture
def peer() -> Iterator[SilentPeer]:
    with SilentPeer((str(connection.settings_dict["HOST"]), int(str(connection.settings_dict["PORT"])))) as made:
        yield made


def through(peer: SilentPeer) -> dict[str, str]:
    """The environment of a process that looks for the database at the peer."""
    return {
        "DATABASE_URL": f"postgres://{connection.settings_dict['USER']}@127.0.0.1:{peer.port}/{connection.settings_dict['NAME']}",
        "RESUMEAPP_STATEMENT_TIMEOUT": f"{STATEMENT.seconds}s",
    }


@contextmanager
def connected(peer: SilentPeer, patience: float, **options: Any) -> Iterator[Any]:
    """A connection of Django's by way of the peer."""
    made: Any = connection.copy()
    made.settings_dict = copy.deepcopy(made.settings_dict)
    made.settings_dict |= {"PORT": peer.port}
    made.settings_dict["OPTIONS"] |= {"patience": patience, **options}
    try:
        yield made
    finally:
        made.close()


def ask(made: Any) -> int:
    with made.cursor() as cursor:
        cursor.execute("SELECT 1")
        return int(cursor.fetchone()[0])


def test_every_kind_of_process_gives_a_silent_server_up_after_the_statements_own_time() -> None:
    for kind in process_kinds():
        made = database("postgres://u@127.0.0.1:5/x", Path("x"), kind, timedelta(seconds=30))
        assert made["ENGINE"] == "resumeapp.postgres" and made["OPTIONS"]["patience"] == 35, kind
        assert made["OPTIONS"]["connect_timeout"] == CONNECTING
    unbounded = database("postgres://u@127.0.0.1:5/x", Path("x"), "web", timedelta())
    assert "patience" not in unbounded["OPTIONS"], "who lets a statement last for ever waits for it"


@pytest.mark.django_db
def test_a_statement_that_nobody_answers_fails_and_its_connection_is_closed(peer: SilentPeer) -> None:
    with connected(peer, 0.5) as made:
        assert ask(made) == 1
        peer.hush()
        began = time.monotonic()
        with pytest.raises(OperationalError, match=r"the database was silent for 0\.5 s"):
            ask(made)
        assert 0.5 <= time.monotonic() - began < SLOW
        assert made.connection.closed and not made.is_usable()
        peer.speak()
        made.close_if_unusable_or_obsolete()
        assert ask(made) == 1


@pytest.mark.django_db
def test_a_commit_that_nobody_answers_is_no_commit_as_far_as_can_be_told(peer: SilentPeer) -> None:
    with connected(peer, 0.5) as made:
        made.ensure_connection()
        made.set_autocommit(False)
        assert ask(made) == 1
        peer.hush()
        with pytest.raises(OperationalError, match="silent"):
            made.commit()
        assert made.connection.closed


@pytest.mark.django_db
def test_a_server_that_takes_its_time_is_waited_for(peer: SilentPeer) -> None:
    with connected(peer, 5) as made, made.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_sleep(1.5)")
        assert cursor.fetchone() == (1,)


@pytest.mark.django_db
def test_connecting_to_a_peer_that_takes_and_never_answers_fails(peer: SilentPeer) -> None:
    peer.hush()
    with connected(peer, 0.5, connect_timeout=2) as made, pytest.raises(OperationalError, match="timeout"):
        made.ensure_connection()


def test_a_listener_that_hears_nothing_finds_out_whether_anybody_is_there(world: World, peer: SilentPeer) -> None:
    ended: list[Exception] = []

    def hear(listening: Any) -> None:
        try:
            bell.hear(listening, quiet=0.2)
        except Exception as error:
            ended.append(error)

    with connected(peer, 0.5) as made, closing(made.get_new_connection(made.get_connection_params())) as listening:
        thread = Thread(target=hear, args=(listening,), daemon=True)
        thread.start()
        before = peer.asked
        until(lambda: peer.asked > before + 2, "the listener to ask again")
        assert not ended
        heard = bell.heard()
        with connection.cursor() as cursor:
            cursor.execute(f"NOTIFY {bell.CHANNEL}")
        until(lambda: bell.heard() > heard, "the bell to be heard between two questions")
        peer.hush()
        thread.join(SLOW)
        assert [type(error) for error in ended] == [psycopg.OperationalError]


@pytest.mark.slow
def test_the_timer_goes_on_after_the_stated_time_though_what_it_asked_is_never_answered(
    world: World, peer: SilentPeer, tmp_path: Path
) -> None:
    with (tmp_path / "timer.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "timer"],
            cwd=ROOT,
            env={**environment(tmp_path), **through(peer), "RESUMEAPP_PROCESS": "timer"},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        until(lambda: peer.asked > 30, "its first sweeps", 60)
        began = time.monotonic()
        peer.hush()
        until(lambda: peer.swallowed, "a statement that nobody answers")
        peer.speak()
        run_id = commit(world, world.claimed_run(), timer(0))
        until(lambda: world.head(run_id).status == "ready", "the timer to act on what is due", PATIENCE + SLOW)
        assert process.poll() is None, "it is the same process: nobody had to start it again"
        assert time.monotonic() - began > PATIENCE, "it was the silence that held it, and nothing else ended it"
    finally:
        process.terminate()
        process.wait(20)


@pytest.mark.slow
def test_a_web_process_answers_503_in_the_stated_time_and_goes_on(
    world: World, peer: SilentPeer, tmp_path: Path
) -> None:
    def runs(port: int) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {world.secret}"}
        with closing(HTTPConnection("127.0.0.1", port, timeout=PATIENCE + CONNECTING + SLOW)) as asked:
            asked.request("GET", "/api/v1/runs", headers=headers)
            answer = asked.getresponse()
            return answer.status, json.loads(answer.read())

    with serving(tmp_path, **through(peer)) as port:
        assert runs(port)[0] == 200
        peer.hush()
        status, problem = runs(port)
        assert status == 503 and peer.swallowed, problem
        peer.speak()
        until(lambda: runs(port)[0] == 200, "an answer from the database", PATIENCE + SLOW)
