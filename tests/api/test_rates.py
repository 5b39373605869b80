"""A key that calls too often is told when to ask again; what it did meanwhile is never lost."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.domain.identity import Scope
from ledger.services import identity
from tests.api.conftest import Http, claim_body, entries, refused, start_body
from tests.world import World


@pytest.fixture
def limited(settings: Any) -> None:
    """Two calls, and hardly any more in the time that a test takes."""
    settings.RESUMEAPP_REQUESTS_PER_MINUTE, settings.RESUMEAPP_REQUESTS_AT_ONCE = 1, 2


def test_a_key_beyond_its_rate_is_refused_with_the_time_to_wait_and_nothing_is_written(
    world: World, http: Http, limited: None
) -> None:
    assert http.post("/runs", start_body(), key="k").status_code == 201
    assert http.get("/runs").status_code == 200
    before = entries(world)
    response = http.post("/runs", start_body(), key="other")
    document = refused(response, 429, "rate-limited")
    assert 0 < int(response["Retry-After"]) <= 60 and document["facts"] == {"retry_after": int(response["Retry-After"])}
    assert entries(world) == before


def test_each_key_has_a_rate_of_its_own_and_another_scope_is_still_refused_as_such(world: World, limited: None) -> None:
    first = Http(world.secret)
    for _ in range(2):
        assert first.get("/runs").status_code == 200
    refused(first.get("/runs"), 429, "rate-limited")
    issued = identity.issue_key(world.admin, "k", (Scope.RUNS_READ,), workflows=["*"], agent_id=world.agent_id)
    second = Http(issued.secret)
    refused(second.post("/runs", start_body(), key="k"), 403, "scope-missing")
    assert second.get("/runs").status_code == 200


def test_a_sign_of_life_is_never_refused_for_coming_too_often(world: World, http: Http, limited: None) -> None:
    assert http.post("/runs/claim", claim_body()).status_code == 204
    worker = claim_body()["worker"]["id"]
    for _ in range(5):
        assert http.post("/heartbeat", {"worker": worker, "runs": []}).status_code == 200
    assert http.post("/runs/claim", claim_body()).status_code == 204
    refused(http.post("/runs/claim", claim_body()), 429, "rate-limited")


def test_without_a_limit_nothing_is_counted(http: Http) -> None:
    assert {http.get("/runs").status_code for _ in range(10)} == {200}
