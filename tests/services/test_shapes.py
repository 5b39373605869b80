"""The texts of the writer's statements are kept by shape: a text holds no value, and Changes that differ in anything else don't share one."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import combinations
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection

from ledger.domain.change import Change, Insert, Kind, Move, Stream
from ledger.services import several, writer
from ledger.services.shapes import by_table, shape_of
from tests.world import World

NOW = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)


def _wake(**more: Any) -> Insert:
    return Insert("wake", {"id": uuid4(), "run_id": uuid4(), "state": "queued", **more})


def _move(**values: Any) -> Move:
    return Move("wake", uuid4(), {"state": "queued"}, values)


def _change(**over: Any) -> Change:
    stream = Stream(Kind.RUN, uuid4(), uuid4(), b"salt")
    plain: dict[str, Any] = {"head": {"moved_at": NOW}, "inserts": (_wake(),), "moves": (_move(state="checking"),)}
    return Change(**{"stream": stream, "expect_seq": 3, "at": NOW, "actor": "a", "verb": "v", **plain, **over})


def _text(change: Change) -> str:
    return writer._text(shape_of(change, by_table(change.inserts)))


def _holes(change: Change) -> int:
    return len(writer._params(change, b"{}", by_table(change.inserts)))


CHANGES = {
    "as it is": _change(),
    "opens": _change(expect_seq=0),
    "by tenant": _change(tenant_seq=7),
    "by time": _change(not_after=NOW),
    "two rows": _change(inserts=(_wake(), _wake())),
    "about a target": _change(
        inserts=(Insert("observation", {"id": uuid4(), "run_id": uuid4(), "target_id": uuid4()}),)
    ),
    "of the same table, about none": _change(inserts=(Insert("observation", {"id": uuid4(), "run_id": uuid4()}),)),
    "another table": _change(inserts=(Insert("lease", {"run_id": uuid4()}),)),
    "no rows": _change(inserts=()),
    "other columns": _change(moves=(_move(state="checking", attempt=1),)),
    "another order of columns": _change(moves=(_move(attempt=1, state="checking"),)),
    "other expectations": _change(moves=(Move("wake", uuid4(), {"attempt": 1}, {"state": "checking"}),)),
    "no expectation": _change(moves=(Move("wake", uuid4(), {}, {"state": "checking"}),)),
    "two moves": _change(moves=(_move(state="checking"), _move(state="checking"))),
    "more of the head": _change(head={"moved_at": NOW, "status": "ready"}),
    "nothing of the head": _change(head={}),
    "a tenant's": _change(stream=Stream(Kind.TENANT, uuid4(), uuid4(), b"salt"), head={}),
    "an event's": _change(stream=Stream(Kind.EVENT, uuid4(), uuid4(), b"salt"), expect_seq=0, head={}),
}


def test_changes_that_differ_in_more_than_values_have_texts_of_their_own() -> None:
    for (one, first), (other, second) in combinations(CHANGES.items(), 2):
        assert _text(first) != _text(second), f"{one} and {other}"


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_a_text_has_a_hole_for_each_value_and_none_of_them_in_it(change: Change) -> None:
    assert _text(change).count("%s") == _holes(change)
    assert "%" not in _text(change).replace("%s", "")
    for value in writer._params(change, b"{}", by_table(change.inserts)):
        assert not (isinstance(value, str) and len(value) > 20 and value in _text(change))


@pytest.mark.parametrize(
    "change", [change for change in CHANGES.values() if change.expect_seq], ids=lambda each: each.verb
)
def test_so_has_the_text_for_many_which_does_not_grow_with_them(change: Change) -> None:
    sent: list[tuple[str, list[Any]]] = []
    for count in (1, 3):
        several.apply([change] * count, [b"{}"] * count, lambda sql, params: sent.append((sql, params)) or [])
    (text, params), (same, more) = sent
    assert text.count("%s") == len(params) == len(more) and text == same
    assert "%" not in text.replace("%s", "")
    assert not [value for value in more if len(value) > 20 and value in text]


def test_other_values_meet_the_same_text() -> None:
    other = replace(
        _change(inserts=(_wake(attempt=2**40),), moves=(_move(state=None),)), expect_seq=2**40, actor="b", verb="w"
    )
    assert _text(other) is _text(_change())


def test_texts_are_kept_in_bounds() -> None:
    for kept in (writer._text, several._text):
        size = kept.cache_info().maxsize
        assert size is not None and size <= 1024


@pytest.mark.postgres_only
def test_the_size_of_a_number_makes_no_other_plan(world: World) -> None:
    """The driver tells the server how wide a number is, and a plan is of one width: numbers go as text, which the hole casts."""
    run_id = world.claimed_run().run.id
    head = world.head(run_id)
    stream = Stream(Kind.RUN, run_id, world.tenant.pk, bytes(head.salt))

    def moved(asks: int, seq: int) -> None:
        was = {"status": head.status}
        writer.apply(Change(stream, seq, NOW, "system:test", "test.write", head={"asks": asks}, head_was=was))

    connection.close()  # the driver gives up plans that weren't used for long: on a new connection there are only this test's
    for number in range(12):
        moved(70_000 * (number % 2), head.head_seq + number)
    assert _plans() == 1
    with connection.cursor() as cursor:
        cursor.execute("SELECT asks FROM ledger_run_head WHERE run_id = %s", [run_id])
        assert cursor.fetchone() == (70_000,)


def _plans() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE %s", ["WITH head AS%asks = $%"]
        )
        found: int = cursor.fetchone()[0]
        return found
