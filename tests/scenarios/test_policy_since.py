"""A policy that was published while people are asked: their card says so, and no approval is counted that wouldn't hold."""

from __future__ import annotations

import html
from typing import Any

from ledger.services import identity
from tests.clock import Clock
from tests.scenarios.story import APPROVAL, Story, World, waiting

RULE: dict[str, Any] = {"tool": "payments.*", "verdict": "approve", "group": "approvers", "quorum": 1}
BANNER = "The policy changed since this was asked."


def card(story: Story) -> str:
    return html.unescape(story.card(story.world.alice))


def test_an_approval_of_less_than_the_policy_wants_by_now_is_refused_and_all_of_it_is_asked(
    story: Story, world: World
) -> None:
    story.ask()
    read = story.card(world.alice)
    world.policy(({**RULE, "quorum": 2},))
    told = card(story)
    assert BANNER in told and "The policy in force wants 2 approvals from the team" in told
    answer = story.decide(world.alice, "approve", page=read)
    assert answer.status_code == 412
    assert "your vote was not counted" in html.unescape(answer.content.decode())
    assert (story.request.state, story.request.revision) == ("pending", 2)
    told = card(story)
    assert BANNER not in told and "0 of 2 approvals" in told and "the policy wants something else" in told
    story.approve(world.alice)
    story.approve(world.bob)
    assert story.request.state == "approved" and story.wake() == "resume" and story.intact()


def test_a_call_that_the_policy_denies_by_now_can_be_denied_and_not_approved(story: Story, world: World) -> None:
    story.ask()
    world.policy(({"tool": "*", "verdict": "deny"},))
    assert "denies this call: nobody can approve it any more" in card(story)
    answer = story.decide(world.alice, "approve")
    assert answer.status_code == 412 and (story.request.state, story.request.revision) == ("pending", 1)
    assert story.decide(world.alice, "deny", "The policy says no").status_code == 302
    assert story.request.state == "denied"


def test_people_of_the_team_that_the_policy_wants_by_now_bring_the_question_to_it(story: Story, world: World) -> None:
    story.ask()
    treasury = identity.add_team(world.admin, "treasury", "Treasury")
    identity.add_to_team(world.admin, treasury, world.bob)
    world.policy(({**RULE, "group": "treasury"},))
    assert story.decide(world.bob, "approve").status_code == 412
    assert story.decide(world.bob, "approve").status_code == 302 and story.request.state == "approved"


def test_what_the_policy_says_of_others_or_no_longer_wants_changes_nothing(story: Story, world: World) -> None:
    story.ask()
    world.policy((RULE | {"decide_by": 86_400, "use_by": 3_600}, {"tool": "notes.*", "verdict": "deny"}))
    assert BANNER not in card(story)
    world.policy(({"tool": "*", "verdict": "allow"},))
    assert BANNER not in card(story)
    story.approve()
    assert story.wake() == "resume"


def test_with_less_time_to_decide_card_sentence_and_what_becomes_of_silence_agree(
    story: Story, world: World, clock: Clock
) -> None:
    story.ask(waiting(APPROVAL, on_deadline="cancel"))
    assert "the run is cancelled" in card(story) and "the run is cancelled" in story.run()["explanation"]["sentence"]
    world.policy(({**RULE, "decide_by": 3_600},))
    assert story.decide(world.alice, "approve").status_code == 412
    until = story.request.decide_by
    (member,) = story.last_wait()["members"]
    assert member["due_at"] == until.isoformat().replace("+00:00", "Z")
    assert "the agent goes on and is told that nobody decided" in card(story)
    assert f"{until:%H:%M}" in story.run()["explanation"]["sentence"]
    assert "cancelled" not in story.run()["explanation"]["sentence"]
    clock.shift(3_600)
    story.sweep()
    assert story.run()["status"] == "ready" and story.request.state == "expired" and story.intact()
