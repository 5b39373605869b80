"""Every refusal over HTTP: its code and remedy, nothing written, nothing of what was sent shown or logged."""

from __future__ import annotations

import json
import logging
import re
import secrets
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from ledger.domain.identity import Scope
from ledger.services import identity
from resumeapp.api import api
from tests.api.conftest import Http, claim_body, commit_body, entries, proposal, refused, start_body
from tests.clock import Clock
from tests.documents import STATE
from tests.world import World

MARKER = "marker-of-a-payload-9f2c"


@pytest.fixture(autouse=True)
def _everything_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)


def start_raw(state: str) -> bytes:
    """A start whose state is this raw JSON, with the marker beside it."""
    return ('{"workflow":"refund","version":"1","task":"t","text":"' + MARKER + '","state":' + state + "}").encode()


BODIES: dict[str, tuple[bytes, int, str]] = {
    "cut off": (start_raw('{"order":'), 400, "malformed-json"),
    "not JSON": (MARKER.encode(), 400, "malformed-json"),
    "not UTF-8": (start_raw('"\xff"').replace(b"\xc3\xbf", b"\xff"), 400, "malformed-json"),
    "nested too deeply": (start_raw("[" * 100_000), 400, "malformed-json"),
    "duplicate key": (start_raw('{"order":"17","order":"18"}'), 400, "duplicate-key"),
    "duplicate key outside": (start_raw("{}")[:-1] + b',"task":"u"}', 400, "duplicate-key"),
    "NaN": (start_raw('{"amount_minor":NaN}'), 400, "number-out-of-range"),
    "infinity": (start_raw('{"amount_minor":-Infinity}'), 400, "number-out-of-range"),
    "huge float": (start_raw('{"amount_minor":1e999}'), 400, "number-out-of-range"),
    "2^53": (start_raw('{"amount_minor":9007199254740992}'), 400, "number-out-of-range"),
    "-2^53": (start_raw('{"amount_minor":-9007199254740992}'), 400, "number-out-of-range"),
    "19 digits": (start_raw('{"order":1234567890123456789}'), 400, "number-out-of-range"),
    "NUL": (start_raw('{"order":"a\\u0000b"}'), 400, "bad-text"),
    "half an emoji": (start_raw('{"order":"\\ud83d"}'), 400, "bad-text"),
    "half an emoji as key": (start_raw('{"\\ud83d":1}'), 400, "bad-text"),
    "nested to the brink": (start_raw("[" * 900 + "]" * 900), 400, "malformed-json"),
    "nested one too deep": (start_raw("[" * 101 + "]" * 101), 400, "malformed-json"),
    "unknown field": (start_raw("{}")[:-1] + b',"sate":1}', 422, "unknown-field"),
    "a list": (b'["' + MARKER.encode() + b'"]', 422, "invalid"),
    "nothing": (b"", 422, "invalid"),
    "a number as text": (start_raw("{}").replace(b'"task":"t"', b'"task":17'), 422, "invalid"),
    "no id": (start_raw("{}")[:-1] + b',"on_behalf_of":"' + MARKER.encode() + b'"}', 422, "invalid"),
    "unfit state": (start_raw('{"order":"' + MARKER + '"}'), 422, "schema-mismatch"),
    "state beyond its limit": (start_raw('"' + "x" * 1_100_000 + '"'), 413, "too-large"),
    "a version that isn't there": (start_raw("{}").replace(b'"1"', b'"7"'), 404, "not-found"),
}


@pytest.mark.parametrize("case", BODIES)
def test_a_bad_body_is_refused_and_nothing_is_written_or_shown(
    case: str, world: World, http: Http, caplog: pytest.LogCaptureFixture
) -> None:
    body, status, code = BODIES[case]
    before = entries(world)
    response = http.post("/runs", body, key="k")
    document = refused(response, status, code)
    assert MARKER not in json.dumps(document) and MARKER not in caplog.text
    assert entries(world) == before
    assert http.post("/runs", start_body(), key="k").status_code == 201, "the key is still free"


def test_60_megabytes_are_refused_before_they_are_read(world: World, http: Http) -> None:
    before = entries(world)
    body = b'{"state":"' + b"x" * 60_000_000 + b'"}'
    document = refused(http.post("/runs", body, key="k"), 413, "too-large")
    assert "digest" in document["remedy"]
    assert entries(world) == before
    assert http.get("/runs").json() == {"runs": [], "next": ""}


def test_runs_with_states_near_the_limit_are_taken_and_lists_still_page(http: Http) -> None:
    big = {**STATE, "receipt": "x" * 1_000_000}
    made = {str(http.start(state=big)) for _ in range(3)}
    first = http.get("/runs?limit=2").json()
    rest = http.get(f"/runs?limit=2&after={first['next']}").json()
    assert {run["id"] for run in first["runs"] + rest["runs"]} == made and rest["next"] == ""
    assert len(http.get("/runs").content) < 10_000


