"""One statement for the Changes of many streams, on PostgreSQL.

Changes of one shape share their CTEs: each column's values go as one array, so that text and plan are the same however many there are. Every
stream has a guard of its own, as in the writer's statement for one: what one loses, the others don't. A head that somebody else holds is passed
over, so that nobody waits for one head while holding another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import chain
from typing import Any

from ledger.domain import journal
from ledger.domain.change import Change, Written
from ledger.models.tables import Table, tables
from ledger.services.shapes import Rows, Shape, by_table, shape_of

Value = str | bytes | None


@dataclass(frozen=True, slots=True)
class _One:
    """A Change with its number among all, its entry's content and its new rows by table."""

    number: int
    change: Change
    content: bytes
    rows: Rows


def apply(
    changes: Sequence[Change], contents: Sequence[bytes], ask: Callable[[str, list[Any]], list[Any]]
) -> list[Written | None]:
    """Apply Changes of different streams that are there already, with the contents of their entries, in one round trip of `ask`.

    None for one whose record moved, whose time has passed, or whose head somebody holds. What `ask` raises (a row that isn't as expected, a
    constraint) goes for all of them, and nothing is written.
    """
    groups: dict[Shape, list[_One]] = {}
    for number, (change, content) in enumerate(zip(changes, contents, strict=True)):
        rows = by_table(change.inserts)
        groups.setdefault(shape_of(change, rows), []).append(_One(number, change, content, rows))
    texts = [_text(shape, f"_{number}") for number, shape in enumerate(groups)]
    sql = f"WITH {', '.join([pieces for pieces, _ in texts])} {' UNION ALL '.join([answer for _, answer in texts])}"
    params = chain.from_iterable(_params(shape, ones) for shape, ones in groups.items())
    written: list[Written | None] = [None] * len(changes)
    for number, digest, moment, _ in ask(sql, list(params)):
        if digest is not None:
            written[number] = Written(changes[number].expect_seq + 1, digest, datetime.fromisoformat(moment))
    return written


def _params(shape: Shape, ones: Sequence[_One]) -> list[str]:
    """The arrays of a group, in the order of the holes in the text of its shape."""
    known = tables()
    params = _arrays(
        [
            (
                str(one.number),
                one.change.stream.id.hex,
                one.change.stream.tenant.hex,
                str(one.change.expect_seq),
                None if one.change.tenant_seq is None else str(one.change.tenant_seq),
                None if one.change.not_after is None else one.change.not_after.isoformat(),
            )
            for one in ones
        ]
    )
    for record, _ in shape.inserts:
        params += _arrays(
            [(str(one.number), *known[record].bound_row(row)) for one in ones for row in one.rows[record]]
        )
    for place, (record, _, _) in enumerate(shape.moves):
        params += _arrays([_move_values(one, place, known[record]) for one in ones])
    params += _arrays([_entry_values(one) for one in ones])
    if shape.about:
        about = [(str(one.number), journal.concerned(journal.written(one.change))) for one in ones]
        for part in (0, 1):
            found = [(number, each.hex) for number, concerned in about for each in concerned[part]]
            params += _arrays(found) if found else ["{}", "{}"]
    if shape.head:
        head = known[journal.HEAD_TABLE[shape.kind]]
        params += _arrays([(str(one.number), *head.bound(one.change.head)) for one in ones])
    return params


def _move_values(one: _One, place: int, table: Table) -> tuple[Value, ...]:
    move = one.change.moves[place]
    return (str(one.number), move.key.hex, *table.bound(move.set), *table.bound(move.expect))


def _entry_values(one: _One) -> tuple[Value, ...]:
    change = one.change
    return (str(one.number), change.at.isoformat(), change.actor, change.verb, one.content)


def _arrays(rows: Iterable[tuple[Value, ...]]) -> list[str]:
    """Rows as one array a column, in PostgreSQL's own notation."""
    return [f"{{{','.join(map(_element, column))}}}" for column in zip(*rows, strict=True)]


def _element(value: Value) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f'"\\\\x{value.hex()}"'
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


