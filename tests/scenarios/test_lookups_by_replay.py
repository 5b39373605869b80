"""A look-up by replay is a call: where the first one never arrived, it acts. It needs what a call needs, and counts as one that is out."""

from __future__ import annotations

from typing import Any

from ledger.engine import sweep
from ledger.models import Effect, Handoff
from ledger.services import leases
from tests.clock import Clock
from tests.documents import REPLAY
from tests.patience import until
from tests.scenarios.story import PAY, Story
from tests.scenarios.test_repeated_words import issuing
from tests.ui.asking import address, client_of
from tests.world import World


def called(story: Story, *, approved: bool, **target: Any) -> str:
    """A refund that was permitted, at a target which is looked up by replay, and whose call never left: its id."""
    story.register_target(lookup=REPLAY, first_result_replayed=True, **target)
    if approved:
        story.ask()
        story.approve()
        assert story.wake() == "resume"
        story.claim("1")
    else:
        issuing(story, story.world, PAY)
    effect_id: str = story.effect()["id"]
    story.permit(effect_id)
    return effect_id


def lost(story: Story, clock: Clock) -> None:
    clock.shift(100)
    leases.lapse(story.run_id)


def made(story: Story) -> tuple[int, int]:
    """(requests, refunds) of the call, by the service's own log."""
    return story.counted(str(Effect.objects.of(story.world.tenant).get(run_id=story.run_id).key))


def handed(story: Story) -> list[tuple[str, str]]:
    rows = Handoff.objects.of(story.world.tenant).filter(run_id=story.run_id, state="open")
    return [(handoff.reason, str(handoff.effect_id)) for handoff in rows]


def test_a_call_that_never_left_is_made_by_its_replay_while_its_leave_stands(story: Story, clock: Clock) -> None:
    called(story, approved=True)
    lost(story, clock)
    sweep.sweep(1_000)
    assert made(story) == (1, 1) and story.effect()["state"] == "committed"


def test_leave_that_was_taken_back_stops_the_replay_and_a_person_is_asked(
    story: Story, world: World, clock: Clock
) -> None:
    effect_id = called(story, approved=True)
    lost(story, clock)
    alice = client_of(world.alice)
    told = alice.post(address(world, story.request, "approval_revoke"), headers={"HX-Request": "true"})
    assert "further attempts are stopped" in told.content.decode()
    sweep.sweep(1_000)
    assert made(story) == (0, 0)
    assert story.effect()["state"] == "unknown" and handed(story) == [("reconcile-gave-up", effect_id)]
    assert "its approval was taken back" in story.page(effect_id)
    page = story.page(effect_id)
    assert story.operate(effect_id, "ask", page).status_code == 302, "not for a person who asks either"
    assert made(story) == (0, 0)
    assert story.intact()


def test_nothing_is_replayed_of_a_run_that_has_ended(story: Story, clock: Clock) -> None:
    effect_id = called(story, approved=False)
    first = story.packet
    story.settle(effect_id, "failed", cause="rejected")
    story.commit("complete")
    assert story.settle(effect_id, "committed", packet=first, reference="re-1")["counted"]
    sweep.sweep(1_000)
    assert made(story) == (0, 0)
    assert story.effect()["state"] == "unknown" and handed(story) == [("effect-contradicted", effect_id)]
    assert "has ended" in story.page(effect_id) and story.intact()


def test_not_done_cannot_be_said_while_a_replay_is_still_on_its_way_to_a_slow_target(
    story: Story, clock: Clock
) -> None:
    effect_id = called(story, approved=False, call_limit=1)
    lost(story, clock)
    story.shop.arm("slow", seconds=2.5)
    sweep.sweep(1_000)
    assert story.effect()["state"] == "unknown" and made(story)[1] == 0
    page = story.page(effect_id)
    assert "Possible once the call can no longer arrive" in page
    answer = story.operate(effect_id, "verdict", page, verdict="confirmed_absent")
    assert answer.status_code == 422 and "the call may still arrive until" in answer.content.decode()
    until(lambda: made(story)[1] == 1, "the slow service does what it was sent")
    clock.shift(60)
    sweep.sweep(1_000)
    assert story.effect()["state"] == "committed" and made(story)[1] == 1
    assert story.intact()
