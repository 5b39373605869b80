"""Leave that no longer holds says so: on the card it was given on, and on the card that asks anew."""

from __future__ import annotations

import html

import pytest

from ledger.domain.workflows import VersionSpec
from ledger.services import identity, workflows
from tests.clock import Clock
from tests.documents import SCHEMA, TRANSITIONS
from tests.scenarios.story import APPROVAL, PAY, Story, waiting
from tests.ui.asking import address, client_of
from tests.world import World

TRUE = {
    "target-changed": "the target is set up otherwise now",
    "votes-lost": "a vote behind the approval no longer counts",
    "expired": "the approval ran out",
}
"""What a wake found wrong with leave, as people read it."""


def replans(world: World) -> None:
    """Version 3 plans anew when its target moved."""
    moved = {**TRANSITIONS, "issue": {**TRANSITIONS["issue"], "on_conflict": ["replan", "assess"]}}
    workflows.register(world.caller, "refund", "3", VersionSpec(SCHEMA, "assess", moved, ("1", "2")))


def top(page: str) -> str:
    """What the card says above its facts, as text."""
    return html.unescape(page.split('class="card again"')[1].split("</section>")[0])


def test_a_new_revision_says_what_was_approved_why_it_is_void_and_what_differs(story: Story, world: World) -> None:
    story.ask()
    story.approve()
    story.move_order(11_000)
    assert story.wake() == "ask_again"
    told = top(story.card(world.bob))
    assert "It was approved by" in told and "That approval no longer holds: the order changed since." in told
    assert "120.00 EUR (12000)" in told and "110.00 EUR (11000)" in told
    assert "status" not in told, "only what differs"


def test_a_target_that_moved_says_from_where_to_where(story: Story, world: World) -> None:
    story.ask()
    story.approve()
    before, now = f"http://{story.service.host}", f"http://{story.service.host}/"
    story.register_target(base_url=now)
    assert story.wake() == "ask_again"
    moved = f"the target is set up otherwise now (payments was at {before} and is at {now} now)"
    assert moved in top(story.card(world.bob))
    story.register_target(base_url=now, first_result_replayed=True)
    assert "was at" not in top(story.card(world.bob)), "that is no longer what changed last"


@pytest.mark.parametrize("why", TRUE)
def test_what_voided_an_approval_is_told_with_its_own_reason(
    story: Story, world: World, clock: Clock, why: str
) -> None:
    story.ask()
    story.approve()
    if why == "target-changed":
        story.register_target(first_result_replayed=True)
    elif why == "votes-lost":
        identity.remove_from_team(world.admin, world.approvers, world.alice)
    else:
        clock.shift(3_601)
    assert story.wake() == "ask_again"
    card = html.unescape(story.card(world.bob))
    assert f"Asked again: {TRUE[why]}" in card, "the card's history"
    assert f"{TRUE[why][:1].upper()}{TRUE[why][1:]}." in card, "what changed between the two"
    assert not any(other in card for code, other in TRUE.items() if code != why)
    was = "That approval was not used until" if why == "expired" else f"no longer holds: {TRUE[why]}."
    assert was in top(card)
    run = client_of(world.charlie).get(f"/t/{world.tenant.slug}/runs/{story.run_id}/").content.decode()
    assert TRUE[why] in html.unescape(run), "the run's page"


def test_a_request_of_a_new_plan_says_it_too_and_the_old_card_is_no_longer_green(story: Story, world: World) -> None:
    replans(world)
    story.ask(version="3")
    story.approve()
    old = story.request
    story.move_order(2_000)
    assert story.wake() == "replan"
    story.claim("3")
    changed = {**PAY, "request": {**PAY["request"], "amount_minor": 900}}
    story.commit(waiting(APPROVAL), propose=[changed])
    assert story.request.pk != old.pk
    told = top(story.card(world.bob))
    assert "It was approved by" in told and "the order changed since" in told
    assert "Refund 15.00 EUR to the customer of order 17" in told, "what it was"
    assert "120.00 EUR (12000)" in told and "20.00 EUR (2000)" in told
    assert "to be sent: amount_minor" in told and "9.00 EUR (900)" in told
    page = story.card(world.bob)
    assert "Another request about order/17: approved, then void" in page and "s-approved" not in page
    assert "Asked anew, after an earlier request" in page and "First asked" not in page
    before = client_of(world.bob).get(address(world, old)).content.decode()
    assert "Approved, then void: the order changed" in before and "badge s-voided" in before
    assert "badge s-approved" not in before
    assert "The agent asked again" in before


def test_a_request_after_a_denial_says_that_it_was_denied_and_why(story: Story, world: World) -> None:
    replans(world)
    story.ask(version="3")
    story.decide(world.alice, "deny", "the photos show a working lamp")
    story.wake()
    story.claim("3")
    story.commit(
        waiting({**APPROVAL, "effect": "second"}),
        propose=[{**PAY, "name": "second", "request": {**PAY["request"], "amount_minor": 900}}],
    )
    told = top(story.card(world.bob))
    assert "It was denied by Alice" in told and "the photos show a working lamp" in told


def test_a_refund_beyond_what_the_order_has_left_is_warned_of_in_words(story: Story, world: World) -> None:
    story.move_order(1_200)
    story.ask()
    page = html.unescape(story.card(world.bob))
    assert "This refund of 15.00 EUR is more than the order has left: 12.00 EUR" in page


def test_a_refund_of_all_that_is_left_is_not_warned_of(story: Story, world: World) -> None:
    story.move_order(1_500)
    story.ask()
    assert "more than the order has left" not in story.card(world.bob)


def test_after_the_call_the_target_is_named_as_it_was_decided_on(story: Story, world: World) -> None:
    effect = story.ask()
    assert "The target now" in story.card(world.bob)
    story.approve()
    story.wake()
    story.claim("2")
    story.pay(story.permit(effect["id"])["permit"])
    page = story.card(world.bob)
    assert "The target as it was decided on" in page
    assert "The target now" not in page and "Unchanged since" not in page


def test_taking_back_says_before_and_after_what_it_causes_and_the_next_asking_says_it_follows(
    story: Story, world: World
) -> None:
    story.ask()
    story.approve()
    alice = client_of(world.alice)
    assert "It may ask again" in alice.get(address(world, story.request)).content.decode()
    answer = alice.post(address(world, story.request, "approval_revoke"), headers={"HX-Request": "true"})
    assert "nothing is sent on it. The agent may ask again." in answer.content.decode()
    page = story.card(world.bob)
    assert "Approved, then taken back" in page and "badge s-approved" not in page
    assert story.wake() == "ask_again"
    told = top(story.card(world.bob))
    assert "That approval was taken back by Alice" in told and "the agent asks again" in told
    assert "the leave that was given no longer stands" in story.card(world.bob)


def test_asking_again_keeps_the_agents_deadline_and_what_it_wanted_of_silence(story: Story, clock: Clock) -> None:
    story.ask(waiting(APPROVAL, deadline_seconds=7_200, on_deadline="cancel"))
    until = story.last_wait()["deadline"]
    story.approve()
    story.move_order(11_000)
    assert story.wake() == "ask_again"
    assert story.last_wait()["internal"] == "ask_again" and story.last_wait()["deadline"] == until
    assert "the run is cancelled" in story.run()["explanation"]["sentence"]
    clock.shift(7_200)
    story.sweep()
    assert story.run()["status"] == "cancelled" and story.intact()
