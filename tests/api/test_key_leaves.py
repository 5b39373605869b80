"""A key that is for some workflow types, or may emit some events, is refused all others over HTTP; what it can't see isn't there."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest

from ledger.domain.identity import Emit, Scope
from ledger.models import Lease
from ledger.services import identity
from tests.api.conftest import Http, claim_body, commit_body, entries, proposal, refused, start_body
from tests.api.test_events import emit, event
from tests.documents import SCHEMA, TRANSITIONS
from tests.world import EVERYTHING, World


def key(world: World, *workflows: str, emits: tuple[Emit, ...] = (), agent_id: UUID | None = None) -> Http:
    issued = identity.issue_key(
        world.admin, "k", EVERYTHING, workflows=workflows, emits=emits, agent_id=agent_id or world.agent_id
    )
    return Http(issued.secret)


def version() -> dict[str, Any]:
    return {"state_schema": SCHEMA, "initial": "assess", "transitions": TRANSITIONS}


def test_what_names_a_foreign_type_is_refused_and_tells_nothing_of_what_there_is(world: World) -> None:
    wires = key(world, "wire")
    before = entries(world)
    offers = [{"workflow": "wire", "versions": ["1"]}, {"workflow": "refund", "versions": ["1"]}]
    for name in ("refund", "nothing"):
        told = [
            refused(wires.send("PUT", f"/workflows/{name}/versions/7", version()), 403, "workflow-not-allowed"),
            refused(wires.post("/runs", start_body(workflow=name), key="k"), 403, "workflow-not-allowed"),
        ]
        assert all(name not in document["detail"] + document["remedy"] for document in told)
        refused(wires.get(f"/workflows/{name}/versions"), 404, "not-found")
    refused(wires.post("/runs/claim", claim_body(offers=offers)), 403, "workflow-not-allowed")
    assert wires.get("/workflows").json() == {"workflows": []}
    assert entries(world) == before


def test_runs_effects_and_requests_of_a_foreign_type_aren_t_there(world: World, http: Http) -> None:
    run_id = http.start()
    packet = http.claim()
    made = http.post(f"/runs/{run_id}/effects", {"fence": packet["fence"], "expect_seq": 1, **proposal()}, key="p")
    effect_id = made.json()["id"]
    wires, before = key(world, "wire"), entries(world)
    for path in ("", "/checkpoints", "/checkpoints/1", "/resume-packet", "/resume-packet.md", "/waits", "/wakes"):
        refused(wires.get(f"/runs/{run_id}{path}"), 404, "not-found")
    for path in ("/decisions", "/journal", "/verify", "/export"):
        refused(wires.get(f"/runs/{run_id}{path}"), 404, "not-found")
    refused(wires.get(f"/effects/{effect_id}"), 404, "not-found")
    refused(wires.get(f"/effects?run={run_id}"), 404, "not-found")
    fence = {"fence": packet["fence"]}
    refused(wires.post(f"/runs/{run_id}/release", fence), 404, "not-found")
    refused(wires.post(f"/runs/{run_id}/checkpoints", commit_body(packet), key="c"), 404, "not-found")
    more = {**fence, "expect_seq": 2, **proposal("other")}
    refused(wires.post(f"/runs/{run_id}/effects", more, key="o"), 404, "not-found")
    refused(wires.post(f"/runs/{run_id}/effects", {**fence, "accept": "pay"}, key="o"), 404, "not-found")
    for verb in ("permit", "withdraw"):
        refused(wires.post(f"/effects/{effect_id}/{verb}", fence), 404, "not-found")
    settle = {**fence, "attempt": 1, "outcome": "unknown"}
    refused(wires.post(f"/effects/{effect_id}/settle", settle), 404, "not-found")
    assert wires.get("/runs").json()["runs"] == [] and wires.get("/effects").json()["effects"] == []
    assert entries(world) == before


def test_a_sibling_key_for_other_types_keeps_no_lease_alive(world: World, http: Http) -> None:
    run_id = http.start()
    packet = http.claim()
    worker = Lease.objects.of(world.tenant).get(run_id=run_id).worker_id
    held = {"worker": str(worker), "runs": [{"run": str(run_id), "fence": packet["fence"]}]}
    assert key(world, "wire").post("/heartbeat", held).json()["runs"][0]["directive"] == "stop"
    assert key(world, "refund").post("/heartbeat", held).json()["runs"][0]["directive"] == "go_on"


def test_an_idempotency_key_of_a_foreign_run_is_taken_and_names_nothing(world: World, http: Http) -> None:
    run_id = http.start(key="k")
    key(world, "refund", "wire").send("PUT", "/workflows/wire/versions/1", version())
    document = refused(key(world, "wire").post("/runs", start_body(workflow="wire"), key="k"), 422, "key-reused")
    assert str(run_id) not in json.dumps(document)


def test_a_key_works_on_the_types_that_it_names(world: World) -> None:
    both = key(world, "wire", "refund")
    assert both.send("PUT", "/workflows/wire/versions/1", version()).status_code == 201
    run_id = both.start(workflow="wire")
    packet = both.claim(offers=[{"workflow": "wire", "versions": ["1"]}])
    assert packet["run"]["id"] == str(run_id)
    assert both.post(f"/runs/{run_id}/checkpoints", commit_body(packet, "complete"), key="c").status_code == 201
    assert [row["workflow"] for row in both.get("/workflows").json()["workflows"]] == ["refund", "wire"]
    assert [row["id"] for row in key(world, "wire").get("/runs").json()["runs"]] == [str(run_id)]


@pytest.mark.parametrize("sent", [event(type="paid"), event(source="/bank"), event(type="shippe"), event(source="/")])
def test_an_event_that_the_key_may_not_emit_is_refused_and_not_kept(sent: dict[str, Any], world: World) -> None:
    relay = key(world, "refund", emits=(Emit("shipped", "/shop"), Emit("shipped.*", "/shop/*")))
    before = entries(world)
    document = refused(emit(relay, sent), 403, "event-not-allowed")
    assert "create_key" in document["remedy"] and document["facts"] == {}
    assert entries(world) == before
    assert emit(relay, event()).json()["status"] == "kept"
    assert emit(relay, event(type="shipped.late", source="/shop/7")).json()["status"] == "kept"


def test_a_key_without_leave_to_emit_repeats_not_even_what_was_received(world: World, http: Http) -> None:
    assert emit(http, event()).status_code == 202
    refused(emit(key(world, "*"), event()), 403, "event-not-allowed")


def test_a_key_with_the_scope_alone_emits_nothing(world: World) -> None:
    issued = identity.issue_key(world.admin, "k", [Scope.EVENTS_EMIT], workflows=["*"], agent_id=world.agent_id)
    refused(emit(Http(issued.secret), event()), 403, "event-not-allowed")
