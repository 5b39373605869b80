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
    told = story.claim("3")["effects"]
    assert [(name, each["state"]) for name, each in told.items()] == [("pay", state)]


def answered(story: Story, pay: dict[str, Any], state: str) -> None:
    """The same name answers the recorded refund, in this transition and in the one that calls, and gets no second key."""
    made = story.commit(ISSUE, propose=[PAY, FEE])["effects"]
    assert (made["pay"]["id"], made["pay"]["key"], made["pay"]["state"]) == (pay["id"], pay["key"], state)
    told = again(story)
    assert told["pay"]["id"] == pay["id"]
    assert story.permit(pay["id"], status=409)["code"] == "wrong-state"
    story.post(f"/runs/{story.run_id}/effects", {"fence": story.packet["fence"], "accept": "pay"})
    fee = made["fee"]
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
    made = story.commit(ISSUE, propose=[PAY, FEE])["effects"]
    assert (made["pay"]["id"], made["pay"]["state"]) == (pay["id"], "in_flight")
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
    assert [(name, each["state"]) for name, each in told.items()] == [("pay", "committed")]
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
    made = story.commit(ISSUE, propose=[PAY])["effects"]["pay"]
    assert (made["id"], made["key"], made["state"]) == (pay["id"], pay["key"], "committed")
    assert again(story)["pay"]["id"] == pay["id"] and amounts(story) == [1500]


def test_another_name_is_refused_until_what_was_done_is_accounted_for(story: Story) -> None:
    pay = half_done(story)
    story.settle(pay["id"], "committed", reference="r1")
    release(story)
    planned_anew(story, "committed")
    refused = story.commit(ISSUE, propose=[{**PAY, "name": "refund-again"}], status=409)
    assert refused["code"] == "effects-unaccounted" and refused["facts"]["effects"] == ["pay"]
    other = {**PAY, "request": {**PAY["request"], "amount_minor": 900}}
    assert story.commit(ISSUE, propose=[other], status=409)["code"] == "effect-differs"


def test_a_wait_for_leave_for_what_was_done_is_met_by_what_became_of_it(story: Story) -> None:
    pay = half_done(story)
    story.settle(pay["id"], "committed", reference="r1")
    release(story)
    planned_anew(story, "committed")
    story.commit(waiting(APPROVAL), propose=[PAY])
    assert again(story)["pay"]["id"] == pay["id"]
    assert [each["outcome"] for each in story.packet["wait"]["members"]] == ["committed"]


def test_once_its_transition_has_come_round_again_the_name_is_free(story: Story) -> None:
    pay = half_done(story)
    story.settle(pay["id"], "committed", reference="r1")
    release(story)
    planned_anew(story, "committed")
    story.commit(ISSUE, propose=[PAY])
    again(story)
    story.commit({"kind": "give_back", "transition": "assess"})
    assert again(story) == {}
    second = story.commit(ISSUE, propose=[PAY])["effects"]["pay"]
    assert second["key"] != pay["key"] and second["state"] == "proposed"


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
    made = story.commit({"kind": "give_back", "transition": "assess"}, propose=[PAY])
    assert made["effects"]["pay"]["state"] in ("committed", "in_flight")
    again(story)
    story.commit(waiting({**APPROVAL, "effect": "second"}), propose=[PAY, second])
    card = html.unescape(story.card(world.bob))
    above = card.split('class="card again"')[1].split("</section>")[0]
    assert "It was approved by" in above and told in above
    assert "no longer holds" not in above and "High risk" in card
