"""What the text of a Change's statement depends on: a verb has few shapes, and texts are kept by shape."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ledger.domain import journal
from ledger.domain.change import Change, Insert, Kind

Rows = Mapping[str, Sequence[Mapping[str, Any]]]


class Shape(NamedTuple):
    """What guards a Change, and which columns of which tables it writes, without any value.

    Texts are kept by shape, so that a call only gathers its parameters, and the driver and the server meet the same text.
    """

    kind: Kind
    opens: bool
    by_tenant: bool
    by_time: bool
    inserts: tuple[tuple[str, int], ...]
    moves: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]
    head: tuple[str, ...]
    about: bool


def by_table(inserts: Sequence[Insert]) -> Rows:
    """New rows by their tables, in the order in which these come first."""
    grouped: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for insert in inserts:
        grouped[insert.table].append(insert.row)
    return grouped


def shape_of(change: Change, rows: Rows) -> Shape:
    """The shape of a Change whose new rows are these."""
    return Shape(
        change.stream.kind,
        change.expect_seq == 0,
        change.tenant_seq is not None,
        change.not_after is not None,
        tuple([(record, len(each)) for record, each in rows.items()]),
        tuple([(move.table, tuple(move.set), tuple(move.expect)) for move in change.moves]),
        tuple(change.head),
        any(journal.concerned(journal.written(change))),
    )
