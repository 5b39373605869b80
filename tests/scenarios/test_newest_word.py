"""The packet tells what people said last: an approval that facts overtook is no longer the word of those who then denied it."""

from __future__ import annotations

from typing import Any

from resumeapp_client import effects, records

from tests.clock import Clock
from tests.scenarios.story import APPROVAL, PAY, Story, waiting

SAID = "Not at this price — „Beleg fehlt“"
Seen = tuple[str, str, list[tuple[str, str | None]]]


def told(story: Story) -> Seen:
    """What the packet says of the wait: state, cause, and of each member outcome and reason."""
    wait = story.packet["wait"]
    return wait["state"], wait["cause"], [(member["outcome"], member["reason"]) for member in wait["members"]]


def heard(story: Story) -> tuple[str | None, str]:
    """What the agent's code reads of it."""
    seen = records.WaitSeen.model_validate(story.packet["wait"])
    return effects.outcome(seen), effects.reason(seen)


def markdown(story: Story) -> str:
    text: str = story.http.get(f"/runs/{story.run_id}/resume-packet.md").content.decode()
    return text


def asked_again(story: Story, step: dict[str, Any] | None = None) -> None:
    """A refund that was approved and is asked for again, since its order moved."""
    story.ask(step)
    story.approve()
    story.move_order()
    assert story.wake() == "ask_again"


def test_a_denial_of_what_was_asked_again_is_told_with_its_reason(story: Story) -> None:
    asked_again(story)
    assert story.decide(story.world.bob, "deny", SAID).status_code == 302
    assert story.wake() == "resume"
    story.claim()
    assert told(story) == ("cancelled", "denied", [("denied", SAID)])
    assert heard(story) == ("denied", SAID)
    text = markdown(story)
    assert "is cancelled (denied)" in text and ": denied" in text and SAID in text
    assert "approved" not in text.split("## Effects")[0]


def test_silence_on_what_was_asked_again_is_told(story: Story, clock: Clock) -> None:
    asked_again(story, waiting(APPROVAL, deadline_seconds=7_200))
    clock.shift(7_300)
    story.sweep()
    if story.run()["status"] == "waking":
        assert story.wake() == "resume"
    story.claim()
    assert told(story) == ("expired", "expired", [("expired", None)])
    assert heard(story) == ("expired", "") and "is expired (expired)" in markdown(story)


def test_while_it_is_asked_again_nothing_says_that_it_was_approved(story: Story) -> None:
    asked_again(story)
    packet = story.http.get(f"/runs/{story.run_id}/resume-packet").json()
    assert (packet["wait"]["state"], packet["wait"]["cause"]) == ("open", "")
    assert [member["outcome"] for member in packet["wait"]["members"]] == [""]


def test_an_approval_of_what_was_asked_again_is_an_approval(story: Story) -> None:
    asked_again(story)
    story.approve(story.world.bob)
    assert story.wake() == "resume"
    story.claim()
    assert told(story) == ("satisfied", "approved", [("approved", None)]) and heard(story) == ("approved", "")


def blocked(story: Story, clock: Clock) -> str:
    """A run that a person has, whose wait for leave was superseded; the effect of which it isn't known whether it happened."""
    wire = {**PAY, "name": "wire", "tool": "wires.send", "target": "wires", "resource": ""}
    story.begin()
    story.commit({"kind": "go_on", "transition": "issue"}, propose=[wire])
    assert story.wake() == "resume"
    story.claim("1")
    lost = str(story.effect("wire")["id"])
    story.permit(lost)
    story.settle(lost, "unknown")
    body = {"fence": story.packet["fence"], "expect_seq": story.run()["seq"], **PAY}
    story.post(f"/runs/{story.run_id}/effects", body)
    story.commit(waiting(APPROVAL))
    clock.shift(5)
    story.sweep()
    assert story.run()["status"] == "blocked" and story.last_wait()["state"] == "superseded"
    return lost


def found_out(story: Story, effect_id: str) -> None:
    story.judge(effect_id, "committed", "w1")
    assert story.wake() == "resume"
    story.claim("1")


def test_a_denial_while_a_person_had_the_run_is_told(story: Story, clock: Clock) -> None:
    lost = blocked(story, clock)
    assert story.decide(story.world.alice, "deny", SAID).status_code == 302
    found_out(story, lost)
    assert told(story) == ("cancelled", "denied", [("denied", SAID)]) and heard(story) == ("denied", SAID)


def test_an_approval_while_a_person_had_the_run_is_told(story: Story, clock: Clock) -> None:
    lost = blocked(story, clock)
    story.approve()
    found_out(story, lost)
    assert told(story) == ("satisfied", "approved", [("approved", None)]) and heard(story) == ("approved", "")


def test_a_denial_of_what_the_agent_never_waited_for_is_told(story: Story) -> None:
    story.begin()
    story.commit({"kind": "go_on", "transition": "issue"}, propose=[PAY])
    assert story.wake() == "ask_again"
    assert story.decide(story.world.bob, "deny", SAID).status_code == 302
    assert story.wake() == "resume"
    story.claim()
    assert told(story) == ("cancelled", "denied", [("denied", SAID)]) and heard(story) == ("denied", SAID)
