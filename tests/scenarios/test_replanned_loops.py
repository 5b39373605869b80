"""A loop that pays an item a round and is planned anew: no item is paid twice and none is left out, counted at the payment service itself."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.domain.workflows import VersionSpec
from ledger.models import Handoff
from ledger.services import workflows
from tests.documents import SCHEMA
from tests.scenarios.story import PAY, Story
from tests.ui.asking import client_of
from tests.world import World

ITEM = {"kind": "go_on", "transition": "pay_item"}
FIRST, EQUAL, OTHER = 500, 500, 700


@pytest.fixture(autouse=True)
def loop(world: World) -> None:
    """Version 4 pays items one after the other, each in a round of its own, and plans anew when the order moved."""
    rounds = {"targets": ["payments"], "tools": [], "on_conflict": ["replan", "plan"]}
    workflows.register(
        world.caller,
        "refund",
        "4",
        VersionSpec(SCHEMA, "plan", {"plan": {"targets": [], "tools": []}, "pay_item": rounds}, ("1", "2")),
    )
    world.policy(({"tool": "*", "verdict": "allow"},))


def again(story: Story) -> dict[str, Any]:
    """The run in the hands of its next worker; what that is told of effects."""
    assert story.wake() == "resume"
    effects: dict[str, Any] = story.claim("4")["effects"]
    return effects


def propose(story: Story, amount: int, name: str = "pay", status: int = 201) -> dict[str, Any]:
    """Propose an item in the round at hand."""
    wanted = {**PAY, "name": name, "request": {**PAY["request"], "amount_minor": amount}}
    body = {"fence": story.packet["fence"], "expect_seq": story.run()["seq"], **wanted}
    return story.post(f"/runs/{story.run_id}/effects", body, status=status)


def accept(story: Story, name: str = "pay") -> dict[str, Any]:
    return story.post(f"/runs/{story.run_id}/effects", {"fence": story.packet["fence"], "accept": name})


def paid(story: Story, effect: dict[str, Any]) -> dict[str, Any]:
    """Call for an item and report it."""
    assert story.pay(story.permit(effect["id"])["permit"]).status == 201
    story.settle(effect["id"], "committed", reference=f"of {effect['name']}")
    return effect


def next_round(story: Story) -> dict[str, Any]:
    story.commit(ITEM)
    return again(story)


def moved(story: Story, amount: int) -> str:
    """The next round's item is proposed, its worker gives the run back, and the order moves; what the wake decides."""
    next_round(story)
    propose(story, amount)
    story.post(f"/runs/{story.run_id}/release", {"fence": story.packet["fence"]})
    story.move_order()
    return story.wake()


def after_one(story: Story, amount: int) -> dict[str, Any]:
    """The first item is paid, the next one's order moved, and a worker plans anew; the first."""
    story.begin("4")
    next_round(story)
    first = paid(story, propose(story, FIRST))
    assert moved(story, amount) == "replan"
    told = story.claim("4")["effects"]
    assert [(name, each["id"], each["state"]) for name, each in told.items()] == [("pay", first["id"], "committed")]
    assert (told["pay"]["carried_from"], told["pay"]["carried_to"]) == ("pay_item", "pay_item")
    return first


def amounts(story: Story) -> list[int]:
    """Every refund that the service applied under a key of ours."""
    keys = story.shop.call("GET", "/_control/applied").body["keys"]
    return sorted(
        amount for key, of in keys.items() if key.startswith("ra_") and of["applied"] for amount in of["amounts"]
    )


@pytest.mark.parametrize(("amount", "code"), [(EQUAL, "effect-carried"), (OTHER, "effect-differs")])
def test_the_name_of_what_was_done_answers_no_item_and_the_next_is_paid_under_another(
    story: Story, amount: int, code: str
) -> None:
    first = after_one(story, amount)
    refused = propose(story, amount, status=409)
    assert (refused["code"], refused["facts"]["effect"]) == (code, first["id"])
    assert "accept it" in refused["remedy"] and "another name" in refused["remedy"]
    next_round(story)
    assert propose(story, amount, status=409)["code"] == code, "in the transition that called it, too"
    assert propose(story, amount, "second", status=409)["code"] == "effects-unaccounted"
    accept(story)
    paid(story, propose(story, amount, "second"))
    assert amounts(story) == sorted([FIRST, amount])
    assert next_round(story) == {}, "its transition was left by one who knew of it"
    third = paid(story, propose(story, EQUAL))
    assert third["key"] != first["key"]
    story.commit("complete")
    assert amounts(story) == sorted([FIRST, amount, EQUAL]) and story.intact()


def test_an_agent_that_starts_its_list_anew_takes_the_first_and_pays_the_others(story: Story) -> None:
    first = after_one(story, EQUAL)
    next_round(story)
    assert (accept(story)["id"], accept(story)["reference"]) == (first["id"], "of pay")
    next_round(story)
    paid(story, propose(story, EQUAL))
    story.commit("complete")
    assert amounts(story) == [FIRST, EQUAL] and story.intact()


def test_a_round_that_says_nothing_of_what_was_done_does_not_free_its_name(story: Story) -> None:
    first = after_one(story, EQUAL)
    for _ in range(3):
        assert next_round(story)["pay"]["id"] == first["id"]
    assert propose(story, FIRST, status=409)["code"] == "effect-carried"
    accept(story)
    assert next_round(story) == {} and amounts(story) == [FIRST]


def test_what_was_done_in_two_rounds_under_one_name_goes_to_a_person_and_the_agent_goes_on_from_there(
    story: Story, world: World
) -> None:
    story.begin("4")
    for amount in (FIRST, OTHER):
        next_round(story)
        paid(story, propose(story, amount))
    assert moved(story, EQUAL) == "hand_off"
    assert story.run()["explanation"]["sentence"].count("called more than once") == 1
    decided = story.http.get(f"/runs/{story.run_id}/decisions").json()["decisions"][0]
    assert decided["reasons"][0] == "plan:name_called_twice"
    slug = world.tenant.slug
    operator = client_of(world.charlie)
    handed = Handoff.objects.of(world.tenant).get(run_id=story.run_id)
    for page in (f"runs/{story.run_id}", f"handoffs/{handed.pk}"):
        shown = operator.get(f"/t/{slug}/{page}/").content.decode()
        assert "a name was called more than once" in shown
    assert "is withdrawn: the agent is told, and goes on without it" in shown
    story.close_handoff("wake")
    told = again(story)
    assert [(name, each["state"], each["cause"]) for name, each in told.items()] == [("pay", "withdrawn", "superseded")]
    assert propose(story, EQUAL, status=200)["state"] == "withdrawn", "no call is made under it any more"
    paid(story, propose(story, EQUAL, "third"))
    story.commit("complete")
    assert amounts(story) == sorted([FIRST, OTHER, EQUAL]) and story.intact()


def test_the_packet_as_text_says_what_to_do_about_what_was_done(story: Story) -> None:
    after_one(story, EQUAL)
    text = story.http.get(f"/runs/{story.run_id}/resume-packet.md").content.decode()
    assert "Called by pay_item under the plan before this one" in text
    assert "accept it" in text and "another name" in text
    assert story.effect()["carried_to"] == "", "the item that was only proposed went with its plan"
