"""What doing nothing comes to, and when, is what the card, the sentence and the run's page say that it does."""

from __future__ import annotations

import html
import re

from tests.clock import Clock
from tests.scenarios.story import APPROVAL, Story, waiting
from tests.world import World

TIMER = {"kind": "timer", "after_seconds": 3_600}


def card(story: Story) -> str:
    """The card as text, without marks."""
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", story.card(story.world.alice))))


def sentence(story: Story) -> str:
    return str(story.run()["explanation"]["sentence"])


def test_a_timer_beside_an_approval_is_what_doing_nothing_comes_to(story: Story, clock: Clock) -> None:
    story.ask(waiting(APPROVAL, TIMER, on_deadline="cancel"))
    timer = next(each["due_at"] for each in story.last_wait()["members"] if each["kind"] == "timer")
    document = story.http.get(f"/approvals/{story.request.pk}").json()
    assert document["decide_by"] == timer, "nothing can be decided after the timer"
    page, told = story.card(story.world.alice), card(story)
    assert "it is withdrawn. Nothing is sent; the agent waits no longer than that and goes on without it" in told
    assert "nobody decided" not in told and "the run is cancelled" not in told
    assert "if nothing else comes, its timer lets the agent go on at" in sentence(story)
    clock.shift(3_601)
    assert story.decide(story.world.alice, "approve", page=page).status_code in (409, 410)
    story.sweep()
    assert (story.last_wait()["state"], story.last_wait()["cause"]) == ("satisfied", "due")
    assert story.request.state == "withdrawn" and story.intact()


def test_a_timer_that_comes_after_the_decision_is_none_of_it(story: Story) -> None:
    story.ask(waiting(APPROVAL, {"kind": "timer", "after_seconds": 86_400}, deadline_seconds=90_000))
    story.world.policy(
        ({"tool": "payments.*", "verdict": "approve", "group": "approvers", "quorum": 1, "decide_by": 60},)
    )
    story.ask(waiting(APPROVAL, TIMER))
    assert "the agent goes on and is told that it expired" in sentence(story)
    assert "it expires. Nothing is sent; the agent goes on and is told that nobody decided" in card(story)


def test_where_all_is_waited_for_a_timer_ends_nothing(story: Story) -> None:
    story.ask(waiting(APPROVAL, TIMER, mode="all", on_deadline="fail"))
    assert "if nothing comes" in sentence(story) and "timer" not in sentence(story)


def tried_again(story: Story, decide_by: int = 86_400) -> None:
    """A call that was throttled; the policy wants a second person by now, so that another attempt is asked for."""
    effect = story.ask()
    story.approve()
    assert story.wake() == "resume"
    story.claim("1")
    story.permit(effect["id"])
    story.settle(effect["id"], "failed", cause="throttled")
    story.post(f"/runs/{story.run_id}/release", {"fence": story.packet["fence"]})
    rule = {"tool": "payments.*", "verdict": "approve", "group": "approvers", "quorum": 2, "decide_by": decide_by}
    story.world.policy((rule,))
    assert story.wake() == "ask_again"


def test_silence_on_another_attempt_is_said_to_give_the_run_to_an_operator_and_does(story: Story, clock: Clock) -> None:
    tried_again(story, decide_by=3_600)
    assert "if nobody does, an operator gets it at" in sentence(story)
    told = card(story)
    assert "Nothing is sent; the run is handed to an operator" in told and "nobody decided" not in told
    clock.shift(3_601)
    story.sweep()
    assert story.run()["status"] == "blocked"


def test_a_denial_of_another_attempt_is_said_to_reach_an_operator_first_and_then_the_agent(story: Story) -> None:
    tried_again(story)
    assert "the run goes to an operator; once they wake it, the agent gets your reason word for word" in card(story)
    assert story.decide(story.world.alice, "deny", "No more tries").status_code == 302
    assert story.wake() == "hand_off"
    story.close_handoff("wake")
    assert story.wake() == "resume"
    (member,) = story.claim("1")["wait"]["members"]
    assert (member["outcome"], member["reason"]) == ("denied", "No more tries")


def test_the_countdown_of_a_card_is_to_what_doing_nothing_comes_to(story: Story, world: World) -> None:
    story.ask(waiting(APPROVAL, TIMER, on_deadline="cancel"))
    ends = story.last_wait()["members"]
    timer = next(each["due_at"] for each in ends if each["kind"] == "timer")
    for person in (world.alice, world.dora):
        page = re.sub(r"\s+", " ", html.unescape(story.card(person)))
        counted = page.split('class="countdown" datetime="')[1]
        assert counted.startswith(timer[:19]), "the same moment as the sentence"
        assert "then it is withdrawn and nothing is sent" in page and "then it expires" not in page
