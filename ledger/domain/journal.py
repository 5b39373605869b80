"""The hash chain: how an entry is written, linked, checked and replayed. No I/O."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ledger.domain.canonical import commit, recorded
from ledger.domain.change import Change, Kind

FORMAT = 1
GENESIS = bytes(32)
ABOUT = frozenset({"effect", "observation"})
"""Tables whose new rows name their target."""
CALLS = frozenset({"permit", "effect_report"})
"""Tables whose new rows name their effect."""
HEAD_TABLE = {Kind.RUN: "run_head", Kind.TENANT: "tenant_head"}


@dataclass(frozen=True, slots=True)
class Journalled:
    """The attributes that a table's rows carry in the journal: `names` all of them, `committed` those that are there as commitments, `machine` the
    one that says where the row's machine stands, in tables that have one."""

    names: frozenset[str]
    committed: frozenset[str] = frozenset()
    machine: str | None = None


def entry(change: Change, journalled: Callable[[str], Journalled]) -> bytes:
    """The canonical bytes of the change's entry, with every row that it inserts or moves.

    A line about a row with a machine says `from` where the rule read it to stand, unless it opens the row, and `to` where it stands now, if it moved.
    Raises ValueError for a move of a row whose machine the rule didn't read.
    """
    salt = change.stream.salt
    changes: list[dict[str, Any]] = []
    for insert in change.inserts:
        keep = journalled(insert.table)
        fields = _fields(insert.row, keep, salt)
        changes.append(_line(f"{insert.table}:{row_key(insert.table, insert.row)}", keep.machine, None, fields))
    for move in change.moves:
        keep = journalled(move.table)
        fields = _fields(move.set, keep, salt)
        changes.append(_line(f"{move.table}:{move.key}", keep.machine, move.expect, fields))
    if change.head:
        table = HEAD_TABLE[change.stream.kind]
        keep = journalled(table)
        read = change.head_was if change.expect_seq else None
        changes.append(_line(f"{table}:{change.stream.id}", keep.machine, read, _fields(change.head, keep, salt)))
    for note in change.notes:
        changes.append({"object": note.object, "fields": dict(note.fields)})
    return recorded(
        {
            "v": FORMAT,
            "stream": f"{change.stream.kind}:{change.stream.id}",
            "tenant": change.stream.tenant,
            "seq": change.expect_seq + 1,
            "at": change.at,
            "actor": change.actor,
            "verb": change.verb,
            "changes": changes,
        }
    )


def _fields(row: Mapping[str, Any], keep: Journalled, salt: bytes | None) -> dict[str, Any]:
    fields = {name: value for name, value in row.items() if name in keep.names}
    for name in keep.committed & fields.keys():
        fields[name] = committed(fields[name], salt)
    return fields


def committed(value: Any, salt: bytes | None) -> str | None:
    """How a value that somebody words as they like stands in an entry: SHA-256(salt ‖ its canonical bytes), in hexadecimal.

    Nothing stays nothing: None and the empty text are what they are. A stream whose salt was erased says nothing of a value any more.
    """
    if value == "":
        return ""
    return None if value is None or salt is None else commit(salt, recorded(value)).hex()


ROW_KEYS = {"run_head": "run_id", "tenant_head": "tenant_id", "lease": "run_id"}


def row_key(table: str, row: Mapping[str, Any]) -> Any:
    """The identity of a row of the record: `id`, or the run's for tables that have one row a run."""
    return row[ROW_KEYS.get(table, "id")]


def _line(object_: str, machine: str | None, read: Mapping[str, Any] | None, fields: dict[str, Any]) -> dict[str, Any]:
    line: dict[str, Any] = {"object": object_, "fields": fields}
    if machine is None:
        return line
    if machine not in (fields if read is None else read):
        raise ValueError(f"{object_}: nothing says where its {machine} stands")
    if read is not None:
        line["from"] = read[machine]
    if machine in fields:
        line["to"] = fields[machine]
    return line


