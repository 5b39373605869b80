"""The effect protocol over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest

from ledger.engine import wakes
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

    def propose(self, key: str = "p", expect_seq: int = 1, **fields: Any) -> Any:
        body = {"fence": self.fence, "expect_seq": expect_seq, **proposal(**fields)}
        return self.http.post(f"/runs/{self.run_id}/effects", body, key=key)

    def commit_with(self, effect: dict[str, Any]) -> Any:
        path = f"/runs/{self.run_id}/checkpoints"
        return self.http.post(path, commit_body(self.packet, propose=[effect]), key=str(uuid4()))

    def permit(self, effect_id: str) -> Any:
        return self.http.post(f"/effects/{effect_id}/permit", {"fence": self.fence})

    def settle(self, effect_id: str, outcome: str, attempt: int = 1, **fields: Any) -> Any:
        body = {"fence": self.fence, "attempt": attempt, "outcome": outcome, **fields}
        return self.http.post(f"/effects/{effect_id}/settle", body)


@pytest.fixture
def held(http: Http) -> Held:
    return Held(http)


@pytest.mark.parametrize("field", ["name", "tool"])
@pytest.mark.parametrize(
    "text", ["refund for Ada Lovelace", "Erstattung für Ada", "ada@example.org", "-pay", " ", "pay\n"]
)
def test_an_effect_is_named_by_codes_since_no_journal_forgets(
    world: World, http: Http, held: Held, field: str, text: str
) -> None:
    before = entries(world)
    for answer in (held.propose(**{field: text}), held.commit_with(proposal(**{field: text}))):
        document = refused(answer, 422, "invalid")
        assert field in document["detail"] and "letters, digits" in document["remedy"]
        assert text not in answer.content.decode() or not text.strip()
    assert entries(world) == before


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


# A transition that may touch targets ------------------------------------------------------------------


@pytest.fixture
def cleared(http: Http) -> Held:
    """The run in its transition `issue`, cleared by a wake and claimed again, with the tool's use allowed by the policy."""
    held = Held(http)
    body = commit_body(held.packet, next={"kind": "give_back", "transition": "issue"})
    assert http.post(f"/runs/{held.run_id}/checkpoints", body, key="assess").status_code == 201
    assert wakes.run(held.run_id) == "resume"
    held.packet = http.claim(lease_seconds=60)
    held.fence = held.packet["fence"]
    assert held.packet["transition"] == "issue" and held.packet["decision"]["decision"] == "resume"
    return held


def permitted(held: Held) -> dict[str, Any]:
    """The answer to a permit for the effect `pay`, just proposed."""
    proposed = held.propose(expect_seq=2).json()
    response = held.permit(proposed["id"])
    assert response.status_code == 200, response.content
    answer: dict[str, Any] = response.json()
    return answer


def test_a_permit_carries_all_that_the_call_needs_and_the_servers_time(cleared: Held) -> None:
    answer = permitted(cleared)
    permit, effect = answer["permit"], answer["effect"]
    assert answer["now"] < permit["send_by"] < permit["answer_by"]
    assert permit["key"] == effect["key"] and permit["attempt"] == effect["attempt"] == 1
    assert permit["request"] == {"text": "hello"} and effect["state"] == "in_flight"
    again = cleared.permit(effect["id"]).json()
    assert again["permit"] == permit


def test_a_permit_asked_again_after_send_by_is_refused(world: World, cleared: Held, clock: Clock) -> None:
    effect_id = permitted(cleared)["effect"]["id"]
    before = entries(world)
    clock.shift(31)
    refused(cleared.permit(effect_id), 410, "send-by-passed")
    clock.shift(31)
    response = cleared.permit(effect_id)
    assert response.status_code == 410 and response.json()["code"] in ("lease-expired", "send-by-passed")
    assert entries(world) == before


def test_while_a_call_is_out_the_run_is_neither_released_nor_ended(world: World, http: Http, cleared: Held) -> None:
    permitted(cleared)
    before = entries(world)
    packet = {**cleared.packet, "checkpoint": {"seq": 3}}
    path = f"/runs/{cleared.run_id}/checkpoints"
    refused(http.post(f"/runs/{cleared.run_id}/release", {"fence": cleared.fence}), 409, "permit-out")
    refused(http.post(path, commit_body(packet), key="k"), 409, "permit-out")
    refused(http.post(path, commit_body(packet, "complete"), key="k"), 409, "effects-open")
    assert entries(world) == before


def test_a_settle_rides_in_a_commit_and_its_repeat_changes_nothing(world: World, http: Http, cleared: Held) -> None:
    effect_id = permitted(cleared)["effect"]["id"]
    report = {"effect": effect_id, "attempt": 1, "outcome": "committed", "reference": "n-1", "result": {"id": "n-1"}}
    packet = {**cleared.packet, "checkpoint": {"seq": 3}}
    made = http.post(f"/runs/{cleared.run_id}/checkpoints", commit_body(packet, "complete", settle=[report]), key="k")
    assert made.status_code == 201, made.content
    assert made.json()["effects"]["pay"]["state"] == "committed" and made.json()["status"] == "completed"
    assert made.json()["effects"]["pay"]["result"] == {"id": "n-1"}


def test_a_settle_counts_once_and_a_stale_word_is_evidence(world: World, cleared: Held) -> None:
    effect_id = permitted(cleared)["effect"]["id"]
    first = cleared.settle(effect_id, "committed", reference="n-1")
    assert first.json()["counted"] is True and first.json()["effect"]["reference"] == "n-1"
    before = entries(world)
    assert cleared.settle(effect_id, "committed", reference="n-1").json()["effect"] == first.json()["effect"]
    assert entries(world) == before
    other = cleared.settle(effect_id, "failed", cause="rejected")
    assert other.status_code == 200 and other.json()["counted"] is False
    assert other.json()["effect"]["state"] == "committed"


def test_the_next_owner_must_account_for_what_was_proposed(world: World, http: Http, cleared: Held) -> None:
    cleared.propose(expect_seq=2)
    assert http.post(f"/runs/{cleared.run_id}/release", {"fence": cleared.fence}).status_code == 204
    assert wakes.run(cleared.run_id) == "resume"
    packet = http.claim()
    assert packet["effects"]["pay"]["state"] == "proposed"
    before = entries(world)
    body = {"fence": packet["fence"], "expect_seq": 3, **proposal("other")}
    refused(http.post(f"/runs/{cleared.run_id}/effects", body, key="q"), 409, "effects-unaccounted")
    assert entries(world) == before


# Other refusals ---------------------------------------------------------------------------------------


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
