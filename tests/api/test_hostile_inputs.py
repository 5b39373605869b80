"""What no honest client sends: every refusal is a problem of the 4xx kind, never a crash and never the server's fault."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
from django.http import HttpResponse

from tests.api.conftest import Http, claim_body, commit_body, proposal, start_body
from tests.services.issuing import opened, paying, state
from tests.world import World

DEEP = "[" * 20_000 + "]" * 20_000


def cursor(*values: str) -> str:
    return base64.urlsafe_b64encode("|".join(values).encode()).decode().rstrip("=")


def refused(response: HttpResponse) -> None:
    assert 400 <= response.status_code < 500, (response.status_code, response.content[:300])
    assert json.loads(response.content)["code"]


@pytest.mark.parametrize(
    "place",
    ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "2026-01-01T00:00:00", "yesterday", "\x00"],
)
def test_a_forged_place_in_a_list_is_refused(http: Http, place: str) -> None:
    refused(http.get(f"/runs?after={cursor(place, str(uuid4()))}"))


@pytest.mark.parametrize("after", ["٣", "9" * 18, "-1", "\x00", "1e3"])
def test_a_forged_number_of_a_page_is_refused_or_finds_nothing(world: World, http: Http, after: str) -> None:
    run_id = world.start_run()
    response = http.get(f"/runs/{run_id}/journal?after={cursor(after)}")
    assert response.status_code == 200 or 400 <= response.status_code < 500


@pytest.mark.parametrize("text", ["\x00", "%", "_%_", "\\", "'; DROP TABLE ledger_run; --", "\u202e", "a" * 101])
def test_hostile_text_to_search_for_finds_nothing_or_is_refused(world: World, http: Http, text: str) -> None:
    world.start_run()
    for name in ("text", "task", "workflow", "version"):
        response = http.get(f"/runs?{name}={quote(text)}")
        assert response.status_code == 200 or 400 <= response.status_code < 500, (name, response.content[:200])


@pytest.mark.parametrize("fence", ["99999999999999.99999999999999", "2147483648.0", "0.2147483648", "٠.١", "0.0\n"])
def test_a_fence_beyond_every_counter_is_refused(world: World, http: Http, fence: str) -> None:
    packet = world.claimed_run()
    refused(http.post(f"/runs/{packet.run.id}/release", {"fence": fence}))
    held = {"worker": str(uuid4()), "runs": [{"run": str(packet.run.id), "fence": fence}]}
    response = http.post("/heartbeat", held)
    assert response.status_code == 200 or 400 <= response.status_code < 500, response.content[:300]


@pytest.mark.parametrize("attempt", [2**31, 2**53 - 1, 0, -1])
def test_a_report_of_an_attempt_beyond_every_counter_is_refused_or_evidence(
    world: World, http: Http, attempt: int
) -> None:
    packet, effect, _ = paying(opened(world))
    for fence in (str(packet.fence), "7.7", "2147483648.1"):
        body = {"fence": fence, "attempt": attempt, "outcome": "committed"}
        response = http.post(f"/effects/{effect.pk}/settle", body)
        if response.status_code != 200:
            refused(response)
        else:
            assert response.json()["counted"] is False
    assert state(world, effect) == "in_flight"


@pytest.mark.parametrize("key", ["", " ", "a" * 201, "ключ", "a b", "\x7f"])
def test_an_unusable_idempotency_key_is_refused(http: Http, key: str) -> None:
    refused(http.post("/runs", start_body(), key=key))


@pytest.mark.parametrize(
    "bearer",
    ["", "Bearer", "Bearer ra_x", "Basic abc", "Bearer ra_" + "0" * 10 + "_" + "0" * 64, "Bearer " + "a" * 9_000],
)
def test_a_bearer_that_is_none_is_refused(http: Http, bearer: str) -> None:
    refused(http.get("/runs", Authorization=bearer))


@pytest.mark.parametrize(
    "change",
    [
        {"limit": 0},
        {"limit": 21},
        {"limit": True},
        {"limit": 1.0},
        {"lease_seconds": 0},
        {"lease_seconds": 10**9},
        {"wait_seconds": -1},
        {"wait_seconds": 31},
        {"offers": []},
        {"offers": [{"workflow": "refund", "versions": ["1"]}] * 51},
    ],
)
def test_an_offer_beyond_its_bounds_is_refused(http: Http, change: dict[str, Any]) -> None:
    refused(http.post("/runs/claim", {**claim_body(), **change}))


@pytest.mark.parametrize(
    "wait",
    [
        {"deadline": "9999-12-31T23:59:59-23:59"},
        {"deadline": "9999-12-31T23:59:59Z"},
        {"deadline": "1970-01-01T00:00:00Z"},
        {"deadline": "0001-01-01T00:00:00+23:59"},
        {"deadline_seconds": -1},
        {"deadline_seconds": 10**12},
        {"deadline_seconds": 0},
        {"deadline": "2099-01-01T00:00:00"},
    ],
)
def test_a_deadline_that_is_none_is_refused(world: World, http: Http, wait: dict[str, Any]) -> None:
    world.start_run()
    packet = http.claim("1")
    body = commit_body(packet, "wait")
    members = [{"kind": "timer", "after_seconds": 0}]
    body["next"] = {
        "kind": "wait",
        "transition": "think",
        "wait": {"mode": "all", "members": members, "on_deadline": "wake", **wait},
    }
    refused(http.post(f"/runs/{packet['run']['id']}/checkpoints", body, key=str(uuid4())))


@pytest.mark.parametrize(
    "raw", [DEEP, '{"a":' * 5_000 + "1" + "}" * 5_000, "\ufeff{}", "{}{}", "nul", '{"\\ud800": 1}']
)
def test_a_body_that_is_no_document_is_refused(http: Http, raw: str) -> None:
    refused(http.send("POST", "/runs", raw.encode(), key=str(uuid4())))


@pytest.mark.parametrize("resource", ["..", "order/..", "\r\nX-Evil: 1", "a" * 201, "\u0000"])
def test_a_hostile_resource_never_reaches_the_target_as_more_than_a_name(
    world: World, http: Http, resource: str
) -> None:
    world.start_run()
    packet = http.claim("1")
    body = commit_body(packet, "give_back", propose=[proposal(resource=resource)])
    response = http.post(f"/runs/{packet['run']['id']}/checkpoints", body, key=str(uuid4()))
    assert response.status_code == 201 or 400 <= response.status_code < 500, response.content[:300]


def test_an_event_s_headers_carry_no_text_that_a_body_couldn_t(http: Http) -> None:
    headers = {"ce-specversion": "1.0", "ce-id": "e%00", "ce-source": "s", "ce-type": "t"}
    refused(http.send("POST", "/events", b"{}", media="application/json", **headers))