def test_digits_beyond_a_double_pass_as_text_unchanged(http: Http) -> None:
    digits = "1234567890123456789"
    run_id = http.start(state={**STATE, "order": digits})
    packet = http.claim()
    assert packet["run"]["id"] == str(run_id)
    assert json.loads(packet["checkpoint"]["state"]["json"])["order"] == digits
    shown = http.get(f"/runs/{run_id}/checkpoints/1").json()
    assert shown["state"] == packet["checkpoint"]["state"]


def test_a_bad_commit_leaves_the_checkpoint_and_the_run(world: World, http: Http) -> None:
    run_id = http.start()
    packet = http.claim()
    before = entries(world)
    raw = json.dumps(commit_body(packet)).replace('"17"', '"a\\u0000\\ud83d"').encode()
    refused(http.post(f"/runs/{run_id}/checkpoints", raw, key="k"), 400, "bad-text")
    assert entries(world) == before
    committed = http.post(f"/runs/{run_id}/checkpoints", commit_body(packet), key="k")
    assert committed.status_code == 201 and committed.json()["seq"] == 2


# Keys and scopes --------------------------------------------------------------------------------


def key_of(world: World, *scopes: Scope, **fields: Any) -> str:
    return identity.issue_key(
        world.admin, "k", scopes, agent_id=world.agent_id, **{"workflows": ["*"], **fields}
    ).secret


@pytest.mark.parametrize("header", [None, "", "Bearer", "Basic YTpi", "Bearer ra_0000000000_" + "0" * 64])
def test_without_a_live_key_nothing_is_answered(header: str | None, world: World) -> None:
    http = Http()
    http.headers = {} if header is None else {"Authorization": header}
    response = http.get("/runs")
    refused(response, 401, "unauthenticated")
    assert response["WWW-Authenticate"] == "Bearer"


def test_an_expired_key_is_refused(world: World, clock: Clock) -> None:
    http = Http(world.secret)
    run_id = http.start()
    secret = key_of(world, Scope.RUNS_READ, expires_at=clock.now() + timedelta(hours=1))
    assert Http(secret).get(f"/runs/{run_id}").status_code == 200
    clock.shift(3_601)
    refused(Http(secret).get(f"/runs/{run_id}"), 401, "key-expired")


def test_a_revoked_key_is_refused(world: World) -> None:
    issued = identity.issue_key(world.admin, "k", (Scope.RUNS_READ,), agent_id=world.agent_id, workflows=["*"])
    assert Http(issued.secret).get("/runs").status_code == 200
    identity.revoke_key(world.admin, issued.id)
    refused(Http(issued.secret).get("/runs"), 401, "key-revoked")


SCOPED: list[tuple[str, str, Scope]] = [
    ("PUT", "/workflows/refund/versions/3", Scope.WORKFLOWS_REGISTER),
    ("GET", "/workflows", Scope.RUNS_READ),
    ("GET", "/workflows/refund/versions", Scope.RUNS_READ),
    ("POST", "/runs", Scope.RUNS_START),
    ("GET", "/runs", Scope.RUNS_READ),
    ("POST", "/runs/claim", Scope.RUNS_WORK),
    ("POST", "/heartbeat", Scope.RUNS_WORK),
    ("GET", "/runs/{id}", Scope.RUNS_READ),
    ("POST", "/runs/{id}/release", Scope.RUNS_WORK),
    ("POST", "/runs/{id}/checkpoints", Scope.RUNS_WORK),
    ("GET", "/runs/{id}/checkpoints", Scope.RUNS_READ),
    ("GET", "/runs/{id}/checkpoints/1", Scope.RUNS_READ),
    ("GET", "/runs/{id}/resume-packet", Scope.RUNS_READ),
    ("GET", "/runs/{id}/resume-packet.md", Scope.RUNS_READ),
    ("POST", "/runs/{id}/effects", Scope.RUNS_WORK),
    ("GET", "/runs/{id}/waits", Scope.RUNS_READ),
    ("GET", "/runs/{id}/wakes", Scope.RUNS_READ),
    ("GET", "/runs/{id}/decisions", Scope.RUNS_READ),
    ("GET", "/runs/{id}/journal", Scope.RUNS_READ),
    ("GET", "/runs/{id}/verify", Scope.RUNS_READ),
    ("GET", "/runs/{id}/export", Scope.RUNS_READ),
    ("GET", "/effects", Scope.RUNS_READ),
    ("GET", "/effects/{id}", Scope.RUNS_READ),
    ("POST", "/effects/{id}/permit", Scope.RUNS_WORK),
    ("POST", "/effects/{id}/settle", Scope.RUNS_WORK),
    ("POST", "/effects/{id}/withdraw", Scope.RUNS_WORK),
    ("POST", "/events", Scope.EVENTS_EMIT),
    ("GET", "/approvals/{id}", Scope.RUNS_READ),
]


def test_each_route_asks_for_its_scope_before_it_reads_anything(world: World) -> None:
    before = entries(world)
    keys = {
        needed: Http(key_of(world, *(set(Scope) - {needed, Scope.OPERATE}))) for needed in {row[2] for row in SCOPED}
    }
    issued = entries(world) - before
    for method, path, needed in SCOPED:
        response = keys[needed].send(method, path.format(id=uuid4()), MARKER.encode(), key="k")
        document = refused(response, 403, "scope-missing")
        assert document["facts"] == {"scope": str(needed)}, (method, path)
    assert entries(world) == before + issued


