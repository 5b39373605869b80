"""Does each entry move its rows from where the entries before it left them? From the entries alone, without a row: no clock, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ledger.domain.journal import Fault, StoredEntry, parsed

_UNSAID = object()


def check_moves(entries: Iterable[StoredEntry], machine: Callable[[str], str | None]) -> list[Fault]:
    """Compare what every line says of its row's machine with a replay up to it. `machine` names the column of a table that has one.

    Faults are `from-missing` (a row that was there is moved from nowhere), `from-differs` (it didn't stand there, or no entry opened it) and
    `to-differs` (the line sets something else than it says). `entries` are a whole chain from its first.
    """
    stands: dict[str, Any] = {}
    faults = []
    for stored in entries:
        for line in (parsed(stored.content) or {"changes": []})["changes"]:
            column = machine(line["object"].partition(":")[0])
            if column is not None:
                faults += [Fault(stored.seq, line["object"], *found) for found in _check(line, column, stands)]
    return faults


def _check(line: Mapping[str, Any], column: str, stands: dict[str, Any]) -> Iterable[tuple[str, str]]:
    """What is wrong with one line, as (code, reason). Notes in `stands` where the row's machine is after it."""
    name, fields, said = line["object"], line["fields"], line.get("from", _UNSAID)
    before = stands.get(name, _UNSAID)
    if said is _UNSAID and before is not _UNSAID:
        yield "from-missing", f"the entry moves {name} and doesn't say from where"
    elif said is not _UNSAID and before is _UNSAID:
        yield "from-differs", f"the entry moves {name} from {said!r}, and no entry before it opened that"
    elif said != before:
        yield "from-differs", f"the entry moves {name} from {said!r}; the entries before it left it at {before!r}"
    after = fields.get(column, before)
    if line.get("to", before) != after or ("to" in line) != (column in fields):
        yield "to-differs", f"the entry says that it moves {name} to {line.get('to')!r}, and sets {after!r}"
    stands[name] = after
