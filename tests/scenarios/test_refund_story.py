"""A refund from its proposal to its receipt, told through the doors that agents, people and the payment service use."""

from __future__ import annotations

import pytest

from ledger.domain.workflows import VersionSpec
from ledger.models import Grant
from ledger.services import workflows
from tests.api.conftest import claim_body
from tests.clock import Clock
from tests.documents import SCHEMA, TRANSITIONS
from tests.scenarios.story import APPROVAL, PAY, Story, waiting
from tests.world import World


def test_a_refund_waits_for_a_person_and_is_paid_once_by_newer_code(story: Story, world: World, clock: Clock) -> None:
    effect = story.ask()
    assert effect["state"] == "proposed" and effect["observed_version"] == '"v1"'
    assert story.http.post("/runs/claim", claim_body("1", "2")).status_code == 204, "nobody may go on"
    clock.shift(3_600)
    story.approve()
    assert story.run()["status"] == "waking" and story.wake() == "resume"
    packet = story.claim("2")
    assert (packet["transition"], packet["version"]) == ("issue", "2")
    assert [member["outcome"] for member in packet["wait"]["members"]] == ["approved"]
    assert packet["decision"]["decision"] == "resume" and packet["effects"]["pay"]["key"] == effect["key"]
    given = story.permit(effect["id"])
    assert given["effect"]["state"] == "in_flight" and given["permit"]["precondition"] == '"v1"'
    paid = story.pay(given["permit"])
    assert paid.status == 201
    settled = story.settle(effect["id"], "committed", reference=paid.body["id"], result=paid.body)
    assert settled["counted"] is True
    assert story.commit("complete")["status"] == "completed"
    assert story.effect()["reference"] == paid.body["id"]
    assert story.counted(effect["key"]) == (1, 1) and story.intact()


# The world moves --------------------------------------------------------------------------------


def test_an_order_that_moved_is_asked_about_again_and_the_card_says_what_changed(story: Story, world: World) -> None:
    effect = story.ask()
    old_page = story.card(world.bob)
    story.approve()
    story.move_order(11_000)
    assert story.wake() == "ask_again"
    assert story.run()["status"] == "waiting" and story.last_wait()["internal"] == "ask_again"
    assert [grant.state for grant in Grant.objects.of(world.tenant).filter(run_id=story.run_id)] == ["voided"]
    assert (story.request.state, story.request.revision) == ("pending", 2)
    page = story.card(world.alice)
    assert (
        "amount_minor was 120.00 EUR (12000) and is 110.00 EUR (11000)" in page
        and "Unchanged since it was asked again" in page
    )
    stale = story.decide(world.bob, "approve", page=old_page)
    assert stale.status_code == 412 and story.request.state == "pending"
    story.approve()
    assert story.wake() == "resume"
    story.claim("2")
    given = story.permit(effect["id"])
    assert given["permit"]["precondition"] == '"v2"' and story.pay(given["permit"]).status == 201
    assert story.counted(effect["key"]) == (1, 1) and story.intact()


def test_an_order_that_moved_is_planned_anew_where_its_transition_says_so(story: Story, world: World) -> None:
    moved = {**TRANSITIONS, "issue": {**TRANSITIONS["issue"], "on_conflict": ["replan", "assess"]}}
    workflows.register(world.caller, "refund", "3", VersionSpec(SCHEMA, "assess", moved, ("1", "2")))
    effect = story.ask(version="3")
    story.approve()
    story.move_order()
    assert story.wake() == "replan"
    packet = story.claim("3")
    assert packet["transition"] == "assess" and packet["decision"]["decision"] == "replan"
    gone = story.http.get(f"/effects/{effect['id']}").json()
    assert (gone["state"], gone["cause"]) == ("withdrawn", "superseded")
    assert story.permit(effect["id"], status=409)["code"] == "wrong-state"
    made = story.commit(waiting(APPROVAL), propose=[{**PAY, "request": {**PAY["request"], "amount_minor": 900}}])
    again = made["effects"]["pay"]
    assert again["key"] != effect["key"] and again["observed_version"] == '"v2"'
    assert story.request.state == "pending", "the old approval is no leave for the new plan"
    assert story.counted(effect["key"]) == (0, 0) and story.intact()


def test_an_order_that_moves_after_the_wake_stops_the_call_at_the_target(story: Story, world: World) -> None:
    effect = story.ask()
    story.approve()
    assert story.wake() == "resume"
    story.claim("2")
    given = story.permit(effect["id"])
    story.move_order()
    assert story.pay(given["permit"]).status == 412
    settled = story.settle(effect["id"], "failed", cause="rejected")
    assert (settled["effect"]["state"], settled["effect"]["cause"]) == ("failed", "rejected")
    assert story.permit(effect["id"], status=409)["code"] == "wrong-state", "a refused call is not tried again"
    assert story.counted(effect["key"])[1] == 0


# What the agent is told ---------------------------------------------------------------------------


def told(story: Story) -> tuple[str, str, str]:
    """(the approval's outcome, the effect's state, its cause) in the packet of the next worker."""
    packet = story.claim("1", "2")
    member = next(each for each in packet["wait"]["members"] if each["kind"] == "approval")
    effect = packet["effects"]["pay"]
    return member["outcome"], effect["state"], effect["cause"]


def denied(story: Story, clock: Clock) -> None:
    assert story.decide(story.world.alice, "deny", "the photos show a working lamp").status_code == 302


def expired(story: Story, clock: Clock) -> None:
    clock.shift(601)
    story.sweep()


def event_came_first(story: Story, clock: Clock) -> None:
    assert story.event()["status"] == "matched"


ENDINGS = {
    "denied": (denied, ("denied", "withdrawn", "denied")),
    "expired": (expired, ("expired", "withdrawn", "expired")),
    "withdrawn": (event_came_first, ("", "withdrawn", "superseded")),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_became_of_an_approval_is_told_apart_and_none_of_it_is_leave(
    ending: str, story: Story, clock: Clock
) -> None:
    end, expected = ENDINGS[ending]
    story.world.policy(({"tool": "payments.*", "verdict": "approve", "group": "approvers", "decide_by": 600},))
    effect = story.ask(waiting(APPROVAL, {"kind": "event", "type": "shipped"}))
    page = story.card(story.world.bob)
    end(story, clock)
    if story.run()["status"] == "waking":
        assert story.wake() == "resume"
    assert told(story) == expected
    late = story.decide(story.world.bob, "approve", page=page)
    assert late.status_code in (409, 410) and story.request.state == ending
    assert story.permit(effect["id"], status=409)["code"] == "wrong-state"
    assert story.counted(effect["key"]) == (0, 0) and story.intact()
