"""Where a row's machine stood stands in each entry that moves it, and is checked against the entries before: without a row, from the chain alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from ledger.domain.change import Change, Insert, Kind, Move, Stream
from ledger.domain.journal import Journalled, StoredEntry, entry, parsed
from ledger.domain.moves import check_moves

RUN, TENANT, ROW = UUID(int=1), UUID(int=2), UUID(int=3)
TABLES = {
    "run_head": Journalled(frozenset({"status", "asks"}), machine="status"),
    "wake": Journalled(frozenset({"id", "state", "attempt"}), machine="state"),
    "instance": Journalled(frozenset({"id", "left_at"}), machine="left_at"),
    "target": Journalled(frozenset({"id", "kind"})),
}


def written(seq: int, **parts: Any) -> dict[str, Any]:
    """The entry of a change with these parts, as its bytes say it."""
    stream = Stream(Kind.RUN, RUN, TENANT, bytes(16))
    change = Change(stream, seq, datetime(2026, 1, 1, tzinfo=UTC), "system:test", "test.write", **parts)
    document = parsed(entry(change, TABLES.__getitem__))
    assert document is not None
    return document


def line(document: Mapping[str, Any], table: str) -> dict[str, Any]:
    """Of an entry, the line about a table's row, without the row's name."""
    (found,) = [each for each in document["changes"] if each["object"].startswith(f"{table}:")]
    return {name: value for name, value in found.items() if name != "object"}


def test_a_row_that_is_opened_comes_from_nowhere() -> None:
    opened = written(0, head={"status": "waking"}, inserts=(Insert("wake", {"id": ROW, "state": "queued"}),))
    assert line(opened, "run_head") == {"fields": {"status": "waking"}, "to": "waking"}
    assert line(opened, "wake") == {"fields": {"id": str(ROW), "state": "queued"}, "to": "queued"}


def test_a_run_s_own_move_says_from_where_its_rule_read_it() -> None:
    moved = written(4, head={"status": "waking"}, head_was={"status": "running"})
    assert line(moved, "run_head") == {"fields": {"status": "waking"}, "from": "running", "to": "waking"}


def test_a_row_that_is_touched_and_stays_where_it_is_says_where_that_is() -> None:
    move = Move("wake", ROW, {"state": "queued", "attempt": 1}, {"attempt": 2})
    touched = written(4, head={"asks": 1}, head_was={"status": "ready"}, moves=(move,))
    assert line(touched, "run_head") == {"fields": {"asks": 1}, "from": "ready"}
    assert line(touched, "wake") == {"fields": {"attempt": 2}, "from": "queued"}


def test_from_nothing_is_said_aloud() -> None:
    left = written(4, moves=(Move("instance", ROW, {"left_at": None}, {"left_at": "2026"}),))
    assert line(left, "instance") == {"fields": {"left_at": "2026"}, "from": None, "to": "2026"}


def test_a_table_without_a_machine_says_only_what_is_set() -> None:
    moved = written(4, moves=(Move("target", ROW, {"kind": "a"}, {"kind": "b"}),))
    assert line(moved, "target") == {"fields": {"kind": "b"}}


@pytest.mark.parametrize(
    "parts",
    [
        {"moves": (Move("wake", ROW, {"attempt": 1}, {"attempt": 2}),)},
        {"moves": (Move("wake", ROW, {}, {"state": "closed"}),)},
        {"head": {"asks": 1}},
        {"inserts": (Insert("wake", {"id": ROW, "attempt": 0}),)},
    ],
    ids=["touched", "moved", "head", "opened"],
)
def test_nothing_is_moved_from_where_nobody_read_it(parts: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="nothing says where"):
        written(4, **parts)


OPENED = {"object": "wake:3", "fields": {"state": "queued"}, "to": "queued"}
TAKEN = {"object": "wake:3", "fields": {"state": "checking"}, "from": "queued", "to": "checking"}
TRIED = {"object": "wake:3", "fields": {"attempt": 2}, "from": "checking"}


def faults(*lines: Mapping[str, Any]) -> list[tuple[int | None, str]]:
    """What is wrong with a chain of entries of one line each."""
    frame = {"stream": "run:1", "at": "", "actor": "", "verb": ""}
    entries = [
        StoredEntry(seq, json.dumps({**frame, "seq": seq, "changes": [each]}).encode(), b"")
        for seq, each in enumerate(lines, 1)
    ]
    found = check_moves(entries, lambda table: TABLES[table].machine)
    return [(fault.seq, fault.code) for fault in found]


def without(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key != name}


def test_a_chain_whose_moves_follow_one_another_has_no_fault() -> None:
    assert faults(OPENED, TAKEN, TRIED, {**TRIED, "fields": {"state": "closed"}, "to": "closed"}) == []


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ((TAKEN,), (1, "from-differs")),
        ((OPENED, {**TAKEN, "from": "closed"}), (2, "from-differs")),
        ((OPENED, {**TAKEN, "from": None}), (2, "from-differs")),
        ((OPENED, TAKEN, {**TRIED, "from": "queued"}), (3, "from-differs")),
        ((OPENED, without(TAKEN, "from")), (2, "from-missing")),
        ((OPENED, OPENED), (2, "from-missing")),
        ((OPENED, TAKEN, without(TRIED, "from")), (3, "from-missing")),
        ((OPENED, {**TAKEN, "to": "closed"}), (2, "to-differs")),
        ((OPENED, without(TAKEN, "to")), (2, "to-differs")),
        ((OPENED, TAKEN, {**TRIED, "to": "checking"}), (3, "to-differs")),
    ],
)
def test_a_move_that_the_entries_before_don_t_bear_out_is_located(
    lines: tuple[Mapping[str, Any], ...], found: tuple[int, str]
) -> None:
    assert faults(*lines) == [found]
