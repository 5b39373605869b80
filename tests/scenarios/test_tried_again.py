"""A call that certainly did nothing is tried again: under leave that holds, at a target that knows its key; otherwise people are asked."""

from __future__ import annotations

import html
from collections.abc import Callable

import pytest

from ledger.domain.workflows import VersionSpec
from ledger.models import EffectReport, Grant, Handoff, Permit
from ledger.services import authority, targets, waits, workflows
from ledger.services.targets import TargetSpec
from tests.clock import Clock
from tests.documents import SCHEMA, TRANSITIONS
from tests.scenarios.story import APPROVAL, PAY, Json, Story, waiting

WIRE: Json = {"name": "wire", "tool": "wires.send", "target": "wires", "request": {"amount_minor": 4000}}
Change = Callable[[Story, Clock], None]


def throttled(story: Story, version: str = "1") -> Json:
    """The refund was approved, permitted, refused for now by its target, and its run given back."""
    effect = story.ask(waiting(APPROVAL), version)
    story.approve()
    assert story.wake() == "resume"
    story.claim(version)
    story.permit(effect["id"])
    assert story.settle(effect["id"], "failed", cause="throttled")["effect"]["state"] == "failed"
    give_back(story)
    return effect


def give_back(story: Story) -> None:
    story.post(f"/runs/{story.run_id}/release", {"fence": story.packet["fence"]})


def moved(story: Story, clock: Clock) -> None:
    story.move_order()


def raised(story: Story, clock: Clock) -> None:
    rule = {"tool": "payments.*", "verdict": "approve", "group": "approvers", "quorum": 2, "use_by": 3_600}
    story.world.policy((rule,))


def too_late(story: Story, clock: Clock) -> None:
    clock.shift(3_601)


def taken_back(story: Story, clock: Clock) -> None:
    grant = Grant.objects.of(story.world.tenant).get(run_id=story.run_id)
    authority.revoke_grant(story.world.alice, grant.pk)


CHANGES = {"moved": moved, "raised": raised, "too-late": too_late, "taken-back": taken_back}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_leave_that_no_longer_holds_is_asked_for_again_before_the_next_attempt(
    change: Change, story: Story, clock: Clock
) -> None:
    effect = throttled(story)
    change(story, clock)
    assert story.wake() == "ask_again", "not cleared to meet a refusal"
    assert story.run()["status"] == "waiting" and story.request.revision == 2
    for person in (story.world.alice, story.world.bob)[: 2 if change is raised else 1]:
        story.approve(person)
    assert story.wake() == "resume"
    story.claim()
    permit = story.permit(effect["id"])["permit"]
    assert permit["attempt"] == 2 and permit["key"] == effect["key"]
    assert story.pay(permit).status == 201 and story.counted(effect["key"]) == (1, 1)
    assert story.intact()


def test_what_moved_is_planned_anew_where_the_transition_says_so(story: Story) -> None:
    declared = {**TRANSITIONS, "issue": {**TRANSITIONS["issue"], "on_conflict": ["replan", "assess"]}}
    workflows.register(story.world.caller, "refund", "3", VersionSpec(SCHEMA, "assess", declared, ("1", "2")))
    effect = throttled(story, "3")
    story.move_order()
    assert story.wake() == "replan"
    story.claim("3")
    assert story.packet["transition"] == "assess"
    assert story.permit(effect["id"], status=409)["code"] == "not-cleared", "the old plan's call is over"


def test_leave_that_still_holds_is_not_asked_for_twice(story: Story) -> None:
    effect = throttled(story)
    assert story.wake() == "resume"
    story.claim()
    assert story.permit(effect["id"])["permit"]["attempt"] == 2
    assert story.request.revision == 1


def test_a_second_attempt_that_people_refuse_is_theirs_to_end(story: Story) -> None:
    effect = throttled(story)
    story.move_order()
    assert story.wake() == "ask_again"
    story.decide(story.world.alice, "deny", "leave it")
    assert story.wake() == "hand_off", "its leave is gone and no packet would say so"
    handoff = Handoff.objects.of(story.world.tenant).get(run_id=story.run_id)
    assert handoff.reason == "retry:asked_and_refused" and str(handoff.effect_id) == effect["id"]
    story.close_handoff("cancel")
    assert story.wake() == "finish" and story.run()["status"] == "cancelled"


def test_a_key_that_may_be_forgotten_goes_to_a_person_at_once_and_their_word_gives_one_attempt(
    story: Story, clock: Clock
) -> None:
    effect = throttled(story)
    clock.shift(86_400)
    assert story.wake() == "hand_off"
    handoff = Handoff.objects.of(story.world.tenant).get(run_id=story.run_id)
    assert handoff.reason == "retry:key_forgotten" and str(handoff.effect_id) == effect["id"]
    story.judge(effect["id"], "confirmed_absent")
    handoff.refresh_from_db()
    assert handoff.state == "withdrawn" and story.wake() == "ask_again", "the leave's use-by is long past"
    story.approve()
    assert story.wake() == "resume"
    story.claim()
    assert story.permit(effect["id"])["permit"]["attempt"] == 2
    story.settle(effect["id"], "failed", attempt=2, cause="throttled")
    assert story.permit(effect["id"])["permit"]["attempt"] == 3, "the target knows the key anew"


