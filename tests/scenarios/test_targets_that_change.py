"""A target that is registered anew at another address, or with other guarantees, is another thing than the one that people gave leave for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection

from ledger.domain.targets import APPROVED_ON
from ledger.models import Effect, Grant, Observation, Target
from ledger.services import verify
from tests.documents import OBSERVE
from tests.meeting import Elsewhere
from tests.scenarios.story import APPROVAL, PAY, Story, waiting
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


OF_TENANT = "ORDER BY t.name"
"""What reads the targets before they are asked has it, and nothing else of a commit."""


@contextmanager
def after_the_look(act: Callable[[], None]) -> Iterator[None]:
    """The act happens once the target has answered, before the record is read for what is to be proposed."""
    elsewhere = Elsewhere(act)
    asked: list[str] = []

    def wrapper(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if "ledger_run_head" in sql and asked:
            elsewhere.once()
        elif OF_TENANT in sql:
            asked.append(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(wrapper):
        yield
    assert elsewhere.happened.is_set()


def test_a_look_at_the_target_as_it_was_is_made_again_before_anything_is_proposed_on_it(
    story: Story, world: World
) -> None:
    story.begin()
    with after_the_look(lambda: story.register_target(first_result_replayed=True)):
        story.commit(waiting(APPROVAL), propose=[PAY])
    effect = Effect.objects.of(world.tenant).get(run_id=story.run_id)
    seen = Observation.objects.of(world.tenant).get(pk=effect.observation_id)
    assert seen.observed_at >= Target.objects.of(world.tenant).get(name="payments").guaranteed_at
    story.approve()
    assert story.wake() == "resume" and story.intact()


def test_a_look_at_an_address_that_the_target_has_no_more_binds_nothing(story: Story, world: World) -> None:
    story.begin()
    with after_the_look(lambda: story.register_target(base_url="http://127.0.0.1:9")):
        told = story.commit(waiting(APPROVAL), propose=[PAY], status=409)
    assert told["code"] == "target-unreachable"
    assert not Effect.objects.of(world.tenant).filter(run_id=story.run_id).exists()
    assert story.run()["status"] == "running", "it may be proposed again"


def test_a_call_that_needs_nobody_s_leave_isn_t_made_on_a_look_at_the_target_as_it_was(
    story: Story, world: World
) -> None:
    world.policy(({"tool": "*", "verdict": "allow"},))
    story.begin()
    story.commit({"kind": "go_on", "transition": "issue"}, propose=[PAY])
    assert story.wake() == "resume"
    story.claim()
    looks = Observation.objects.of(world.tenant).count()
    story.register_target(first_result_replayed=True)
    assert story.permit(story.effect()["id"])["permit"]["attempt"] == 1
    assert Observation.objects.of(world.tenant).count() == looks + 1, "it was looked at again"
