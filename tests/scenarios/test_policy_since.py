"""A policy that was published while people are asked: their card says so, and no approval is counted that wouldn't hold."""

from __future__ import annotations

import html
from typing import Any
from uuid import UUID

from approvals.services import inbox
from ledger.domain.identity import Verb
from ledger.models import User
from ledger.services import identity
from tests.clock import Clock
from tests.scenarios.story import APPROVAL, PAY, Story, waiting
from tests.scenarios.test_tried_again import throttled
from tests.ui.asking import client_of
from tests.world import World

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


def inbox_of(user: User, story: Story) -> list[UUID]:
    return list(inbox.pending_for(user, story.world.tenant).values_list("pk", flat=True))


def test_the_team_that_the_policy_wants_by_now_has_it_in_its_inbox_and_the_open_card_says_that_it_changed(
    story: Story, world: World
) -> None:
    story.ask()
    treasury = identity.add_team(world.admin, "treasury", "Treasury")
    identity.add_to_team(world.admin, treasury, world.charlie)
    for verb in (Verb.SEE, Verb.SEE_PAYLOADS, Verb.APPROVE):
        identity.grant_permission(world.admin, treasury, verb, world.workflow)
    opened = story.card(world.alice)
    live = html.unescape(opened.split('data-live="')[1].split('"')[0])
    assert client_of(world.alice).get(live).status_code == 204 and inbox_of(world.charlie, story) == []
    world.policy(({**RULE, "group": "treasury"},))
    story.sweep()
    assert inbox_of(world.charlie, story) == [story.request.pk] and inbox_of(world.alice, story) == []
    newer = client_of(world.alice).get(live)
    assert newer.status_code == 200 and "the policy wants something else" in newer.content.decode()
    assert story.decide(world.alice, "approve", page=opened).status_code == 403
    story.sweep()
    assert (story.request.state, story.request.revision) == ("pending", 2), "once"
    assert "treasury" in story.run()["explanation"]["sentence"].lower()
    story.approve(world.charlie)
    assert story.wake() == "resume" and story.intact()


def test_what_the_policy_denies_by_now_is_withdrawn_and_the_agent_is_told_who_denied_it(
    story: Story, world: World
) -> None:
    story.ask()
    world.policy(({"tool": "*", "verdict": "deny"},))
    story.sweep()
    assert (story.request.state, story.request.cause) == ("withdrawn", "policy_denies")
    assert (story.effect()["state"], story.effect()["cause"]) == ("withdrawn", "denied")
    assert story.run()["status"] == "ready"
    packet = story.claim()
    assert [member["outcome"] for member in packet["wait"]["members"]] == ["denied_by_policy"]
    told = card(story)
    assert "Withdrawn before a decision: policy denies" in told and "The agent was told" in told
    world.policy((RULE,))
    story.commit(waiting(APPROVAL | {"effect": "again"}), propose=[{**PAY, "name": "again"}])
    assert story.request.state == "pending", "no person denied it"
    assert story.intact()


def test_another_attempt_that_the_policy_denies_by_now_is_handed_to_an_operator(story: Story, world: World) -> None:
    throttled(story)
    story.move_order()
    assert story.wake() == "ask_again"
    world.policy(({"tool": "*", "verdict": "deny"},))
    story.sweep()
    assert story.request.state == "withdrawn" and story.run()["status"] == "blocked" and story.intact()


def test_what_the_policy_says_of_others_or_no_longer_wants_changes_nothing(story: Story, world: World) -> None:
    story.ask()
    before = world.head(story.run_id).head_seq
    world.policy((RULE | {"decide_by": 86_400, "use_by": 3_600}, {"tool": "notes.*", "verdict": "deny"}))
    story.sweep()
    assert BANNER not in card(story)
    world.policy(({"tool": "*", "verdict": "allow"},))
    story.sweep()
    assert BANNER not in card(story) and world.head(story.run_id).head_seq == before
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
