"""Kill points, and what starting a server asks for."""

from __future__ import annotations

import threading

import pytest
from ledger_script import COMMIT, RUN
from loopback import Loopback
from resumeapp_client import Client
from resumeapp_client.testing import DIRECTORY, Boundaries, serve

NEXT = {"fence": "0.1", "expect_seq": 3, "state": {}, "next": {"kind": "complete"}}


def test_a_server_needs_its_source_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DIRECTORY, raising=False)
    with pytest.raises(RuntimeError, match=DIRECTORY), serve():
        pass


@pytest.mark.parametrize(("point", "sent"), [(3, 1), (4, 2)])
def test_a_worker_stops_at_its_point_before_sending_or_after_receiving(ledger: Loopback, point: int, sent: int) -> None:
    reached: list[int] = []
    told = threading.Event()

    def report(number: int) -> None:
        reached.append(number)
        told.set()

    client = Client(ledger.url, "k", Boundaries(point, report).around())
    threading.Thread(target=lambda: [client.commit(RUN, NEXT) for _ in range(3)], daemon=True).start()
    assert told.wait(10)
    assert reached == [point]
    assert len(ledger.asked("POST", COMMIT)) == sent


def test_heartbeats_are_no_points(ledger: Loopback) -> None:
    boundaries = Boundaries()
    with Client(ledger.url, "k", boundaries.around()) as client:
        client.heartbeat("w", [(RUN, "0.1")])
        assert boundaries.count == 0
        client.commit(RUN, NEXT)
        assert boundaries.count == 2
