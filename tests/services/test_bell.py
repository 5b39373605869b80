"""The bell: who waits for a ready run hears of it at once, after the commit, in this process and in others."""

from __future__ import annotations

from contextlib import closing
from threading import Thread
from time import monotonic

import pytest
from django.conf import settings
from django.db import connection, transaction

from ledger.services import bell
from tests.engine.waking import commit, timer
from tests.patience import until
from tests.world import World


@pytest.fixture(autouse=True)
def hinting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "RESUMEAPP_HINTS", True)


def test_a_ring_between_a_look_and_the_wait_is_not_missed() -> None:
    heard = bell.heard()
    bell._bell.ring()
    began = monotonic()
    bell.wait(60, heard)
    assert monotonic() - began < 30


def test_without_a_ring_the_wait_ends_by_itself() -> None:
    began = monotonic()
    bell.wait(0.05, bell.heard())
    assert monotonic() - began >= 0.05


def test_a_run_that_becomes_ready_rings_once_it_is_committed(world: World) -> None:
    heard = bell.heard()
    with transaction.atomic():
        world.start_run()
        assert bell.heard() == heard, "nobody else could see the run yet"
    assert bell.heard() > heard


def test_a_run_that_goes_to_sleep_rings_for_nobody(world: World) -> None:
    packet = world.claimed_run()
    heard = bell.heard()
    commit(world, packet, timer(60))
    assert bell.heard() == heard


@pytest.mark.postgres_only
def test_another_process_rings_here_too(world: World) -> None:
    listening = connection.get_new_connection(connection.get_connection_params())
    with closing(listening):
        Thread(target=lambda: _until_closed(listening), daemon=True).start()
        until(lambda: _listens(listening.info.backend_pid), "the listener")
        heard = bell.heard()
        with connection.cursor() as cursor:
            cursor.execute(f"NOTIFY {bell.CHANNEL}")
        bell.wait(60, heard)
        assert bell.heard() > heard


@pytest.mark.postgres_only
def test_what_is_rung_here_is_heard_elsewhere(world: World) -> None:
    listening = connection.get_new_connection(connection.get_connection_params())
    with closing(listening):
        listening.autocommit = True
        listening.execute(f"LISTEN {bell.CHANNEL}")
        world.start_run()
        assert [note.channel for note in listening.notifies(timeout=30, stop_after=1)] == [bell.CHANNEL]


def _until_closed(listening: object) -> None:
    try:
        bell.hear(listening)
    except Exception:
        assert listening.closed  # type: ignore[attr-defined]


def _listens(pid: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT query LIKE 'LISTEN%%' AND state = 'idle' FROM pg_stat_activity WHERE pid = %s", [pid])
        row = cursor.fetchone()
    return bool(row and row[0])
