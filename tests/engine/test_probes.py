"""Targets that say nothing: a wake asks for each resource once, waits for no longer than it may, and looks again later."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic
from uuid import UUID

import pytest

from ledger.domain.commits import Next, NextKind
from ledger.models import WakeCheck
from tests.engine.waking import check, commit, pay, wake
from tests.services.issuing import ANYTHING
from tests.shop import Shop, open_shop, register
from tests.world import World

pytestmark = pytest.mark.usefixtures("quick")
CHECK_SECONDS = 6


@pytest.fixture
def quick(settings: pytest.FixtureRequest) -> None:
    settings.RESUMEAPP_CHECK_SECONDS = CHECK_SECONDS  # type: ignore[attr-defined]


@pytest.fixture
def other(world: World) -> Iterator[Shop]:
    """A second shop, as the world's target `payments`."""
    with open_shop() as opened:
        register(world, opened, "payments")
        yield opened


def resting_on(world: World, *resources: str, also: str = "") -> UUID:
    """A run that is to be woken, with an effect on each of these of the shop's orders, and on one of the other shop's."""
    world.policy(ANYTHING)
    effects = [pay("shop", resource, name=f"pay{number}") for number, resource in enumerate(resources)]
    effects += [pay("payments", also, name="also")] if also else []
    return commit(world, world.claimed_run(), Next(NextKind.GO_ON, "issue"), *effects)


def test_a_resource_is_asked_for_once_however_many_effects_rest_on_it(world: World, shop: Shop) -> None:
    run_id = resting_on(world, "17", "17", "17", "18")
    before = shop.asked
    assert wake(world, run_id).decision == "resume"
    assert shop.asked - before == 2


def test_silence_ends_a_wake_in_time_and_it_looks_again_later(world: World, shop: Shop, other: Shop) -> None:
    run_id = resting_on(world, "17", "18", "19", "20", "21", also="17")
    shop.goes_on.clear()
    shop.most, begun = 0, monotonic()
    decision = wake(world, run_id)
    assert decision.decision == "retry_later" and monotonic() - begun < CHECK_SECONDS
    assert shop.most == 2, "a quarter of what is out at once"
    rows = WakeCheck.objects.of(world.tenant).filter(decision=decision, name="target")
    answers = sorted(rows.values_list("answer", flat=True))
    assert answers == ["cannot_tell"] * 5 + ["pass"], "the other target isn't kept waiting"
    assert world.head(run_id).status == "waiting"


def test_a_target_that_stayed_silent_is_not_waited_for_again(world: World, shop: Shop) -> None:
    first, second = (resting_on(world, "17", "18", "19", "20") for _ in range(2))
    run_id = resting_on(world, "17")
    shop.goes_on.clear()
    for silent in (first, second):
        assert wake(world, silent).decision == "retry_later"
    asked, begun = shop.asked, monotonic()
    decision = wake(world, run_id)
    assert decision.decision == "retry_later" and monotonic() - begun < CHECK_SECONDS / 3
    assert check(world, decision, "target").reason == "breaker-open" and shop.asked == asked