@lru_cache(maxsize=1024)
def _text(shape: Shape, tag: str) -> tuple[str, str]:
    """The CTEs that write all Changes of this shape, and the SELECT that says what became of each. `tag` keeps shapes apart in one statement."""
    known = tables()
    pieces = _guards(shape, tag)
    pieces += [_insert(known[record], f"i{tag}_{n}", tag) for n, (record, _) in enumerate(shape.inserts)]
    moved = [f"m{tag}_{n}" for n in range(len(shape.moves))]
    pieces += [
        _move(name, known[record], values, expect, tag)
        for name, (record, values, expect) in zip(moved, shape.moves, strict=True)
    ]
    pieces.append(
        f"entry{tag} AS (INSERT INTO ledger_journal_entry (tenant_id, kind, stream_id, seq, at, actor, verb, content, digest)"
        f" SELECT ok.tenant, '{shape.kind}', ok.id, ok.head_seq + 1, v.at, v.actor, v.verb, v.content, sha256(ok.head_digest || v.content)"
        f" FROM ok{tag} ok JOIN {_unnest('n bigint, at timestamptz, actor text, verb text, content bytea')} ON v.n = ok.n"
        " RETURNING tenant_id, stream_id, id, at, digest)"
    )
    if shape.about:
        pieces.append(
            f"about{tag} AS (INSERT INTO ledger_entry_target (tenant_id, target_id, at, entry_id)"
            f" SELECT entry.tenant_id, t.id, entry.at, entry.id FROM ok{tag} ok JOIN entry{tag} entry ON entry.stream_id = ok.id"
            f" JOIN (SELECT v.n, v.id FROM {_unnest('n bigint, id uuid')} UNION SELECT v.n, e.target_id"
            f" FROM {_unnest('n bigint, id uuid')} JOIN ledger_effect e ON e.id = v.id) t(n, id) ON t.n = ok.n)"
        )
    pieces.append(_head(shape, tag))
    missed = " + ".join(f"(SELECT count(*) FROM {name} m WHERE m.n = seen.n)" for name in moved) or "0"
    return ", ".join(pieces), (
        f"SELECT seen.n, entry.digest, to_json(seen.clock) #>> '{{}}',"
        f" CASE WHEN ok.n IS NOT NULL AND {missed} <> {len(moved)} THEN ledger_moved() END"
        f" FROM seen{tag} seen LEFT JOIN ok{tag} ok ON ok.n = seen.n LEFT JOIN entry{tag} entry ON entry.stream_id = ok.id"
    )


def _guards(shape: Shape, tag: str) -> list[str]:
    table = tables()[journal.HEAD_TABLE[shape.kind]]
    want = _unnest("n bigint, id uuid, tenant uuid, seq bigint, version bigint, before timestamptz")
    version = "ledger_tenant_seq(h.tenant)" if shape.by_tenant else "NULL::bigint"
    conditions = ["s.head_seq = s.seq"]
    if shape.by_tenant:
        conditions.append("s.tenant_seq = s.version")
    if shape.by_time:
        conditions.append("s.clock < s.before")
    return [
        f"head{tag} AS MATERIALIZED (SELECT v.*, h.head_seq, h.head_digest FROM {want} JOIN {table.name} h ON h.{table.key} = v.id"
        " FOR UPDATE OF h SKIP LOCKED)",
        f"seen{tag} AS MATERIALIZED (SELECT h.*, ledger_clock() AS clock, {version} AS tenant_seq FROM head{tag} h)",
        f"ok{tag} AS MATERIALIZED (SELECT s.* FROM seen{tag} s WHERE {' AND '.join(conditions)})",
    ]


def _unnest(columns: str) -> str:
    """Rows of arrays, one a column, under the alias `v`: from "name type" pairs."""
    pairs = [each.split() for each in columns.split(", ")]
    return f"unnest({', '.join([f'%s::{kind}[]' for _, kind in pairs])}) v({', '.join([name for name, _ in pairs])})"


def _columns(table: Table, names: Iterable[str], prefix: str = "") -> list[str]:
    return [f"{prefix}{name} {table.columns[name].hole.removeprefix('%s::')}" for name in names]


def _insert(table: Table, name: str, tag: str) -> str:
    new = ", ".join([f"v.{column}" for column in table.columns])
    rows = _unnest(", ".join(["n bigint", *_columns(table, table.columns)]))
    return (
        f"{name} AS (INSERT INTO {table.name} ({table.names}) SELECT {new} FROM ok{tag} ok JOIN {rows} ON v.n = ok.n)"
    )


def _move(name: str, table: Table, values: Sequence[str], expect: Sequence[str], tag: str) -> str:
    columns = ["n bigint", "k uuid", *_columns(table, values, "s_"), *_columns(table, expect, "e_")]
    expected = "".join([f" AND t.{column} IS NOT DISTINCT FROM v.e_{column}" for column in expect])
    sets = ", ".join([f"{column} = v.s_{column}" for column in values])
    return (
        f"{name} AS (UPDATE {table.name} t SET {sets} FROM ok{tag} ok JOIN {_unnest(', '.join(columns))} ON v.n = ok.n"
        f" WHERE t.{table.key} = v.k{expected} RETURNING ok.n)"
    )


def _head(shape: Shape, tag: str) -> str:
    """Move the streams' heads on to their entries."""
    table = tables()[journal.HEAD_TABLE[shape.kind]]
    sets = [
        "head_seq = ok.head_seq + 1",
        "head_digest = entry.digest",
        *[f"{name} = v.s_{name}" for name in shape.head],
    ]
    values = (
        f" JOIN {_unnest(', '.join(['n bigint', *_columns(table, shape.head, 's_')]))} ON v.n = ok.n"
        if shape.head
        else ""
    )
    return (
        f"h{tag} AS (UPDATE {table.name} t SET {', '.join(sets)} FROM ok{tag} ok JOIN entry{tag} entry ON entry.stream_id = ok.id{values}"
        f" WHERE t.{table.key} = ok.id)"
    )
