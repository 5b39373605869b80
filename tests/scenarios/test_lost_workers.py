"""Workers that die, oversleep and come back, over HTTP with the payment service's own log as the judge."""

from __future__ import annotations

import http.client
from contextlib import closing
from typing import Any

import pytest
from resumeapp_client.effects import as_proposal, differs
from resumeapp_client.records import Packet

from approvals.models import ApprovalRequest
from ledger.services import leases
from tests.api.conftest import claim_body
from tests.clock import Clock
from tests.patience import until
from tests.sandbox.process import Caller
from tests.scenarios.story import PAY, Json, Story, waiting
from tests.ui.asking import client_of, decide

ALLOW = ({"tool": "*", "verdict": "allow"},)


def issuing(story: Story, **lease: Any) -> Json:
    """A run in `issue` in a worker's hands, with a refund that needs no leave proposed; the effect."""
    story.world.policy(ALLOW)
    story.begin()
    made = story.commit({"kind": "give_back", "transition": "issue"}, propose=[PAY])
    assert story.wake() == "resume"
    story.claim(**lease)
    effect: Json = made["effects"]["pay"]
    return effect


def test_a_worker_that_outslept_its_lease_is_refused_and_its_refund_is_found_and_not_repeated(
    story: Story, clock: Clock
) -> None:
    effect = issuing(story, lease_seconds=30)
    stale = story.packet
    given = story.permit(effect["id"])["permit"]
    paid = story.pay(given)
    clock.shift(31)
    story.sweep()
    assert story.effect()["state"] in ("unknown", "committed")
    late = story.settle(effect["id"], "failed", packet=stale, cause="rejected")
    assert late["counted"] is False, "a stale worker's failure never counts"
    clock.shift(60)
    story.sweep()
    story.sweep()
    assert (story.effect()["state"], story.effect()["reference"]) == ("committed", paid.body["id"])
    assert story.run()["status"] == "ready"
    packet = story.claim("2")
    assert packet["fence"] != stale["fence"] and packet["effects"]["pay"]["state"] == "committed"
    refused = story.commit("complete", packet=stale, status=409)
    assert refused["code"] == "stale-fence" and story.run()["status"] == "running"
    again = story.settle(effect["id"], "committed", packet=stale, reference=paid.body["id"])
    assert again["counted"] is False and again["effect"]["state"] == "committed"
    assert story.commit("complete")["status"] == "completed"
    assert story.counted(effect["key"]) == (1, 1) and story.intact()


def test_a_worker_that_died_while_the_run_says_running_is_followed_under_a_higher_fence(
    story: Story, clock: Clock
) -> None:
    first = story.begin(lease_seconds=30)
    assert story.run()["status"] == "running"
    assert story.http.post("/runs/claim", claim_body("1", "2", limit=5)).status_code == 204, "it is still held"
    clock.shift(31)
    story.sweep()
    second = story.claim("2")
    counts = [int(packet["fence"].split(".")[1]) for packet in (first, second)]
    assert counts[1] > counts[0] and second["checkpoint"] == first["checkpoint"]
    assert story.commit("complete")["status"] == "completed" and story.intact()


def test_a_worker_that_slept_until_the_run_had_ended_elsewhere_changes_nothing(story: Story, clock: Clock) -> None:
    stale = story.begin(lease_seconds=30)
    clock.shift(3 * 3_600)
    story.sweep()
    story.claim("2")
    assert story.commit("complete")["status"] == "completed"
    before = story.http.get(f"/runs/{story.run_id}/journal").json()
    body = {"fence": stale["fence"], "expect_seq": stale["checkpoint"]["seq"], **PAY}
    assert story.post(f"/runs/{story.run_id}/effects", body, status=409)["code"] == "stale-fence"
    assert story.commit("go_on", packet=stale, status=422)["code"] == "invalid"
    assert story.commit({"kind": "go_on", "transition": "think"}, packet=stale, status=409)["code"] == "stale-fence"
    beat = {"worker": "00000000-0000-4000-8000-000000000001", "runs": [_held(story, stale)]}
    assert story.post("/heartbeat", beat)["runs"][0]["directive"] == "stop"
    assert story.http.get(f"/runs/{story.run_id}/journal").json() == before
    assert (
        story.run()["status"] == "completed" and story.http.get(f"/effects?run={story.run_id}").json()["effects"] == []
    )


def _held(story: Story, packet: Json) -> Json:
    return {"run": str(story.run_id), "fence": packet["fence"]}


def test_a_caller_that_gives_up_on_a_slow_service_never_sends_twice(story: Story, clock: Clock) -> None:
    effect = issuing(story)
    story.shop.arm("slow", seconds=1)
    given = story.permit(effect["id"])["permit"]
    with closing(http.client.HTTPConnection(story.service.host, timeout=0.3)) as impatient, pytest.raises(TimeoutError):
        story.pay(given, Caller(impatient))
    for _ in range(3):
        again = story.permit(effect["id"])["permit"]
        assert (again["attempt"], again["key"]) == (1, given["key"])
    assert story.settle(effect["id"], "unknown")["effect"]["state"] == "unknown"
    for _ in range(3):
        assert story.permit(effect["id"], status=409)["code"] == "wrong-state"
    clock.shift(15)
    story.sweep()
    assert story.effect()["state"] in ("unknown", "committed"), "absence is believed late, never at the first look"
    until(lambda: story.counted(effect["key"]) == (1, 1), "the slow service to have paid")
    for _ in range(40):
        if story.effect()["state"] == "committed":
            break
        clock.shift(15)
        story.sweep()
    assert story.effect()["state"] == "committed" and story.effect()["key"] == effect["key"]
    assert story.counted(effect["key"]) == (1, 1) and story.intact()