def test_the_table_of_scopes_names_every_route() -> None:
    routes = {
        (method.upper(), path.removeprefix("/api/v1"))
        for path, methods in api.get_openapi_schema(path_prefix="/api/v1").get("paths", {}).items()
        for method in methods
    }
    named = {
        (method, path.replace("versions/3", "versions/{}").replace("refund", "{}").replace("/1", "/{}"))
        for method, path, _ in SCOPED
    }
    known = {(method, re.sub(r"\{\w+\}", "{}", path)) for method, path in routes}
    assert known - {(m, re.sub(r"\{\w+\}", "{}", p)) for m, p in named} == {("POST", "/approvals/{}/decision")}


# Foreign ids ------------------------------------------------------------------------------------


def test_a_foreign_tenants_ids_are_not_found_on_every_route(world: World, http: Http) -> None:
    stranger = Http(World().secret)
    run_id = http.start()
    packet = http.claim()
    made = http.post(f"/runs/{run_id}/effects", {"fence": packet["fence"], "expect_seq": 1, **proposal()}, key="p")
    assert made.status_code == 201, made.content
    effect_id = made.json()["id"]
    before = entries(world)
    bodies: dict[str, Any] = {
        "release": {"fence": packet["fence"]},
        "checkpoints": commit_body(packet),
        "effects": {"fence": packet["fence"], "expect_seq": 2, **proposal("other")},
        "permit": {"fence": packet["fence"]},
        "withdraw": {"fence": packet["fence"]},
        "settle": {"fence": packet["fence"], "attempt": 1, "outcome": "unknown"},
    }
    for method, path, _ in SCOPED:
        if "{id}" not in path or path.startswith("/approvals"):
            continue
        owned = effect_id if path.startswith("/effects") else run_id
        body = bodies.get(path.rsplit("/", 1)[1]) if method == "POST" else None
        document = refused(stranger.send(method, path.format(id=owned), body, key="k"), 404, "not-found")
        assert str(owned) not in json.dumps(document)
    assert stranger.get(f"/effects?run={run_id}").status_code == 404
    beat = stranger.post(
        "/heartbeat", {"worker": str(uuid4()), "runs": [{"run": str(run_id), "fence": packet["fence"]}]}
    )
    assert beat.json()["runs"][0]["directive"] == "stop"
    assert stranger.post("/runs/claim", claim_body()).status_code == 204
    assert entries(world) == before


# Addresses --------------------------------------------------------------------------------------


def test_unknown_addresses_and_methods_are_problems(http: Http) -> None:
    refused(http.get("/nothing"), 404, "not-found")
    refused(Http().get("/runs/17/../../x"), 404, "not-found")
    response = http.send("DELETE", "/runs")
    document = refused(response, 405, "method-not-allowed")
    assert set(response["Allow"].split(", ")) == {"GET", "POST"} and document["facts"]["allow"]


def test_a_body_of_another_media_type_is_refused(http: Http) -> None:
    response = http.send("POST", "/runs", start_body(), key="k", media="text/plain")
    refused(response, 415, "unsupported-media")


def test_a_trace_is_echoed_only_when_it_is_one(http: Http) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    assert http.get("/runs", traceparent=trace)["traceparent"] == trace
    for bad in ("00-" + "0" * 32 + "-b7ad6b7169203331-01", "ff" + trace[2:], "x\r\ny", trace.upper()):
        assert "traceparent" not in http.get("/runs", traceparent=bad)


def test_a_trace_is_kept_with_the_run_and_the_effects_that_its_calls_made(http: Http) -> None:
    ids = {name: secrets.token_hex(16) for name in ("start", "commit", "propose", "again")}
    context = {name: f"00-{trace}-b7ad6b7169203331-01" for name, trace in ids.items()}
    body = start_body()
    started = http.post("/runs", body, key="traced", traceparent=context["start"]).json()["run"]
    again = http.post("/runs", body, key="traced", traceparent=context["again"]).json()["run"]
    assert started["trace"] == again["trace"] == ids["start"], "a repeat is the same run, whatever its trace"
    assert http.get(f"/runs/{started['id']}").json()["run"]["trace"] == ids["start"]
    packet, path = http.claim(), f"/runs/{started['id']}"
    own = {**proposal("own"), "fence": packet["fence"], "expect_seq": packet["checkpoint"]["seq"]}
    effect = http.post(f"{path}/effects", own, key="p", traceparent=context["propose"]).json()
    assert effect["trace"] == ids["propose"] == http.get(f"/effects/{effect['id']}").json()["trace"]
    packet["checkpoint"]["seq"] = effect["seq"]
    commit = commit_body(packet, propose=[proposal("with")])
    made = http.post(f"{path}/checkpoints", commit, key="c", traceparent=context["commit"]).json()
    assert made["effects"]["with"]["trace"] == ids["commit"]
    untraced = http.post("/runs", start_body(), key="untraced", traceparent="00-nonsense").json()["run"]
    assert untraced["trace"] is None
