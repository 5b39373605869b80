"""A plan that is made anew repeats nothing of what was done under the old one: counted at the payment service itself."""

from __future__ import annotations

import html
from typing import Any

import pytest

from approvals.models import ApprovalRequest
from ledger.domain.workflows import VersionSpec
from ledger.services import leases, workflows
from tests.clock import Clock
from tests.documents import SCHEMA
from tests.scenarios.story import APPROVAL, PAY, Story, waiting
from tests.ui.asking import address, client_of, form_of
from tests.world import World

FEE: dict[str, Any] = {**PAY, "name": "fee", "request": {**PAY["request"], "amount_minor": 200}}
ISSUE = {"kind": "go_on", "transition": "issue"}
AGAIN = {"kind": "give_back", "transition": "assess"}
FEES = {"kind": "go_on", "transition": "fees"}


@pytest.fixture(autouse=True)
def plans(world: World) -> None:
    """Version 3 plans anew when the order moved, from either of its two transitions that call; its calls need no leave."""
    anew = {"targets": ["payments"], "tools": [], "on_conflict": ["replan", "assess"]}
    transitions = {"assess": {"targets": [], "tools": []}, "issue": anew, "fees": anew}
    workflows.register(world.caller, "refund", "3", VersionSpec(SCHEMA, "assess", transitions, ("1", "2")))
    world.policy(({"tool": "*", "verdict": "allow"},))


def amounts(story: Story) -> list[int]:
    """Every refund that the service applied under a key of ours, whichever."""
    keys = story.shop.call("GET", "/_control/applied").body["keys"]
    return sorted(
        amount for key, of in keys.items() if key.startswith("ra_") and of["applied"] for amount in of["amounts"]
    )


def again(story: Story) -> dict[str, Any]:
    """The run in the hands of its next worker; what that is told of effects."""
    assert story.wake() == "resume"
    effects: dict[str, Any] = story.claim("3")["effects"]
    return effects


def release(story: Story) -> None:
    story.post(f"/runs/{story.run_id}/release", {"fence": story.packet["fence"]})


def accept(story: Story, name: str = "pay") -> dict[str, Any]:
    """Say that one knows what became of an effect."""
    return story.post(f"/runs/{story.run_id}/effects", {"fence": story.packet["fence"], "accept": name})


def half_done(story: Story) -> dict[str, Any]:
    """The refund is called, which moves the order, and the fee that rests on the same order isn't; the refund's effect."""
    story.begin("3")
    story.commit(ISSUE, propose=[PAY, FEE])
    again(story)
    pay = story.effect()
    assert story.pay(story.permit(pay["id"])["permit"]).status == 201
    return pay


def planned_anew(story: Story, state: str) -> None:
    """The wake plans anew, and the next worker is told what became of the refund."""
    assert story.wake() == "replan"
    assert carried(story.claim("3")["effects"]) == {"pay": (state, "assess", "issue")}


def carried(told: dict[str, Any]) -> dict[str, tuple[str, str, str]]:
    return {name: (each["state"], each["carried_from"], each["carried_to"]) for name, each in told.items()}


def answered(story: Story, pay: dict[str, Any], state: str) -> None:
    """The recorded refund keeps its name and key, in this transition and in the one that calls: the agent takes it, and nothing else has its name."""
    refused = story.commit(ISSUE, propose=[PAY, FEE], status=409)
    assert (refused["code"], refused["facts"]["effect"]) == ("effect-carried", pay["id"])
    assert (accept(story)["key"], accept(story)["state"]) == (pay["key"], state)
    fee = story.commit(ISSUE, propose=[FEE])["effects"]["fee"]
    told = again(story)
    assert told["pay"]["id"] == pay["id"]
    assert story.permit(pay["id"], status=409)["code"] == "wrong-state"
    assert story.permit(fee["id"], status=409)["code"] == "effects-unaccounted"
    accept(story)
    assert story.pay(story.permit(fee["id"])["permit"]).status == 201
    story.settle(fee["id"], "committed", reference="r2")
    assert story.commit("complete")["status"] == "completed"
    assert amounts(story) == [200, 1500] and story.intact()


