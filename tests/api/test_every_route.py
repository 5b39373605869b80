"""What is refused on one route is refused on every one that takes a body or a fence: nothing is written, nothing shown."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest

from ledger.engine import wakes
from ledger.services import leases
from resumeapp.api import api
from tests.api.conftest import Http, claim_body, commit_body, entries, proposal, refused, start_body
from tests.api.test_approvals import Asked, Signed
from tests.api.test_events import MEDIA, event
from tests.clock import Clock
from tests.documents import SCHEMA, STATE, TRANSITIONS
from tests.world import World

MARKER = "marker-of-a-payload-7d1e"
Send = Callable[[bytes], Any]


class Routes:
    """Every call that takes a body: its valid body, and how to send one to it."""

    def __init__(self, world: World, http: Http) -> None:
        self.world, self.http = world, http
        asked = Asked(world, http)
        self.run_id = http.start()
        self.packet = http.claim()
        fence = {"fence": self.packet["fence"]}
        made = http.post(f"/runs/{self.run_id}/effects", {**fence, "expect_seq": 1, **proposal()}, key="first")
        effect = f"/effects/{made.json()['id']}"
        run, held = f"/runs/{self.run_id}", {"worker": str(uuid4()), "runs": [{"run": str(self.run_id), **fence}]}
        version = {"state_schema": SCHEMA, "initial": "assess", "transitions": TRANSITIONS}
        self.bodies: dict[tuple[str, str], tuple[str, Any]] = {
            ("PUT", "/workflows/{workflow}/versions/{version}"): ("/workflows/refund/versions/7", version),
            ("POST", "/runs"): ("/runs", start_body()),
            ("POST", "/runs/claim"): ("/runs/claim", claim_body()),
            ("POST", "/heartbeat"): ("/heartbeat", held),
            ("POST", "/runs/{run_id}/release"): (f"{run}/release", fence),
            ("POST", "/runs/{run_id}/checkpoints"): (
                f"{run}/checkpoints",
                {**commit_body(self.packet), "expect_seq": 2},
            ),
            ("POST", "/runs/{run_id}/effects"): (f"{run}/effects", {**fence, "expect_seq": 2, **proposal("other")}),
            ("POST", "/effects/{effect_id}/permit"): (f"{effect}/permit", fence),
            ("POST", "/effects/{effect_id}/settle"): (
                f"{effect}/settle",
                {**fence, "attempt": 1, "outcome": "unknown"},
            ),
            ("POST", "/effects/{effect_id}/withdraw"): (f"{effect}/withdraw", fence),
            ("POST", "/events"): ("/events", event()),
            ("POST", "/approvals/{request_id}/decision"): (asked.path, asked.body),
        }

    def send(self, route: tuple[str, str], raw: bytes, key: str = "k") -> Any:
        method, path = route[0], self.bodies[route][0]
        if path.endswith("/decision"):
            return Signed(self.world.alice).post(path, raw)
        media = MEDIA if path == "/events" else "application/json"
        return self.http.send(method, path, raw, key=key, media=media)

    def valid(self, route: tuple[str, str]) -> str:
        return json.dumps(self.bodies[route][1])


BAD: dict[str, tuple[Callable[[str], str], int, str]] = {
    "cut off": (lambda body: body[:-1], 400, "malformed-json"),
    "duplicate key": (lambda body: '{"X":1,"X":"' + MARKER + '",' + body[1:], 400, "duplicate-key"),
    "NaN": (lambda body: '{"X":[NaN],' + body[1:], 400, "number-out-of-range"),
    "2^53": (lambda body: '{"X":9007199254740992,' + body[1:], 400, "number-out-of-range"),
    "NUL": (lambda body: '{"X":"' + MARKER + '\\u0000",' + body[1:], 400, "bad-text"),
    "half an emoji": (lambda body: '{"X":"\\ud83d' + MARKER + '",' + body[1:], 400, "bad-text"),
    "unknown field": (lambda body: '{"X":"' + MARKER + '",' + body[1:], 422, "unknown-field"),
    "a list": (lambda body: '["' + MARKER + '"]', 422, "invalid"),
    "null": (lambda body: "null", 422, "invalid"),
    "too much": (lambda body: '{"X":"' + "x" * 3_000_000 + '",' + body[1:], 413, "too-large"),
}


def test_the_table_names_every_call_that_takes_a_body(world: World, http: Http) -> None:
    paths = api.get_openapi_schema(path_prefix="").get("paths", {})
    taking = {
        (method.upper(), path)
        for path, methods in paths.items()
        for method, call in methods.items()
        if "requestBody" in call
    }
    assert taking == set(Routes(world, http).bodies)


@pytest.mark.parametrize("case", BAD)
def test_a_bad_body_is_refused_on_every_route_and_nothing_is_written_or_shown(
    case: str, world: World, http: Http, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    spoil, status, code = BAD[case]
    routes = Routes(world, http)
    before = entries(world)
    for route in routes.bodies:
        response = routes.send(route, spoil(routes.valid(route)).encode())
        assert (route, response.status_code) == (route, status), response.content
        document = refused(response, status, code)
        assert MARKER not in json.dumps(document), route
    assert MARKER not in caplog.text and entries(world) == before


def test_what_is_too_large_to_keep_is_refused_wherever_content_is_taken(world: World, http: Http) -> None:
    routes = Routes(world, http)
    big = "x" * 1_100_000
    fields: dict[tuple[str, str], dict[str, Any]] = {
        ("POST", "/runs"): {"state": {**STATE, "receipt": big}},
        ("POST", "/runs/{run_id}/checkpoints"): {"state": {**STATE, "receipt": big}},
        ("POST", "/runs/{run_id}/effects"): {"request": {"text": big}},
        ("POST", "/effects/{effect_id}/settle"): {"result": {"text": big}},
        ("POST", "/events"): {"data": big},
    }
    before = entries(world)
    for route, more in fields.items():
        raw = json.dumps({**routes.bodies[route][1], **more}).encode()
        document = refused(routes.send(route, raw), 413, "too-large")
        assert "digest" in document["remedy"], route
    raw = json.dumps({**commit_body(routes.packet), "expect_seq": 2, "propose": [proposal("b", request={"t": big})]})
    refused(http.post(f"/runs/{routes.run_id}/checkpoints", raw.encode(), key="k"), 413, "too-large")
    assert entries(world) == before


# Fences ---------------------------------------------------------------------------------------------


def acts(http: Http, run_id: UUID, packet: dict[str, Any], effect_id: str) -> dict[str, Callable[[], Any]]:
    """Everything that a worker with this packet could still try to write."""
    fence = {"fence": packet["fence"]}
    seq = http.get(f"/runs/{run_id}").json()["run"]["seq"]
    run = f"/runs/{run_id}"

    def commit(kind: str, **fields: Any) -> Callable[[], Any]:
        body = {**commit_body(packet, kind), "expect_seq": seq, **fields}
        return lambda: http.post(f"{run}/checkpoints", body, key=f"late-{kind}-{len(fields)}")

    report = {"effect": effect_id, "attempt": 1, "outcome": "failed", "cause": "rejected"}
    return {
        "release": lambda: http.post(f"{run}/release", fence),
        "go on": commit("go_on"),
        "give back": commit("give_back"),
        "complete": commit("complete"),
        "fail": commit("fail", propose=[proposal("late")], settle=[report]),
        "propose": lambda: http.post(f"{run}/effects", {**fence, "expect_seq": seq, **proposal("late")}, key="late"),
        "accept": lambda: http.post(f"{run}/effects", {**fence, "accept": "pay"}, key="late"),
        "permit": lambda: http.post(f"/effects/{effect_id}/permit", fence),
        "withdraw": lambda: http.post(f"/effects/{effect_id}/withdraw", fence),
    }


def proposed(http: Http) -> tuple[UUID, dict[str, Any], str]:
    run_id = http.start()
    packet = http.claim(lease_seconds=30)
    made = http.post(
        f"/runs/{run_id}/effects", {"fence": packet["fence"], "expect_seq": 1, **proposal()}, key=str(run_id)
    )
    return run_id, packet, made.json()["id"]


def taken_over(world: World, http: Http, clock: Clock, run_id: UUID) -> dict[str, Any]:
    """The run in the hands of the next worker."""
    clock.shift(31)
    assert leases.lapse(run_id) and wakes.run(run_id) == "resume"
    packet = http.claim("1", "2")
    assert packet["run"]["id"] == str(run_id)
    return packet


@pytest.mark.parametrize("after", ["the lapse", "the next claim", "the end"])
def test_whatever_a_worker_tries_after_it_lost_the_run_is_refused_and_nothing_is_written(
    after: str, world: World, http: Http, clock: Clock
) -> None:
    run_id, stale, effect_id = proposed(http)
    if after == "the lapse":
        clock.shift(31)
        assert leases.lapse(run_id)
    else:
        fresh = taken_over(world, http, clock, run_id)
    if after == "the end":
        done = {**commit_body(fresh, "complete"), "expect_seq": 2}
        assert http.post(f"/runs/{run_id}/checkpoints", done, key="done").status_code == 201
    status = http.get(f"/runs/{run_id}").json()["run"]["status"]
    before, effects = entries(world), http.get(f"/effects?run={run_id}").json()
    for name, act in acts(http, run_id, stale, effect_id).items():
        response = act()
        assert (name, response.status_code) == (name, 409), response.content
        refused(response, 409, "stale-fence")
    beat = http.post(
        "/heartbeat", {"worker": str(uuid4()), "runs": [{"run": str(run_id), "fence": stale["fence"]}]}
    ).json()
    assert beat["runs"][0]["directive"] == "stop"
    assert entries(world) == before and http.get(f"/effects?run={run_id}").json() == effects
    assert http.get(f"/runs/{run_id}").json()["run"]["status"] == status
    assert http.get(f"/runs/{run_id}/verify").json()["intact"] is True


def test_a_fence_that_is_none_is_refused_on_every_route_that_takes_one(world: World, http: Http) -> None:
    routes = Routes(world, http)
    before = entries(world)
    for route, (path, body) in routes.bodies.items():
        if "fence" not in json.dumps(body):
            continue
        for wrong in ("7", "0.1.2", "0.-1", "a.b", " 0.1", ""):
            raw = json.dumps(body).replace(f'"{routes.packet["fence"]}"', json.dumps(wrong))
            assert refused(routes.send(route, raw.encode()), 422, "invalid"), path
    assert entries(world) == before