def written(change: Change) -> Iterator[tuple[str, Any, Mapping[str, Any]]]:
    """Table, key and columns of each row that a change inserts or moves."""
    for insert in change.inserts:
        yield insert.table, row_key(insert.table, insert.row), insert.row
    for move in change.moves:
        yield move.table, move.key, move.set


def told(document: Mapping[str, Any]) -> Iterator[tuple[str, Any, Mapping[str, Any]]]:
    """The same of an entry that `parsed` answered: ids are texts."""
    for line in document["changes"]:
        table, _, key = line["object"].partition(":")
        yield table, key, line["fields"]


def concerned(rows: Iterable[tuple[str, Any, Mapping[str, Any]]]) -> tuple[set[Any], set[Any]]:
    """The targets that an entry is about, by what its rows say of them: those it names, and the older effects whose targets it is about.

    About a target is what registers it, what is proposed, permitted, reported or found out of a call there, and what was observed there.
    """
    targets: set[Any] = set()
    effects: set[Any] = set()
    proposed: set[Any] = set()
    for table, key, fields in rows:
        if table == "target":
            targets.add(key)
        elif table in ABOUT and "target_id" in fields:
            targets.add(fields["target_id"])
            proposed.add(key)
        elif table == "effect":
            effects.add(key)
        elif table in CALLS:
            effects.add(fields["effect_id"])
    return targets, effects - proposed


def link(previous: bytes, content: bytes) -> bytes:
    """SHA-256(previous digest ‖ canonical bytes): the digest of an entry, 32 bytes."""
    return hashlib.sha256(previous + content).digest()


@dataclass(frozen=True, slots=True)
class StoredEntry:
    seq: int
    content: bytes
    digest: bytes


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that verification found wrong: at which entry or object, and what."""

    seq: int | None
    object: str | None
    code: str
    reason: str


def check_chain(
    stream: str, entries: Iterable[StoredEntry], previous: bytes = GENESIS, after: int = 0
) -> tuple[list[Fault], bytes, int]:
    """Recompute a chain from `previous`. Answers the faults, the last digest and the last sequence."""
    faults: list[Fault] = []
    seq = after
    for stored in entries:
        seq += 1
        if stored.seq != seq:
            faults.append(
                Fault(
                    stored.seq,
                    None,
                    "gap",
                    f"entry {seq} is missing; {stored.seq} stands in its place",
                )
            )
            seq = stored.seq
        elif link(previous, stored.content) != stored.digest:
            faults.append(
                Fault(
                    seq,
                    None,
                    "broken-link",
                    f"entry {seq} doesn't hash to its digest: its bytes or its predecessor were altered",
                )
            )
        else:
            faults.extend(_misplaced(stream, stored))
        previous = stored.digest
    return faults, previous, seq


def parsed(content: bytes) -> dict[str, Any] | None:
    """An entry's bytes as a document; None when they aren't one of ours."""
    try:
        document = json.loads(content)
    except ValueError:
        return None
    known = isinstance(document, dict) and {"stream", "seq", "at", "actor", "verb", "changes"} <= document.keys()
    return document if known else None


def _misplaced(stream: str, stored: StoredEntry) -> list[Fault]:
    document = parsed(stored.content)
    if document is None:
        return [Fault(stored.seq, None, "unreadable", f"entry {stored.seq} isn't a document")]
    if document["stream"] == stream and document["seq"] == stored.seq:
        return []
    return [
        Fault(
            stored.seq,
            None,
            "misplaced",
            f"entry {stored.seq} was written for {document['stream']} {document['seq']}",
        )
    ]


def replay(entries: Iterable[StoredEntry]) -> dict[str, dict[str, Any]]:
    """Fold the entries' changes into the rows that they describe: object → its journalled fields."""
    rows: dict[str, dict[str, Any]] = {}
    for stored in entries:
        for line in (parsed(stored.content) or {"changes": []})["changes"]:
            rows.setdefault(line["object"], {}).update(line["fields"])
    return rows
