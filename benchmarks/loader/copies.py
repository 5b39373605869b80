"""Write copies of a golden run: rendered here, taken in by COPY on a connection of its own while the next ones are rendered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from uuid import UUID

import psycopg
from django.db import connection

from benchmarks.loader.golden import Golden, field
from benchmarks.loader.stamps import Press, Stamp
from ledger.models.tables import tables

BATCH = 1_000
Shift = Callable[[int], timedelta]


@dataclass(frozen=True, slots=True)
class Copies:
    """What was loaded: the runs' ids and words, in order."""

    ids: Sequence[UUID]
    words: Sequence[str]


def together(number: int) -> timedelta:
    """All copies at the golden run's own times."""
    return timedelta(0)


def load(golden: Golden, count: int, *, first: int = 1, shift: Shift = together) -> Copies:
    """Write so many copies, with words from `first` on. `shift` moves the times of each by its number.

    PostgreSQL only, as a superuser: foreign keys aren't looked up row by row, since the copies' rows refer to each other as the golden run's
    do. All other constraints and the record's own triggers hold. A batch is a transaction of its own.
    """
    if connection.vendor != "postgresql":
        raise ValueError("only PostgreSQL takes copies")
    press = Press(golden)
    press.prove()
    sheets = Sheets(press)
    words = [f"word-{number:08x}" for number in range(first, first + count)]
    ids: list[UUID] = []
    stamps = (press.stamp(word, shift(number)) for number, word in enumerate(words))
    with psycopg.connect(**_parameters()) as taking, ThreadPoolExecutor(1) as beside:
        taking.execute("SET session_replication_role = replica")
        taking.commit()
        under_way: Future[None] | None = None
        for batch in _batches(stamps):
            ids += [stamp.run_id for stamp in batch]
            rendered = sheets.render(batch)
            if under_way is not None:
                under_way.result()
            under_way = beside.submit(_take, taking, rendered, golden.about, [stamp.run_id for stamp in batch])
        if under_way is not None:
            under_way.result()
    return Copies(ids, words)


def _parameters() -> dict[str, object]:
    """Where Django's connection leads."""
    known = connection.get_connection_params()
    return {name: known[name] for name in ("host", "port", "user", "password", "dbname") if name in known}


def _batches(stamps: Iterable[Stamp]) -> Iterator[list[Stamp]]:
    left = iter(stamps)
    while batch := list(islice(left, BATCH)):
        yield batch


ABOUT = (
    "INSERT INTO ledger_entry_target (tenant_id, target_id, at, entry_id) SELECT e.tenant_id, v.target_id, e.at, e.id FROM ledger_journal_entry e"
    " JOIN unnest(%s::bigint[], %s::uuid[]) v(seq, target_id) ON v.seq = e.seq WHERE e.stream_id = ANY(%s)"
)


def _take(
    taking: psycopg.Connection, rendered: list[tuple[str, str]], about: Sequence[tuple[int, UUID]], ids: list[UUID]
) -> None:
    with taking.transaction(), taking.cursor() as cursor:
        for statement, text in rendered:
            with cursor.copy(statement) as copy:
                copy.write(text)
        if about:
            cursor.execute(ABOUT, [[seq for seq, _ in about], [target for _, target in about], ids])


class Sheets:
    """The tables' rows as templates in COPY's text format."""

    def __init__(self, press: Press) -> None:
        golden = press.golden
        self.tables: list[tuple[str, str]] = []
        for record, rows in golden.rows.items():
            if rows:
                columns = list(tables()[record].columns)
                lines = ["\t".join(field(row[name]) for name in columns) + "\n" for row in rows]
                self.tables.append((_copy(record, columns), "".join(golden.templates(lines))))
        self.bodies = self._lines(press, "body", press.bodies, "content")
        self.entries = self._lines(press, "journal_entry", golden.entries, "content")

    def _lines(self, press: Press, record: str, rows: Sequence[dict[str, object]], apart: str) -> tuple[str, list[str]]:
        """Rows whose content is put in as it is rendered: it is hexadecimal, where nothing else would be found."""
        columns = [
            name for name in tables()[record].columns if name != apart and (record, name) != ("journal_entry", "id")
        ]
        lines = ["\t".join(field(row[name]) for name in columns) for row in rows]
        return _copy(record, [*columns, apart]), press.golden.templates(lines)

    def render(self, stamps: Sequence[Stamp]) -> list[tuple[str, str]]:
        """(COPY statement, its rows) for each table, bodies first."""
        rendered = [_with_contents(self.bodies, [(stamp.values, stamp.contents) for stamp in stamps])]
        rendered += [(copy, "".join([template % stamp.values for stamp in stamps])) for copy, template in self.tables]
        return [*rendered, _with_contents(self.entries, [(stamp.values, stamp.entries) for stamp in stamps])]


def _with_contents(
    lines: tuple[str, list[str]], stamps: Iterable[tuple[dict[str, str], list[bytes]]]
) -> tuple[str, str]:
    copy, templates = lines
    return copy, "".join(
        [
            f"{template % values}\t\\\\x{content.hex()}\n"
            for values, contents in stamps
            for template, content in zip(templates, contents, strict=True)
        ]
    )


def _copy(record: str, columns: Sequence[str]) -> str:
    return f"COPY {tables()[record].name} ({', '.join(columns)}) FROM STDIN"


def reckon(statement: str = "ANALYZE") -> None:
    """Let the planner know what was loaded. It takes as long as it needs, as when the server does it by itself."""
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
        cursor.execute(statement)
        cursor.execute("RESET statement_timeout")
