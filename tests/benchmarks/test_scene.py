"""The measured runs are real: each golden run's copies go on as the verb that is measured on them expects."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from typing import Any

import pytest

from benchmarks.acts import VERBS, Item
from benchmarks.loader import Golden, golden, load
from benchmarks.rates import counted, offered
from benchmarks.scene import GOLDEN, Scene, document
from benchmarks.wire import Inside
from ledger.domain.canonical import canonical
from ledger.engine import wakes
from ledger.models import RunHead
from ledger.services import verify

pytestmark = pytest.mark.postgres_only
SIZE = 1024


@pytest.fixture(scope="module")
def scene(django_db_setup: None, django_db_blocker: Any) -> Iterator[tuple[Scene, dict[str, Golden]]]:
    with django_db_blocker.unblock():
        made = Scene()
        yield (
            made,
            {name: golden(GOLDEN[name](made, SIZE)) for name in sorted(GOLDEN, key=lambda each: each == "ready")},
        )


Made = tuple[Scene, dict[str, Golden]]


def items(made: Golden, count: int, first: int) -> list[Item]:
    copies = load(made, count, first=first, shift=lambda number: timedelta(0))
    return [Item(run_id, word) for run_id, word in zip(copies.ids, copies.words, strict=True)]


@pytest.mark.parametrize("place", ["in-process", "http"])
@pytest.mark.parametrize("name", VERBS)
def test_each_verb_acts_on_loaded_runs_and_their_records_verify(scene: Made, name: str, place: str) -> None:
    verb = VERBS[name]
    if verb.over_http is None and place == "http":
        assert name.startswith("wake")
        return
    made, known = scene
    some = items(known[verb.golden], 4, 1_000 * (list(VERBS).index(name) + 1) + 100 * (place == "http"))
    if place == "in-process":
        acts = verb.inside(made.seat, some, SIZE)
    else:
        assert verb.over_http is not None
        acts = verb.over_http(made.seat, some, SIZE, Inside(made.seat.agent), Inside(made.seat.person))
    assert len(list(islice(acts, 3))) == 3
    assert all(verify.run(item.run_id).intact for item in some)


def test_the_statements_of_an_act_are_counted(scene: Made) -> None:
    made, known = scene
    acts = VERBS["commit"].inside(made.seat, items(known["running"], 1, 90_000), SIZE)
    assert counted(acts) == 2


def test_a_run_whose_request_was_approved_is_cleared_to_go_on(scene: Made) -> None:
    made, known = scene
    some = items(known["asked"], 2, 91_000)
    assert len(list(islice(VERBS["decide"].inside(made.seat, some, SIZE), 1))) == 1
    woken = RunHead.objects.of(made.seat.tenant_id).get(run_id__in=[item.run_id for item in some], status="waking")
    assert str(wakes.run(woken.run_id)) == "resume"


@pytest.mark.parametrize("size", [1024, 4096])
def test_a_state_has_about_the_size_that_is_asked_for(size: int) -> None:
    assert size * 0.9 < len(canonical(document(size))) <= size


def test_every_figure_has_a_name_of_its_own() -> None:
    names = [rate.name for rate in offered()]
    assert len(set(names)) == len(names) and {"commit in-process 1", "commit http 8", "commit 4 KiB http 8"} <= set(
        names
    )
