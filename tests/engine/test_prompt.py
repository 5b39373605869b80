"""Wakes at once: the process that wrote a cause decides the wake, and whatever it can't take is left to queue and sweep."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event
from uuid import UUID, uuid4

import pytest
from django.conf import settings
from django.db import connection
from django_q.models import OrmQ

from ledger.engine import prompt, wakes
from ledger.services import hints
from tests.engine.waking import asking, say
from tests.patience import until
from tests.shop import Shop
from tests.world import World


@pytest.fixture(autouse=True)
def serving(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(settings, "RESUMEAPP_HINTS", True)
    hints._sent.clear()
    yield
    hints._served.clear()


class Line(prompt.Prompt):
    """Gives its connection back after each wake, because the test's database goes away while the thread stays."""

    def _wake(self, run_id: UUID) -> None:
        super()._wake(run_id)
        connection.close()


def test_an_approval_is_acted_on_without_queue_and_sweep(world: World, shop: Shop) -> None:
    hints.serve(Line().take)
    run_id = asking(world)
    OrmQ.objects.all().delete()
    say(world, world.alice, run_id)
    until(lambda: world.head(run_id).status == "ready", "the run to be ready")
    assert not OrmQ.objects.exists(), "the queue needn't hear of it"


def test_what_cannot_be_taken_now_is_told_to_the_queue(world: World, shop: Shop) -> None:
    hints.serve(lambda run_id: False)
    run_id = asking(world)
    OrmQ.objects.all().delete()
    say(world, world.alice, run_id)
    assert OrmQ.objects.count() == 1 and world.head(run_id).status == "waking"


def test_a_wake_that_fails_stays_due_and_the_next_one_is_done(
    world: World, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    line, failing, seen = Line(), uuid4(), list[UUID]()
    real = wakes.run

    def run(run_id: UUID) -> object:
        seen.append(run_id)
        if run_id == failing:
            raise ValueError("no")
        return real(run_id)

    monkeypatch.setattr(wakes, "run", run)
    run_id = asking(world)
    say(world, world.alice, run_id)
    assert line.take(failing) and line.take(run_id)
    until(lambda: world.head(run_id).status == "ready", "the run to be ready")
    assert seen == [failing, run_id]


def test_a_crowd_and_whatever_stands_behind_a_slow_wake_go_to_the_queue(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    line, going_on, begun = Line(), Event(), Event()

    def run(run_id: UUID) -> None:
        begun.set()
        going_on.wait(60)

    monkeypatch.setattr(wakes, "run", run)
    monkeypatch.setattr(prompt, "SLOW", 3600)
    assert line.take(uuid4()) and begun.wait(60)
    assert [line.take(uuid4()) for _ in range(prompt.LENGTH + 1)] == [True] * prompt.LENGTH + [False]
    monkeypatch.setattr(prompt, "SLOW", 0)
    quick = Line()
    begun.clear()
    assert quick.take(uuid4()) and begun.wait(60)
    assert not quick.take(uuid4())
    going_on.set()
