"""Every operation of the API × key × method against another tenant: its ids are unknown, exactly as ids of nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from ledger.domain.identity import ALL, Emit, Scope
from ledger.models import Lease
from ledger.services import identity
from resumeapp.api import api
from tests.api.conftest import Http, claim_body, start_body
from tests.api.test_approvals import Signed
from tests.api.test_every_route import Routes
from tests.tenants.neighbours import MARKER, entries, patterns
from tests.world import ANYTHING, EVERYTHING, World

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
KEYS = ("agent", "reader", "emitter", "one workflow", "person", "revoked", "expired", "unknown", "none")
OWN_NAMES = {"workflow", "version"}
"""Arguments that are names, and every tenant's own: another's is simply not meant."""


@dataclass(frozen=True)
class Operation:
    method: str
    path: str
    """As the document has it, such as `/runs/{run_id}`."""


UNDOCUMENTED = {"", "docs", "docs/conventions", "openapi.json"}
"""Addresses below the API's that are no operations."""


def served() -> set[str]:
    """Every address of the URL configuration below the API's, written as the document writes them."""
    below = [(text, pattern) for text, pattern in patterns() if text.startswith("api/v1/")]
    return {re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", text.removeprefix("api/v1/")) for text, _ in below}


def operations() -> list[Operation]:
    paths = api.get_openapi_schema(path_prefix="").get("paths", {})
    return [Operation(method.upper(), path) for path, methods in paths.items() for method in methods]


class Neighbour:
    """Theirs, seen through their own API: a valid path and body for every operation, and what nobody else may read."""

    def __init__(self) -> None:
        self.world = World()
        http = Http(self.world.secret)
        self.routes = Routes(self.world, http)
        http.start(task=MARKER, key="theirs")
        effect = self.routes.bodies[("POST", "/effects/{effect_id}/permit")][0].split("/")[2]
        request = self.routes.bodies[("POST", "/approvals/{request_id}/decision")][0].split("/")[2]
        self.ids = {"run_id": str(self.routes.run_id), "effect_id": effect, "request_id": request, "seq": "1"}
        self.words = [MARKER, self.world.tenant.name, str(self.world.tenant.pk), self.world.alice.email, effect]

    def path(self, operation: Operation, ids: dict[str, str]) -> str:
        """An argument that nobody thought of is a KeyError, so that a new operation comes to this matrix too."""
        return operation.path.format_map({"workflow": "refund", "version": "9", **ids})

    def body(self, operation: Operation) -> Any:
        found = self.routes.bodies.get((operation.method, operation.path))
        return found[1] if found else None


@pytest.fixture(scope="module")
def neighbour(opened: None) -> Neighbour:
    return Neighbour()


@pytest.fixture(scope="module")
def callers(ours: World) -> dict[str, Http]:
    """A caller for each kind of key that our side could have."""
    issue, agent = identity.issue_key, ours.agent_id
    return {
        "agent": Http(issue(ours.admin, "all", EVERYTHING, agent_id=agent, **ANYTHING).secret),
        "reader": Http(issue(ours.admin, "reader", (Scope.RUNS_READ,), agent_id=agent, workflows=[ALL]).secret),
        "emitter": Http(issue(ours.admin, "emitter", (Scope.EVENTS_EMIT,), agent_id=agent, **ANYTHING).secret),
        "person": Http(
            issue(ours.admin, "charlie", (Scope.RUNS_READ, Scope.OPERATE), person=ours.charlie, workflows=[ALL]).secret
        ),
        "one workflow": Http(
            issue(ours.admin, "one", EVERYTHING, agent_id=agent, workflows=["refund"], emits=[Emit("*", "*")]).secret
        ),
        "revoked": Http(_over(ours, "revoked")),
        "expired": Http(_over(ours, "expired")),
        "unknown": Http("ra_test_nonsense"),
        "none": Http(),
    }


def _over(ours: World, how: str) -> str:
    """A key that was good once."""
    issued = identity.issue_key(ours.admin, how, EVERYTHING, agent_id=ours.agent_id, **ANYTHING)
    if how == "revoked":
        identity.revoke_key(ours.admin, issued.id)
    else:
        identity.rotate_key(ours.admin, issued.id, timedelta(microseconds=1))
    return issued.secret


def of_theirs(neighbour: Neighbour) -> Iterator[tuple[Operation, str, str]]:
    """Every operation with an id in its path: with theirs, and with ids of nothing."""
    for operation in operations():
        if any("{" + name + "}" in operation.path for name in neighbour.ids):
            nothing = {name: "1" if name == "seq" else str(uuid4()) for name in neighbour.ids}
            yield operation, neighbour.path(operation, neighbour.ids), neighbour.path(operation, nothing)


def told(response: Any, path: str) -> tuple[int, str]:
    """Status and text of an answer, without the ids of the path that was asked for."""
    text = response.content.decode()
    for part in path.split("/"):
        text = text.replace(part, "*") if len(part) > 12 else text
    return response.status_code, text


def expected(kind: str) -> set[int]:
    over = {401} if kind in ("revoked", "expired", "unknown", "none") else {403, 404}
    return {404} if kind in ("agent", "one workflow") else over


@pytest.mark.parametrize("kind", KEYS)
def test_an_id_of_another_tenant_is_an_id_of_nothing(
    kind: str, ours: World, neighbour: Neighbour, callers: dict[str, Http]
) -> None:
    caller, before = callers[kind], entries(ours, neighbour.world)
    asked = 0
    for operation, path, nothing in of_theirs(neighbour):
        body = neighbour.body(operation)
        response = caller.send(operation.method, path, body, key="matrix")
        absent = caller.send(operation.method, nothing, body, key="matrix")
        assert told(response, path) == told(absent, nothing), operation
        decides = operation.path.endswith("/decision")
        wanted = ({401} if kind == "none" else {403}) if decides else expected(kind)
        assert response.status_code in wanted, (operation, response.content)
        assert not [word for word in neighbour.words if word in response.content.decode() and word not in path]
        asked += 1
    assert asked > 15 and entries(ours, neighbour.world) == before


def test_every_address_of_the_api_is_an_operation_of_its_document() -> None:
    documented = {operation.path.removeprefix("/") for operation in operations()}
    assert served() == documented | UNDOCUMENTED and len(documented) > 20


@pytest.mark.parametrize("kind", KEYS)
def test_a_method_that_an_address_does_not_know_says_no_more(
    kind: str, ours: World, neighbour: Neighbour, callers: dict[str, Http]
) -> None:
    caller, before = callers[kind], entries(ours, neighbour.world)
    known = {(operation.method, operation.path) for operation in operations()}
    for operation, path, _ in of_theirs(neighbour):
        for method in METHODS:
            if (method, operation.path) not in known:
                response = caller.client.generic(method, f"/api/v1{path}", headers=caller.headers)
                assert response.status_code in (404, 405), (method, path, response.content)
                assert not [word for word in neighbour.words if word in response.content.decode() and word not in path]
    assert entries(ours, neighbour.world) == before


def test_a_session_is_no_key(ours: World, neighbour: Neighbour) -> None:
    """Whoever is signed in reads and moves nothing by it, theirs or not, but decides."""
    before = entries(ours, neighbour.world)
    for person in (ours.alice, ours.charlie, ours.dora):
        signed = Signed(person)
        for operation, path, nothing in of_theirs(neighbour):
            if operation.path.endswith("/decision"):
                continue
            body = json.dumps(neighbour.body(operation)).encode()
            asked = [
                signed.client.generic(
                    operation.method, f"/api/v1{each}", body, "application/json", headers={"X-CSRFToken": signed.token}
                )
                for each in (path, nothing)
            ]
            assert asked[0].status_code == 401, (operation, asked[0].content)
            assert told(asked[0], path) == told(asked[1], nothing), operation
    assert entries(ours, neighbour.world) == before


def test_a_signed_in_person_of_ours_does_not_decide_for_them(ours: World, neighbour: Neighbour) -> None:
    before = entries(ours, neighbour.world)
    path, body = neighbour.routes.bodies[("POST", "/approvals/{request_id}/decision")]
    for person in (ours.alice, ours.charlie, ours.dora):
        response = Signed(person).post(path, body)
        absent = Signed(person).post(f"/approvals/{uuid4()}/decision", body)
        assert response.status_code == 404 and response.json()["code"] == absent.json()["code"] == "not-found"
    assert entries(ours, neighbour.world) == before


def test_what_takes_no_id_shows_and_moves_only_the_own(neighbour: Neighbour) -> None:
    """Lists, filters, claims, heartbeats, events and names: what is asked of theirs is answered as if they weren't there."""
    world = World()
    http, before = Http(world.secret), entries(neighbour.world)
    run, effect = neighbour.ids["run_id"], neighbour.ids["effect_id"]
    lease = Lease.objects.of(neighbour.world.tenant).get(run_id=run).expires_at
    _, held = neighbour.routes.bodies[("POST", "/heartbeat")]
    answers = {
        "/runs": http.get("/runs"),
        "/runs by task": http.get(f"/runs?task={MARKER}"),
        "/effects": http.get(f"/effects?run={run}"),
        "/workflows": http.get("/workflows"),
        "/runs/claim": http.post("/runs/claim", claim_body("1", "2", "7")),
        "/heartbeat": http.post("/heartbeat", held),
        "/events": http.post(
            "/events", neighbour.body(Operation("POST", "/events")), media="application/cloudevents+json"
        ),
    }
    assert answers["/runs/claim"].status_code == 204
    assert answers["/heartbeat"].json()["runs"][0]["directive"] == "stop"
    assert answers["/events"].json()["deliveries"] == 0
    for name, response in answers.items():
        assert response.status_code < 500, name
        assert not [word for word in (*neighbour.words, effect) if word in response.content.decode()], name
    assert http.get("/runs").json()["runs"] == [] and http.get(f"/effects?run={run}").json().get("effects", []) == []
    assert Lease.objects.of(neighbour.world.tenant).get(run_id=run).expires_at == lease
    own = http.start(key="theirs")
    assert str(own) != run and [row["id"] for row in http.get("/runs").json()["runs"]] == [str(own)]
    assert entries(neighbour.world) == before


def test_a_name_that_both_have_is_each_ones_own(neighbour: Neighbour) -> None:
    world = World()
    path = "/workflows/refund/versions/9"
    version = json.loads(neighbour.routes.valid(("PUT", "/workflows/{workflow}/versions/{version}")))
    before = entries(neighbour.world)
    assert Http(world.secret).send("PUT", path, version).status_code == 201
    theirs = Http(neighbour.world.secret).get("/workflows/refund/versions").json()
    assert "9" not in [row["version"] for row in theirs["versions"]]
    refused = Http(neighbour.world.secret).post("/runs", start_body(version="9"), key="nine")
    assert refused.status_code in (404, 422) and entries(neighbour.world) == before
