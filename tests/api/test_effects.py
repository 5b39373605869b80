"""The effect protocol over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.api.conftest import Http, commit_body, entries, proposal, refused
from tests.clock import Clock
from tests.world import World


class Held:
    """A claimed run that may use tools without asking, with its effect `pay` proposed."""

    def __init__(self, http: Http) -> None:
        self.http = http
        self.run_id: UUID = http.start()
        self.packet = http.claim(lease_seconds=60)
        self.fence = self.packet["fence"]

    def propose(self, key: str = "p", **fields: Any) -> Any:
        body = {"fence": self.fence, "expect_seq": 1, **proposal(**fields)}
        return self.http.post(f"/runs/{self.run_id}/effects", body, key=key)

    def permit(self, effect_id: str) -> Any:
        return self.http.post(f"/effects/{effect_id}/permit", {"fence": self.fence})

    def settle(self, effect_id: str, outcome: str, attempt: int = 1, **fields: Any) -> Any:
        body = {"fence": self.fence, "attempt": attempt, "outcome": outcome, **fields}
        return self.http.post(f"/effects/{effect_id}/settle", body)


@pytest.fixture
def held(http: Http) -> Held:
    return Held(http)


def test_a_proposal_that_is_half_is_refused(world: World, http: Http, held: Held) -> None:
    before = entries(world)
    body = {"fence": held.fence, "expect_seq": 1, "name": "pay"}
    document = refused(http.post(f"/runs/{held.run_id}/effects", body, key="p"), 422, "invalid")
    assert document["facts"]["fields"] == ["$.tool", "$.target", "$.request"]
    refused(http.post(f"/runs/{held.run_id}/effects", {**body, **proposal()}), 400, "key-required")
    refused(held.propose(target="moon"), 422, "target-unknown")
    assert entries(world) == before


def test_the_same_name_with_another_request_is_refused(world: World, held: Held) -> None:
    first = held.propose()
    assert first.status_code == 201 and first.json()["seq"] == 2
    before = entries(world)
    body = {"fence": held.fence, "expect_seq": 2, **proposal(request={"text": "another"})}
    refused(held.http.post(f"/runs/{held.run_id}/effects", body, key="q"), 409, "effect-differs")
    refused(held.propose(request={"text": "another"}), 422, "key-reused")
    assert entries(world) == before
    again = held.propose()
    assert again.status_code == 200 and again.json()["id"] == first.json()["id"]
    assert again["Idempotency-Replayed"] == "true"


def test_a_stale_fence_gets_no_permit(world: World, held: Held) -> None:
    effect_id = held.propose().json()["id"]
    before = entries(world)
    refused(held.http.post(f"/effects/{effect_id}/permit", {"fence": "0.9"}), 409, "stale-fence")
    refused(held.http.post(f"/effects/{uuid4()}/permit", {"fence": held.fence}), 404, "not-found")
    assert entries(world) == before


def test_a_permit_that_the_transition_does_not_allow_is_refused(held: Held) -> None:
    effect_id = held.propose().json()["id"]
    response = held.permit(effect_id)
    assert response.status_code in (403, 409) and response.json()["remedy"]


def test_an_end_with_an_open_proposal_withdraws_it(held: Held) -> None:
    effect_id = held.propose().json()["id"]
    packet = {**held.packet, "checkpoint": {"seq": 2}}
    body = commit_body(packet, "complete")
    made = held.http.post(f"/runs/{held.run_id}/checkpoints", body, key="k")
    assert made.status_code == 201, made.content
    assert held.http.get(f"/effects/{effect_id}").json()["state"] == "withdrawn"


def test_withdrawn_effects_are_listed_by_state(held: Held) -> None:
    effect_id = held.propose().json()["id"]
    withdrawn = held.http.post(f"/effects/{effect_id}/withdraw", {"fence": held.fence})
    assert (withdrawn.status_code, withdrawn.json()["state"]) == (200, "withdrawn")
    listed = held.http.get(f"/effects?run={held.run_id}&state=withdrawn").json()
    assert listed == {"effects": [held.http.get(f"/effects/{effect_id}").json()], "next": ""}
    assert held.http.get(f"/effects?run={held.run_id}&state=proposed").json()["effects"] == []
    refused(held.http.get("/effects?state=lost"), 422, "invalid")


def test_a_bad_settle_is_refused(world: World, held: Held, clock: Clock) -> None:
    effect_id = held.propose().json()["id"]
    before = entries(world)
    refused(held.settle(effect_id, "perhaps"), 422, "invalid")
    refused(held.settle(effect_id, "committed", attempt=0), 422, "invalid")
    refused(held.settle(effect_id, "failed", cause="bad-luck"), 422, "invalid")
    assert entries(world) == before
