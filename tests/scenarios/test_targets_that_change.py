"""A target that is registered anew at another address, or with other guarantees, is another thing than the one that people gave leave for."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.domain.targets import APPROVED_ON
from ledger.models import Grant
from ledger.services import verify
from tests.documents import OBSERVE
from tests.scenarios.story import Story
from tests.world import World

OTHERWISE: dict[str, dict[str, Any]] = {
    "base_url": {"base_url": "http://127.0.0.1:9"},
    "private": {"private": False},
    "keyed": {"keyed": False, "key_retention": 0, "lookup": None},
    "key_retention": {"key_retention": 3_600},
    "first_result_replayed": {"first_result_replayed": True},
    "lookup": {"lookup": None},
    "observe": {"observe": {**OBSERVE, "path": "/refunds?order={resource}"}},
    "material": {"material": ("/amount_minor",)},
}


def test_every_part_of_a_target_that_leave_rests_on_is_changed_here() -> None:
    assert {*OTHERWISE, "kind"} == {*APPROVED_ON}, "kind has one value, http"


@pytest.mark.parametrize("change", OTHERWISE.values(), ids=OTHERWISE)
def test_leave_for_a_target_as_it_was_is_no_leave_for_it_as_it_is(
    story: Story, world: World, change: dict[str, Any]
) -> None:
    effect = story.ask()
    story.approve()
    assert story.wake() == "resume"
    story.claim("1")
    story.register_target(**change)
    told = story.permit(effect["id"], status=412)
    assert told["code"] == "grant-void" and told["facts"]["why"] == "target-changed"
    assert verify.tenant(world.tenant.pk).intact


def test_leave_that_was_given_for_what_stood_on_the_card_before_the_change_is_asked_for_again(
    story: Story, world: World
) -> None:
    story.ask()
    story.register_target(first_result_replayed=True)
    story.approve()
    assert story.wake() == "ask_again", "the card was of the target before"
    story.approve()
    assert story.wake() == "resume"


def test_times_may_change_and_leave_stays(story: Story, world: World) -> None:
    effect = story.ask()
    story.approve()
    assert story.wake() == "resume"
    story.claim("1")
    story.register_target(freshness=200, call_limit=4)
    assert story.permit(effect["id"])["permit"]["attempt"] == 1
    assert Grant.objects.of(world.tenant).get(run_id=story.run_id).state == "used"