def test_what_was_committed_before_the_order_moved_is_not_paid_again(story: Story) -> None:
    pay = half_done(story)
    story.settle(pay["id"], "committed", reference="r1", result={"id": "r1"})
    release(story)
    planned_anew(story, "committed")
    answered(story, pay, "committed")


def test_what_was_accepted_and_is_still_out_is_not_paid_again(story: Story, clock: Clock) -> None:
    pay = half_done(story)
    story.settle(pay["id"], "accepted", reference="r1", ask_after_seconds=60)
    release(story)
    planned_anew(story, "in_flight")
    assert story.commit(ISSUE, propose=[PAY, FEE], status=409)["code"] == "effect-carried"
    assert (accept(story)["id"], accept(story)["state"]) == (pay["id"], "in_flight")
    story.commit(ISSUE, propose=[FEE])
    assert again(story)["pay"]["id"] == pay["id"]
    assert story.permit(pay["id"], status=409)["code"] == "wrong-state"
    release(story)
    clock.shift(90)
    story.sweep()
    assert story.effect()["state"] == "committed", "its reconciler went on with it"
    assert amounts(story) == [1500] and story.intact()


def test_what_nobody_knew_is_looked_up_before_the_plan_is_made_anew(story: Story, clock: Clock) -> None:
    pay = half_done(story)
    clock.shift(100)
    assert leases.lapse(story.run_id)
    assert story.effect()["state"] == "unknown" and story.wake() == "reconcile"
    clock.shift(5)
    for _ in range(3):
        story.sweep()
    told = story.claim("3")["effects"]
    assert story.run()["transition"] == "assess", "planned anew"
    assert carried(told) == {"pay": ("committed", "assess", "issue")}
    answered(story, pay, "committed")


def test_what_an_earlier_transition_of_the_plan_did_is_not_done_again(story: Story) -> None:
    story.begin("3")
    story.commit(ISSUE, propose=[PAY])
    again(story)
    pay = story.effect()
    story.pay(story.permit(pay["id"])["permit"])
    story.settle(pay["id"], "committed", reference="r1")
    story.commit(FEES, propose=[FEE])
    story.move_order(9_000)
    planned_anew(story, "committed")
    assert story.commit(ISSUE, propose=[PAY], status=409)["facts"]["key"] == pay["key"]
    accept(story)
    story.commit(ISSUE)
    assert again(story)["pay"]["id"] == pay["id"] and amounts(story) == [1500]


def test_another_name_is_refused_until_what_was_done_is_accounted_for(story: Story) -> None:
    pay = half_done(story)
    story.settle(pay["id"], "committed", reference="r1")
    release(story)
    planned_anew(story, "committed")
    refused = story.commit(ISSUE, propose=[{**PAY, "name": "refund-again"}], status=409)
    assert refused["code"] == "effects-unaccounted" and refused["facts"]["effects"] == ["pay"]
    other = {**PAY, "request": {**PAY["request"], "amount_minor": 900}}
    told = story.commit(ISSUE, propose=[other], status=409)
    assert told["code"] == "effect-differs" and "accept it" in told["remedy"] and "another name" in told["remedy"]


def test_a_wait_for_leave_for_what_was_done_is_met_by_what_became_of_it_and_is_leave_for_nothing_else(
    story: Story, world: World
) -> None:
    pay = half_done(story)
    story.settle(pay["id"], "committed", reference="r1")
    release(story)
    planned_anew(story, "committed")
    world.policy(({"tool": "payments.*", "verdict": "approve", "group": "approvers"},))
    assert story.commit(waiting(APPROVAL), status=409)["code"] == "effects-unaccounted"
    accept(story)
    other = {**PAY, "name": "other"}
    story.commit(waiting(APPROVAL), propose=[other])
    assert story.wake() == "ask_again", "nobody gave leave for the other one"
    members = story.http.get(f"/runs/{story.run_id}/waits").json()["waits"][1]["members"]
    assert [(each["effect"], each["outcome"]) for each in members] == [(pay["id"], "committed")]
    assert amounts(story) == [1500]


