"""Leave that was used covers further attempts until its effect is asked for again: what people answer then is not undone by what comes back."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

import pytest

from ledger.models import Grant, Permit
from ledger.services import authority, identity
from tests.clock import Clock
from tests.scenarios.story import Json, Story
from tests.scenarios.test_tried_again import throttled
from tests.world import World

RULE: dict[str, Any] = {
    "tool": "payments.*",
    "verdict": "approve",
    "group": "approvers",
    "quorum": 1,
    "decide_by": 1_800,
    "use_by": 86_000,
}
TAKE_BACK = "Take the approval back"
Act = Callable[[Story, Clock], None]


def left(story: Story, clock: Clock) -> None:
    identity.remove_from_team(story.world.admin, story.world.approvers, story.world.alice)


def put_back(story: Story, clock: Clock) -> None:
    identity.add_to_team(story.world.admin, story.world.approvers, story.world.alice)


def raised(story: Story, clock: Clock) -> None:
    story.world.policy(({**RULE, "quorum": 2},))


def restored(story: Story, clock: Clock) -> None:
    story.world.policy((RULE,))


def denied(story: Story, clock: Clock) -> None:
    assert story.decide(story.world.bob, "deny", "not twice").status_code == 302


def ran_out(story: Story, clock: Clock) -> None:
    clock.shift(1_801)


@pytest.fixture(autouse=True)
def leave_that_lasts(world: World) -> None:
    """Longer than people have to decide, so that it is not its use-by that ends it."""
    world.policy((RULE,))


GONE_AND_BACK = {
    "the voter left and was put back": (left, put_back),
    "the policy was raised and restored": (raised, restored),
}
ANSWERS = {"denied": denied, "expired": ran_out}


def grants(story: Story) -> list[tuple[str, str]]:
    rows = Grant.objects.of(story.world.tenant).filter(run_id=story.run_id).order_by("approved_at")
    return [(row.state, row.cause) for row in rows]


def attempts(story: Story, effect: Json) -> int:
    return Permit.objects.of(story.world.tenant).filter(effect_id=effect["id"]).count()


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("way", GONE_AND_BACK)
def test_what_people_answered_when_it_was_asked_again_stands_though_the_first_leave_would_be_good_again(
    story: Story, clock: Clock, way: str, answer: str
) -> None:
    gone, back = GONE_AND_BACK[way]
    effect = throttled(story)
    gone(story, clock)
    assert story.wake() == "ask_again"
    assert grants(story) == [("voided", "changed" if gone is raised else "voided")], "it ends when it is asked again"
    ANSWERS[answer](story, clock)
    story.sweep()
    assert story.run()["status"] == "blocked"
    back(story, clock)
    story.close_handoff("wake")
    assert story.wake() == "resume"
    packet = story.claim()
    assert [member["outcome"] for member in packet["wait"]["members"]] == [answer]
    refusal = story.permit(effect["id"], status=403)
    assert refusal["code"] == "grant-missing" and "earlier attempt" in refusal["detail"]
    assert attempts(story, effect) == 1 and story.wake() == "hand_off" and story.intact()


def test_leave_that_was_taken_back_isn_t_replaced_by_the_used_one_before_it(story: Story, clock: Clock) -> None:
    effect = throttled(story)
    left(story, clock)
    assert story.wake() == "ask_again"
    story.approve(story.world.bob)
    newer = Grant.objects.of(story.world.tenant).get(run_id=story.run_id, state="live")
    assert not authority.revoke_grant(story.world.bob, newer.pk).used
    put_back(story, clock)
    assert story.wake() == "ask_again", "nobody's leave holds"
    assert grants(story) == [("voided", "voided"), ("revoked", "by_person")]
    story.approve(story.world.alice)
    assert story.wake() == "resume"
    story.claim()
    assert story.permit(effect["id"])["permit"]["attempt"] == 2 and story.intact()


def test_leave_that_was_taken_back_after_the_wake_stops_the_permit(story: Story, clock: Clock) -> None:
    effect = throttled(story)
    left(story, clock)
    assert story.wake() == "ask_again"
    story.approve(story.world.bob)
    assert story.wake() == "resume"
    story.claim()
    newer = Grant.objects.of(story.world.tenant).get(run_id=story.run_id, state="live")
    authority.revoke_grant(story.world.bob, newer.pk)
    put_back(story, clock)
    assert story.permit(effect["id"], status=403)["code"] == "grant-missing"
    assert attempts(story, effect) == 1 and story.run()["status"] == "waking"


def given_again(story: Story) -> Json:
    """A failed call for which people gave leave once more; a worker has the run."""
    effect = throttled(story)
    story.move_order()
    assert story.wake() == "ask_again"
    story.approve()
    assert TAKE_BACK in story.card(story.world.alice)
    assert story.wake() == "resume"
    story.claim()
    return effect


@pytest.mark.parametrize("kind", ["go_on", "give_back"])
def test_leave_for_a_call_that_the_agent_goes_on_without_ends_and_is_not_offered_to_be_taken_back(
    story: Story, kind: str
) -> None:
    effect = given_again(story)
    story.commit({"kind": kind, "transition": "issue"}, settle=[], withdraw=[])
    assert story.effect()["state"] == "failed" and grants(story)[-1] == ("voided", "left_behind")
    page = html.unescape(story.card(story.world.alice))
    assert TAKE_BACK not in page and "Approved, then void: the agent went on without this call" in page
    assert attempts(story, effect) == 1 and story.intact()


def test_leave_for_what_is_proposed_goes_along_with_it(story: Story) -> None:
    story.ask()
    story.approve()
    assert story.wake() == "resume"
    story.claim()
    story.commit({"kind": "go_on", "transition": "issue"})
    assert grants(story) == [("live", "")] and TAKE_BACK in story.card(story.world.alice)
    assert story.wake() == "resume"
    story.claim()
    assert story.permit(story.effect()["id"])["permit"]["attempt"] == 1


def test_leave_for_a_call_that_turns_out_to_be_done_is_not_offered_to_be_taken_back(story: Story) -> None:
    effect = throttled(story)
    late = dict(story.packet)
    story.move_order()
    assert story.wake() == "ask_again"
    story.approve()
    story.settle(effect["id"], "committed", packet=late, reference="r_1")
    story.judge(effect["id"], "committed", "r_1")
    assert story.effect()["state"] == "committed"
    assert TAKE_BACK not in story.card(story.world.alice)