@pytest.mark.parametrize("gone", ["killed", "gave it back"])
def test_what_was_done_before_a_run_was_resumed_twice_is_not_done_again(gone: str, story: Story, clock: Clock) -> None:
    effect = issuing(story)
    paid = story.pay(story.permit(effect["id"])["permit"])
    story.settle(effect["id"], "committed", reference=paid.body["id"], result=paid.body)
    for _ in range(2):
        if gone == "killed":
            clock.shift(61)
            assert leases.lapse(story.run_id)
        else:
            story.post(f"/runs/{story.run_id}/release", {"fence": story.packet["fence"]})
        clock.shift(5)
        assert story.wake() == "resume"
        packet = story.claim("2")
        assert packet["effects"]["pay"]["result"] == paid.body, "the next worker reads the result from the ledger"
        body = {"fence": packet["fence"], "expect_seq": packet["checkpoint"]["seq"], **PAY}
        assert story.post(f"/runs/{story.run_id}/effects", body, status=200)["id"] == effect["id"]
        assert story.permit(effect["id"], status=409)["code"] == "wrong-state"
    made = story.commit(waiting({"kind": "event", "type": "shipped"}, then="think"))
    assert made["status"] == "waiting"
    story.event()
    assert story.wake() == "resume"
    story.claim("2")
    assert story.commit("complete")["status"] == "completed"
    assert story.counted(effect["key"]) == (1, 1) and story.intact()


def test_a_call_and_the_wait_that_follows_it_are_one_commit_and_no_resume_repeats_the_call(
    story: Story, clock: Clock
) -> None:
    effect = issuing(story)
    paid = story.pay(story.permit(effect["id"])["permit"])
    report = {"effect": effect["id"], "attempt": 1, "outcome": "committed", "reference": paid.body["id"]}
    story.commit(waiting({"kind": "event", "type": "shipped"}, then="think"), settle=[report])
    story.event()
    assert story.wake() == "resume"
    for _ in range(2):
        packet = story.claim("1", "2", lease_seconds=30)
        assert packet["transition"] == "think"
        assert story.permit(effect["id"], status=409)["code"] in ("wrong-state", "wrong-instance")
        clock.shift(31)
        story.sweep()
    assert story.counted(effect["key"]) == (1, 1)


def test_approving_one_call_is_no_leave_for_another_of_the_same_tool_in_the_same_run(story: Story) -> None:
    other = {**PAY, "name": "again", "request": {**PAY["request"], "amount_minor": 9_900}}
    story.begin()
    members = [{"kind": "approval", "effect": name} for name in ("pay", "again")]
    made = story.commit(waiting(*members, mode="all"), propose=[PAY, other])
    rows = ApprovalRequest.objects.of(story.world.tenant).filter(run_id=story.run_id)
    assert len({bytes(row.digest) for row in rows}) == 2
    first = rows.get(subject_id=made["effects"]["pay"]["id"])
    assert decide(client_of(story.world.alice), story.world, first, "approve").status_code == 302
    assert story.run()["status"] == "waiting", "the other one still has to be decided"
    second = rows.get(subject_id=made["effects"]["again"]["id"])
    assert decide(client_of(story.world.bob), story.world, second, "deny", "too much").status_code == 302
    assert story.wake() == "resume"
    story.claim()
    assert story.permit(made["effects"]["again"]["id"], status=409)["code"] == "wrong-state"
    assert story.permit(made["effects"]["pay"]["id"])["effect"]["state"] == "in_flight"
    body = {"fence": story.packet["fence"], "expect_seq": story.run()["seq"], **PAY, "name": "third"}
    third = story.post(f"/runs/{story.run_id}/effects", body)
    assert story.permit(third["id"], status=403)["code"] in ("grant-missing", "not-permitted")


def test_leave_for_one_call_is_none_for_another_of_the_same_tool(story: Story) -> None:
    story.begin()
    other = {**PAY, "name": "again", "request": {**PAY["request"], "amount_minor": 9_900}}
    story.commit(waiting({"kind": "approval", "effect": "pay"}), propose=[PAY, other])
    rows = ApprovalRequest.objects.of(story.world.tenant).filter(run_id=story.run_id)
    assert decide(client_of(story.world.alice), story.world, rows.get(), "approve").status_code == 302
    assert story.wake() == "ask_again", "the leave for the one was taken for the other's"
    assert [row.state for row in rows.order_by("opened_at")] == ["approved", "pending"]


def test_the_next_worker_accounts_for_a_call_by_its_tool_s_digest_too(story: Story, clock: Clock) -> None:
    story.world.policy(ALLOW)
    story.begin()
    proposal = {**PAY, "tool_digest": "v1"}
    asked = {"fence": story.packet["fence"], "expect_seq": story.packet["checkpoint"]["seq"], **proposal}
    story.post(f"/runs/{story.run_id}/effects", asked)
    clock.shift(61)
    story.sweep()
    story.claim()
    recorded = Packet.model_validate(story.packet).effects["pay"]
    again = as_proposal(recorded)
    assert again == proposal and differs(recorded, {**again, "tool_digest": "v2"}) and not differs(recorded, again)
    asked = {"fence": story.packet["fence"], "expect_seq": story.packet["checkpoint"]["seq"], **again}
    assert story.post(f"/runs/{story.run_id}/effects", asked)["id"] == recorded.id