def test_once_its_transition_has_come_round_again_the_name_is_free(story: Story) -> None:
    pay = half_done(story)
    story.settle(pay["id"], "committed", reference="r1")
    release(story)
    planned_anew(story, "committed")
    story.commit(ISSUE)
    again(story)
    story.commit(AGAIN)
    assert carried(again(story)) == {"pay": ("committed", "assess", "issue")}, "nobody there said that they knew of it"
    story.commit(ISSUE)
    again(story)
    accept(story)
    story.commit(AGAIN)
    assert again(story) == {}
    second = story.commit(ISSUE, propose=[PAY])["effects"]["pay"]
    assert second["key"] != pay["key"] and second["state"] == "proposed"


def test_what_is_still_out_of_an_instance_that_was_left_is_told_beside_the_names_of_the_present_one(
    story: Story,
) -> None:
    story.begin("3")
    story.commit(ISSUE, propose=[PAY])
    again(story)
    pay = story.effect()
    story.pay(story.permit(pay["id"])["permit"])
    story.settle(pay["id"], "accepted", reference="r1", ask_after_seconds=3_600)
    story.commit({"kind": "give_back", "transition": "issue"})
    assert again(story) == {} and [each["id"] for each in story.packet["earlier"]] == [pay["id"]]
    second = story.commit({"kind": "give_back", "transition": "issue"}, propose=[PAY])["effects"]["pay"]
    assert again(story)["pay"]["id"] == second["id"] != pay["id"], "neither hides the other"
    assert [each["id"] for each in story.packet["earlier"]] == [pay["id"]]
    text = story.http.get(f"/runs/{story.run_id}/resume-packet.md").content.decode()
    assert text.count("of an earlier instance") == 1


@pytest.fixture
def asked_of_people(world: World) -> None:
    world.policy(({"tool": "payments.*", "verdict": "approve", "group": "approvers"},))


def paid_with_leave(story: Story, world: World, outcome: str, **said: Any) -> None:
    """The refund is approved and called, the order moved with it, and the agent is to plan anew."""
    story.begin("3")
    both = [APPROVAL, {**APPROVAL, "effect": "fee"}]
    story.commit(waiting(*both, mode="all"), propose=[PAY, FEE])
    for asked in ApprovalRequest.objects.of(world.tenant).filter(run_id=story.run_id):
        alice, card = client_of(world.alice), address(world, asked)
        form = {**form_of(alice.get(card).content.decode()), "decision": "approve", "reason": ""}
        assert alice.post(address(world, asked, "approval_decide"), form).status_code == 302
    again(story)
    pay = story.effect()
    story.pay(story.permit(pay["id"])["permit"])
    story.settle(pay["id"], outcome, reference="r1", **said)
    release(story)
    assert story.wake() == "replan"
    story.claim("3")


@pytest.mark.usefixtures("asked_of_people")
@pytest.mark.parametrize(
    ("outcome", "said", "told"),
    [
        ("committed", {}, "reference r1: this would be a second one."),
        (
            "accepted",
            {"ask_after_seconds": 3_600},
            "Its call was made, and its outcome isn’t settled: this may be a second one.",
        ),
    ],
)
def test_the_card_of_a_second_call_says_first_that_the_first_was_made(
    story: Story, world: World, outcome: str, said: dict[str, Any], told: str
) -> None:
    paid_with_leave(story, world, outcome, **said)
    second = {**PAY, "name": "second"}
    assert accept(story)["state"] in ("committed", "in_flight")
    story.commit(waiting({**APPROVAL, "effect": "second"}), propose=[second])
    card = html.unescape(story.card(world.bob))
    above = card.split('class="card again"')[1].split("</section>")[0]
    assert "It was approved by" in above and told in above
    assert "no longer holds" not in above and "High risk" in card
