"""What a denial says reaches whoever asked, word for word, and nobody who may not see payloads."""

from __future__ import annotations

from typing import Any

from ledger.domain.identity import Scope, Verb
from ledger.services import identity
from tests.api.conftest import Http
from tests.scenarios.story import APPROVAL, PAY, Story, waiting
from tests.world import World

SAID = "Ask the customer for the photo first — „Beleg fehlt“, 写真なし"


def denied(story: Story, said: str = SAID) -> dict[str, Any]:
    """A denied request; the packet of the worker that goes on."""
    story.ask()
    assert story.decide(story.world.bob, "deny", said).status_code == 302
    assert story.wake() == "resume"
    return story.claim()


def test_the_next_worker_reads_why_in_the_denier_s_words(story: Story) -> None:
    packet = denied(story)
    (member,) = packet["wait"]["members"]
    assert (member["outcome"], member["reason"]) == ("denied", SAID)
    assert story.last_wait()["members"][0]["reason"] == SAID
    assert story.http.get(f"/runs/{story.run_id}/resume-packet").json()["wait"]["members"][0]["reason"] == SAID
    assert story.http.get(f"/approvals/{story.request.pk}").json()["reason"] == SAID


def test_the_reason_stands_in_no_entry(story: Story) -> None:
    denied(story)
    assert SAID not in story.http.get(f"/runs/{story.run_id}/journal").content.decode()


def test_who_may_not_see_payloads_reads_no_reason(story: Story, world: World) -> None:
    denied(story)
    person = world.person("sees-states")
    identity.grant_permission(world.admin, person, Verb.SEE, world.workflow)
    blind = Http(identity.issue_key(world.admin, "reads", [Scope.RUNS_READ], workflows=["*"], person=person).secret)
    for path in (f"/approvals/{story.request.pk}", f"/runs/{story.run_id}/waits"):
        answer = blind.get(path)
        assert answer.status_code == 200 and "photo" not in answer.content.decode()


def again(story: Story, name: str, **changes: Any) -> dict[str, Any]:
    """The worker that was denied asks again under another name."""
    return story.commit(waiting(APPROVAL | {"effect": name}), propose=[{**PAY, "name": name, **changes}])


def test_what_was_denied_is_not_asked_again_under_another_name(story: Story) -> None:
    denied(story)
    before = story.request.pk
    again(story, "pay-once-more")
    assert story.request.pk == before, "nobody is asked"
    assert story.last_wait()["members"][0]["outcome"] == "denied" and story.last_wait()["state"] == "cancelled"
    assert story.wake() == "resume"
    assert story.claim()["wait"]["members"][0]["outcome"] == "denied"
    assert story.effect("pay-once-more")["state"] == "withdrawn" and story.intact()


def test_what_was_denied_is_refused_by_the_wake_too_when_nobody_was_asked_about_it(story: Story) -> None:
    denied(story)
    asked = story.request.pk
    story.commit({"kind": "give_back", "transition": "issue"}, propose=[{**PAY, "name": "unasked"}])
    assert story.wake() == "resume"
    assert story.request.pk == asked and story.effect("unasked")["state"] == "withdrawn"
    assert (story.effect("unasked")["cause"], story.intact()) == ("denied", True)


def test_what_only_a_policy_denied_may_be_asked_once_people_are_to_decide(story: Story) -> None:
    story.world.policy(({"tool": "*", "verdict": "deny"},))
    story.begin()
    story.commit(waiting(APPROVAL), propose=[PAY])
    assert story.wake() == "resume"
    assert story.claim()["wait"]["members"][0]["outcome"] == "denied_by_policy"
    story.world.policy(({"tool": "*", "verdict": "approve", "group": "approvers", "quorum": 1},))
    again(story, "asked-of-people")
    assert story.request.state == "pending" and story.run()["status"] == "waiting"


def test_another_request_or_a_target_that_moved_is_another_question(story: Story) -> None:
    denied(story)
    first = story.request.pk
    again(story, "less", request={**PAY["request"], "amount_minor": 900})
    second = story.request.pk
    assert second != first and story.request.state == "pending"
    assert story.decide(story.world.bob, "deny", "no").status_code == 302
    story.move_order(11_000)
    assert story.wake() == "resume"
    story.claim()
    again(story, "moved")
    assert story.request.pk not in (first, second) and story.request.state == "pending"


def test_an_approval_brings_no_reason(story: Story) -> None:
    story.ask()
    assert story.decide(story.world.alice, "approve", "looks right to me").status_code == 302
    assert story.wake() == "resume"
    assert story.claim()["wait"]["members"][0]["reason"] is None
