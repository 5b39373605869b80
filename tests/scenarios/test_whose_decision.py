"""Whom a request waits for is who was asked, and who can't decide any more is told, whatever the policy says since."""

from __future__ import annotations

from ledger.services import identity
from tests.scenarios.story import Story, World


def sentence(story: Story) -> str:
    return str(story.run()["explanation"]["sentence"])


def test_the_team_is_that_of_the_request_and_not_that_of_a_policy_published_since(story: Story, world: World) -> None:
    story.ask()
    identity.add_team(world.admin, "treasury", "Treasury")
    world.policy(({"tool": "payments.*", "verdict": "approve", "group": "treasury"},))
    assert "the team Refund approvers to decide" in sentence(story) and "Treasury" not in sentence(story)
    world.policy(({"tool": "*", "verdict": "deny"},))
    assert "the team Refund approvers to decide" in sentence(story)


def test_a_request_that_nobody_can_approve_any_more_is_said_to_be_one(story: Story, world: World) -> None:
    story.ask()
    for person in (world.alice, world.bob):
        identity.remove_from_team(world.admin, world.approvers, person)
    assert "too few people of Refund approvers may do that: an administrator has to add some" in sentence(story)
    found = story.http.get("/runs?health=no_approvers").json()["runs"]
    assert [each["id"] for each in found] == [str(story.run_id)]
