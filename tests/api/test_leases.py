"""Claim, heartbeat and release over HTTP."""

from __future__ import annotations

import threading
import time
from uuid import uuid4

import pytest
from django.conf import settings
from django.db import connection

from ledger.api import leases
from tests.api.conftest import Http, claim_body, commit_body, entries, refused
from tests.clock import Clock
from tests.patience import until
from tests.world import World


def test_a_stale_fence_is_refused_and_nothing_is_written(world: World, http: Http, clock: Clock) -> None:
    run_id = http.start()
    stale = http.claim()
    assert http.post(f"/runs/{run_id}/release", {"fence": stale["fence"]}).status_code == 204
    before = entries(world)
    document = refused(http.post(f"/runs/{run_id}/release", {"fence": stale["fence"]}), 409, "stale-fence")
    assert document["facts"] == {} and "0.2" not in document["detail"], "the present fence is for its holder alone"
    refused(http.post(f"/runs/{run_id}/checkpoints", commit_body(stale), key="k"), 409, "stale-fence")
    for fence in ("7", "903666122368064411024.6", "0.903666122368064411"):
        refused(http.post(f"/runs/{run_id}/release", {"fence": fence}), 422, "invalid")
    assert entries(world) == before


def test_an_offer_that_says_nothing_is_refused(http: Http) -> None:
    refused(http.post("/runs/claim", {**claim_body(), "offers": []}), 422, "invalid")
    refused(http.post("/runs/claim", claim_body(limit=True)), 422, "invalid")
    refused(http.post("/runs/claim", claim_body(wait_seconds=31)), 422, "invalid")
    refused(http.post("/runs/claim", claim_body(lease_seconds=0)), 422, "invalid")


def test_a_claim_answers_the_whole_packet(http: Http) -> None:
    run_id = http.start()
    packet = http.claim(lease_seconds=30)
    assert packet["run"]["id"] == str(run_id) and packet["run"]["status"] == "running"
    assert packet["fence"] == "0.1" and packet["version"] == "1"
    assert packet["transition"] == packet["run"]["transition"] == "assess"
    assert packet["checkpoint"]["seq"] == 1 and packet["clearance"]["tools"] == []
    assert packet["effects"] == {} and packet["wait"] is None and packet["decision"] is None


def test_nothing_to_claim_is_204_with_no_body(http: Http) -> None:
    response = http.post("/runs/claim", claim_body())
    assert (response.status_code, response.content) == (204, b"")


def test_a_waiting_claim_gets_a_run_that_comes_meanwhile(http: Http, world: World) -> None:
    found: list[int] = []
    began = time.monotonic()

    def wait() -> None:
        try:
            found.append(Http(world.secret).post("/runs/claim", claim_body(wait_seconds=20)).status_code)
        finally:
            connection.close()

    waiter = threading.Thread(target=wait)
    waiter.start()
    http.start()
    waiter.join(timeout=20)
    assert found == [200] and time.monotonic() - began < 15


def test_a_waiting_claim_is_called_by_the_bell_before_its_next_look(
    http: Http, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "RESUMEAPP_HINTS", True)
    monkeypatch.setattr(leases, "LOOK_EVERY", 3600)
    found: list[int] = []

    def wait() -> None:
        try:
            found.append(Http(world.secret).post("/runs/claim", claim_body(wait_seconds=30)).status_code)
        finally:
            connection.close()

    waiter = threading.Thread(target=wait)
    waiter.start()
    until(lambda: leases._seats._value < leases.WAITING_AT_ONCE, "the claim to wait")  # type: ignore[attr-defined]
    began = time.monotonic()
    http.start()
    waiter.join(timeout=30)
    assert found == [200] and time.monotonic() - began < 15


def test_where_too_many_wait_the_next_is_answered_soon(http: Http) -> None:
    seats = [leases._seats.acquire(blocking=False) for _ in range(leases.WAITING_AT_ONCE)]
    try:
        assert all(seats)
        began = time.monotonic()
        response = http.post("/runs/claim", claim_body(wait_seconds=30))
        assert (response.status_code, response["Retry-After"]) == (204, "1")
        assert time.monotonic() - began < 10
    finally:
        for _ in seats:
            leases._seats.release()


def test_a_heartbeat_says_of_each_run_whether_to_go_on(http: Http) -> None:
    run_id = http.start()
    body = claim_body(lease_seconds=30)
    packet = http.post("/runs/claim", body).json()["packets"][0]
    held = {"run": str(run_id), "fence": packet["fence"]}
    lost = {"run": str(uuid4()), "fence": "0.1"}
    answer = http.post("/heartbeat", {"worker": body["worker"]["id"], "runs": [held, lost]}).json()["runs"]
    assert [(beat["run"], beat["directive"]) for beat in answer] == [(held["run"], "go_on"), (lost["run"], "stop")]
    assert answer[0]["lease_expires_at"] >= packet["lease_expires_at"]
    refused(http.post("/heartbeat", {"worker": str(uuid4()), "runs": [{**held, "x": 1}]}), 422, "unknown-field")
