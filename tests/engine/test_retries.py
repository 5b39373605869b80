"""A target that can't be asked: who reads of it learns which, why, when it is asked again and when a person gets it, and that is what happens."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from django.urls import reverse

from approvals.services import run_lists
from approvals.services.run_lists import Filter
from ledger.domain.decisions import LONGEST_BACK_OFF, RETRIES, back_off, given_up
from ledger.models import Decision, Handoff, WaitSet
from ledger.services import explain, waits
from tests.clock import Clock
from tests.engine.waking import asking, last_wait, say, wake
from tests.shop import Shop
from tests.ui.asking import client_of
from tests.world import World

START = datetime(2026, 1, 1, tzinfo=UTC)


def unreachable(world: World, shop: Shop) -> UUID:
    """An approved run whose target hangs up on whoever asks, as its first wake found it."""
    run_id = asking(world)
    say(world, world.alice, run_id)
    shop.hangs_up = True
    assert wake(world, run_id).decision == "retry_later"
    return run_id


def test_it_says_what_could_not_be_asked_about_what_and_why_and_who_can_move_it(world: World, shop: Shop) -> None:
    run_id = unreachable(world, shop)
    told = explain.explain(run_id)
    assert "“issue” can't go on: shop couldn't be asked about 17 (no reply)" in told.sentence
    assert told.actor == "the engine, or whoever runs shop"
    page = client_of(world.charlie).get(reverse("run", args=[world.tenant.slug, run_id])).content.decode()
    listed = next(iter(run_lists.runs(world.charlie, world.tenant, Filter()).rows)).why
    assert told.sentence == listed and listed.split("(")[0].replace("'", "&#x27;") in page


def test_nothing_says_that_silence_tells_the_agent_that_it_expired(world: World, shop: Shop) -> None:
    run_id = unreachable(world, shop)
    deadline = next(item for item in explain.explain(run_id).items if item.code == "deadline")
    assert deadline.text.startswith("if nothing comes, the engine asks again at ")
    assert deadline.at == last_wait(world, run_id).due_at
    page = client_of(world.charlie).get(reverse("run", args=[world.tenant.slug, run_id])).content.decode()
    assert "The engine asks again" in page and "told that it expired" not in page


def test_an_operator_gets_it_after_as_many_askings_as_were_told_and_at_that_time(
    world: World, shop: Shop, clock: Clock
) -> None:
    run_id = unreachable(world, shop)
    by = given_up(last_wait(world, run_id).opened_at, last_wait(world, run_id).due_at)[1]
    counted = []
    while world.head(run_id).status == "waiting":
        said = explain.explain(run_id).sentence
        counted.append(int((re.search(r"and (\d) more time", said) or ["", "0"])[1]))
        assert ("for the last time" in said) == (counted[-1] == 0) and "an operator gets it" in said
        clock.shift((last_wait(world, run_id).due_at - clock.now()).total_seconds())
        assert waits.expire_due(run_id)
        wake(world, run_id)
    assert counted == list(range(RETRIES - 1, -1, -1))
    handoff = Handoff.objects.of(world.tenant).get(run_id=run_id)
    assert handoff.reason.startswith("target:") and handoff.reason.endswith(":retried_enough")
    assert timedelta(0) <= handoff.opened_at - by < timedelta(minutes=1), "a little later: each asking takes its time"
    own = WaitSet.objects.of(world.tenant).filter(run_id=run_id, internal="retry_later")
    assert set(own.values_list("state", flat=True)) == {"satisfied"}
    kinds = Decision.objects.of(world.tenant).filter(run_id=run_id).order_by("decided_at")
    assert list(kinds.values_list("decision", flat=True)) == ["retry_later"] * RETRIES + ["hand_off"]


@pytest.mark.parametrize("number", range(RETRIES))
def test_from_a_back_off_alone_it_is_known_how_often_the_target_is_asked_yet(number: int) -> None:
    times, by = given_up(START, START + back_off(number))
    assert times == RETRIES - number
    assert by - START == sum((back_off(each) for each in range(number, RETRIES)), timedelta())
    assert back_off(number) <= LONGEST_BACK_OFF