def test_a_person_who_only_wakes_the_run_lets_the_agent_go_on_without_the_call(story: Story, clock: Clock) -> None:
    effect = throttled(story)
    clock.shift(86_400)
    assert story.wake() == "hand_off"
    story.close_handoff("wake")
    assert story.wake() == "resume"
    assert story.claim()["decision"]["without"] == {effect["id"]: "key_forgotten"}
    text = story.http.get(f"/runs/{story.run_id}/resume-packet.md").content.decode()
    assert "A person let the run go on without it (key_forgotten): don't try it again." in text
    assert story.permit(effect["id"], status=410)["code"] == "expired"
    assert story.wake() == "hand_off", "the agent tried it all the same"
    assert Permit.objects.of(story.world.tenant).filter(effect_id=effect["id"]).count() == 1


def test_what_a_person_said_holds_while_the_engine_only_waits_for_a_target(story: Story, clock: Clock) -> None:
    story.world.policy(({"tool": "*", "verdict": "allow"},))
    story.begin()
    step = {"kind": "go_on", "transition": "issue"}
    made = story.commit(step, propose=[PAY, {**PAY, "name": "fee"}])["effects"]
    story.wake()
    story.claim()
    story.permit(made["pay"]["id"])
    story.settle(made["pay"]["id"], "failed", cause="throttled")
    give_back(story)
    clock.shift(86_400)
    assert story.wake() == "hand_off"
    story.close_handoff("wake")
    for _ in range(2):
        story.shop.arm("error_500_not_applied", path="/orders/17", method="GET", times=1)
        assert story.wake() == "retry_later"
        clock.shift(120)
        assert waits.expire_due(story.run_id)
    assert story.wake() == "resume", "and not to the same person with the same question"
    assert story.claim()["decision"]["without"] == {made["pay"]["id"]: "key_forgotten"}
    assert story.permit(made["fee"]["id"])["permit"]["attempt"] == 1
    assert story.intact()


def test_what_is_denied_by_now_or_was_refused_is_told_to_the_agent_whom_a_person_wakes(story: Story) -> None:
    effect = throttled(story)
    story.move_order()
    assert story.wake() == "ask_again"
    story.decide(story.world.alice, "deny", "leave it")
    assert story.wake() == "hand_off"
    story.close_handoff("wake")
    assert story.wake() == "resume"
    assert story.claim()["decision"]["without"] == {effect["id"]: "asked_and_refused"}
    give_back(story)
    story.world.policy(({"tool": "*", "verdict": "deny"},))
    assert story.wake() == "hand_off"
    story.close_handoff("wake")
    assert story.wake() == "resume"
    assert effect["id"] in story.claim()["decision"]["without"]


def test_a_run_that_nobody_handed_over_goes_on_without_nothing(story: Story) -> None:
    throttled(story)
    assert story.wake() == "resume"
    assert story.claim()["decision"]["without"] == {}


def lost_wire(story: Story, clock: Clock) -> Json:
    """A wire whose call nobody can ask about: its worker is gone, and its run with a person."""
    targets.register(story.world.admin, TargetSpec("wires", f"http://{story.service.host}", keyed=False, private=True))
    story.world.policy(({"tool": "*", "verdict": "allow"},))
    story.begin()
    story.commit({"kind": "go_on", "transition": "issue"}, propose=[WIRE])
    story.wake()
    story.claim()
    effect = story.effect("wire")
    story.permit(effect["id"])
    lost(story, clock)
    return effect


def lost(story: Story, clock: Clock) -> None:
    """The worker is gone with its call out; the target can't be asked, and the call can no longer arrive."""
    clock.shift(120)
    story.sweep()
    story.sweep()
    assert (story.effect("wire")["state"], story.run()["status"]) == ("unknown", "blocked")


def test_a_person_who_found_that_nothing_happened_lets_it_be_sent_once_more_and_no_oftener(
    story: Story, clock: Clock
) -> None:
    effect = lost_wire(story, clock)
    page = html.unescape(story.page(effect["id"]))
    assert "The agent may send “wire” once more. wires knows no keys: be sure, or it happens twice." in page
    told = html.unescape(story.judge(effect["id"], "confirmed_absent"))
    assert "the agent may send it once more, and no further time without another such finding" in told
    assert "same key" not in told
    assert story.wake() == "resume"
    story.claim()
    assert story.permit(effect["id"])["permit"]["attempt"] == 2
    lost(story, clock)
    assert "once more" in story.judge(effect["id"], "confirmed_absent")
    assert story.wake() == "resume"
    story.claim()
    assert story.permit(effect["id"])["permit"]["attempt"] == 3
    story.settle(effect["id"], "committed", attempt=3, reference="w_1")
    verdicts = EffectReport.objects.of(story.world.tenant).filter(effect_id=effect["id"], kind="verdict")
    assert list(verdicts.order_by("ordinal").values_list("attempt", "counted")) == [(1, True), (2, True)]
    assert story.commit("complete")["status"] == "completed" and story.intact()


def test_what_a_person_found_refused_is_not_sent_again(story: Story, clock: Clock) -> None:
    effect = lost_wire(story, clock)
    story.judge(effect["id"], "rejected")
    assert story.wake() == "resume"
    story.claim()
    assert story.permit(effect["id"], status=409)["code"] == "wrong-state"


def test_a_finding_that_is_contradicted_gives_no_leave(story: Story, clock: Clock) -> None:
    effect = lost_wire(story, clock)
    gone = dict(story.packet)
    story.judge(effect["id"], "confirmed_absent")
    story.settle(effect["id"], "committed", packet=gone, reference="w_1")
    assert story.effect("wire")["state"] == "unknown", "the lost worker says that it was done"
    assert story.wake() != "resume"
