"""The golden run: its rows and entries as they stand in the record, and what in them has to differ in a copy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import orjson

from ledger.domain.canonical import canonical, commit, parse_time, plain, rfc3339
from ledger.models import EntryTarget
from ledger.models.tables import Table, tables
from ledger.services import facts, verify
from ledger.services.facts import Part, Row

WORD: Final = "word-00000000"
"""What a golden run carries in its key, task, state or subject wherever copies must differ: each gets another one of the same length."""
TIME: Final = re.compile(r'"(\d{4}-\d\d-\d\dT[0-9:.]{15}Z)"')
APART: Final = frozenset({"journal_entry", "body", "event"})
"""Tables whose rows are found through the journal, not by a run's id."""


@dataclass(frozen=True, slots=True)
class Golden:
    """`rows` by table, `bodies` by id, `entries` in order; `slots` names what differs in a copy by the text in which it appears."""

    run_id: UUID
    tenant_id: UUID
    rows: Mapping[str, Sequence[Row]]
    bodies: Mapping[UUID, Row]
    entries: Sequence[Row]
    ids: Sequence[UUID]
    times: Sequence[datetime]
    slots: Mapping[str, str]
    texts: Sequence[bytes]
    """The canonical bytes of every value that entries hold as a commitment only."""
    about: Sequence[tuple[int, UUID]]
    """Which entry is about which target, by its sequence."""

    @property
    def salt(self) -> bytes:
        """The run's own."""
        salt: bytes = self.rows["run_head"][0]["salt"]
        return salt

    def templates(self, texts: Iterable[str]) -> list[str]:
        """Texts for %-formatting with the values of a copy. Longest first, so that a digest isn't taken for its own beginning."""
        pattern = re.compile("|".join(re.escape(each) for each in sorted(self.slots, key=len, reverse=True)))

        def slot(found: re.Match[str]) -> str:
            return f"%({self.slots[found[0]]})s"

        return [pattern.sub(slot, text.replace("%", "%%")) for text in texts]


def golden(run_id: UUID) -> Golden:
    """Read a run that services made. Raises ValueError for one that copies can't be made of: it has consumed an event, which is another's stream."""
    rows = {table.record: list(verify.rows_of(table, run_id)) for table in of_runs()}
    if not rows["run"]:
        raise ValueError(f"there is no run {run_id}")
    if rows["event_delivery"]:
        raise ValueError("a run that took an event can't be copied: the event is a stream of its own")
    read = facts.read(entries=Part("journal_entry", "t.stream_id = %s", (run_id,), many=True, order="t.seq"))
    entries = read.many("entries")
    bodies = {row["id"]: row for row in _bodies(entries)}
    ids = list(dict.fromkeys([*_keys(rows), *bodies]))
    texts = list(dict.fromkeys(_texts(rows)))
    shown = {value for row in _flat(rows) for value in row.values() if isinstance(value, datetime)}
    times = sorted(
        shown | {parse_time(text, "at") for entry in entries for text in TIME.findall(entry["content"].decode())}
    )
    return Golden(
        run_id=run_id,
        tenant_id=rows["run"][0]["tenant_id"],
        rows=rows,
        bodies=bodies,
        entries=entries,
        ids=ids,
        times=times,
        slots=_slots(ids, times, rows, bodies, entries) | _salted(rows["run_head"][0]["salt"], texts),
        texts=texts,
        about=_about(rows["run"][0]["tenant_id"], run_id),
    )


def _about(tenant_id: UUID, run_id: UUID) -> Sequence[tuple[int, UUID]]:
    rows = EntryTarget.objects.of(tenant_id).filter(entry__stream_id=run_id)
    return list(rows.order_by("entry__seq").values_list("entry__seq", "target_id"))


def of_runs() -> list[Table]:
    """The tables whose rows belong to runs."""
    return [table for table in tables().values() if table.record not in APART and verify.belongs_to_runs(table)]


def _bodies(entries: Sequence[Row]) -> Sequence[Row]:
    named = {
        UUID(each) for entry in entries for each in re.findall(r'"body:([0-9a-f-]{36})"', entry["content"].decode())
    }
    slots = ", ".join(["%s"] * len(named))
    return facts.read(rows=Part("body", f"t.id IN ({slots})", tuple(named), many=True)).many("rows")


def _flat(rows: Mapping[str, Sequence[Row]]) -> Iterator[Row]:
    return (row for some in rows.values() for row in some)


def _keys(rows: Mapping[str, Sequence[Row]]) -> Iterator[UUID]:
    return (row[tables()[record].key] for record, some in rows.items() for row in some)


def _slots(
    ids: Sequence[UUID],
    times: Sequence[datetime],
    rows: Mapping[str, Sequence[Row]],
    bodies: Mapping[UUID, Row],
    entries: Sequence[Row],
) -> dict[str, str]:
    """Text → the name of the value that stands there in a copy."""
    found = {WORD: "word"}
    found |= {str(each): f"id{number}" for number, each in enumerate(ids)}
    found |= {rfc3339(at): f"at{number}" for number, at in enumerate(times)}
    for number, body_id in enumerate(bodies):
        found[bodies[body_id]["commitment"].hex()] = f"commitment{number}"
        found[bodies[body_id]["salt"].hex()] = f"salt{number}"
    digests = {row["digest"]: f"checkpoint{row['seq']}" for row in rows["checkpoint"]}
    digests |= {row["subject_digest"]: f"subject{number}" for number, row in enumerate(rows["effect"])}
    digests |= {row["digest"]: f"entry{row['seq']}" for row in entries}
    found |= {digest.hex(): name for digest, name in digests.items()}
    # Wake checks tell digests by their beginnings.
    found |= {digest.hex()[:16]: f"{name}_short" for digest, name in digests.items()}
    found |= {row["key"]: f"key{number}" for number, row in enumerate(rows["effect"])}
    return found


def _texts(rows: Mapping[str, Sequence[Row]]) -> Iterator[bytes]:
    for record, some in rows.items():
        for name in sorted(tables()[record].committed):
            yield from (canonical(plain(row[name])) for row in some if row[name] not in (None, ""))


def _salted(salt: bytes, texts: Sequence[bytes]) -> dict[str, str]:
    """The run's salt, and what it makes of each text."""
    found = {salt.hex(): "salt"}
    found |= {commit(salt, text).hex(): f"text{number}" for number, text in enumerate(texts)}
    return found


def field(value: Any) -> str:
    """A value in the text format of COPY, not escaped yet."""
    if value is None:
        return "\\N"
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, bytes):
        return f"\\\\x{value.hex()}"
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, dict | list):
        return escaped(orjson.dumps(value).decode())
    return escaped(str(value))


def escaped(text: str) -> str:
    """A text as COPY takes it."""
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
