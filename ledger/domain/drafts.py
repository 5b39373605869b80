"""A Draft gathers one Change while the rules of several nouns add to it.

It is the only mutable thing in the domain, lives for one call, and knows no clock: `at` comes with the facts, ids from `mint`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from ledger.domain.canonical import Body
from ledger.domain.change import Change, Insert, Move, Note, Stream


@dataclass(slots=True)
class Draft:
    """What one verb is about to write on one stream."""

    stream: Stream
    expect_seq: int
    at: datetime
    actor: str
    verb: str
    mint: Callable[[], UUID]
    tenant_seq: int | None = None
    not_after: datetime | None = None
    head_was: Mapping[str, Any] = field(default_factory=dict)
    _head: dict[str, Any] = field(default_factory=dict)
    _inserts: list[Insert] = field(default_factory=list)
    _moves: dict[tuple[str, UUID], Move] = field(default_factory=dict)
    _notes: list[Note] = field(default_factory=list)

    def insert(self, table: str, **row: Any) -> None:
        """Add a row of the stream's tenant."""
        self._inserts.append(Insert(table, {"tenant_id": self.stream.tenant, **row}))

    def inserted(self, table: str, **values: Any) -> Mapping[str, Any] | None:
        """The row with these values that this draft adds already, if it does."""
        for insert in self._inserts:
            if insert.table == table and all(insert.row.get(name) == value for name, value in values.items()):
                return insert.row
        return None

    def body(self, body: Body) -> None:
        """Add bytes with their salt and commitment."""
        self.insert(
            "body",
            id=body.id,
            salt=body.salt,
            content=body.content,
            commitment=body.commitment,
            media=body.media,
            size=len(body.content),
            erased_at=None,
        )

    def move(self, table: str, key: UUID, expect: Mapping[str, Any], **values: Any) -> None:
        """Move a row from–to. Two moves of one row become one, from what the first expected to what the last set."""
        earlier = self._moves.get((table, key))
        if earlier is not None:
            self._moves[(table, key)] = Move(table, key, earlier.expect, {**earlier.set, **values})
            return
        for index, insert in enumerate(self._inserts):
            if insert.table == table and insert.row.get("id") == key:
                self._inserts[index] = Insert(table, {**insert.row, **values})
                return
        self._moves[(table, key)] = Move(table, key, dict(expect), values)

    def note(self, table: str, key: UUID, **fields: UUID | StrEnum | bool) -> None:
        """List in the entry what the same transaction does to a row beside the record: ids and codes, never a text."""
        self._notes.append(Note(f"{table}:{key}", fields))

    def empty(self) -> bool:
        """Nothing would be written but the entry."""
        return not (self._head or self._inserts or self._moves or self._notes)

    def head(self, **values: Any) -> None:
        """Set columns of the stream's head; the last value of a column wins."""
        self._head.update(values)

    def heads(self, name: str, otherwise: Any) -> Any:
        """The value that a head column will have if this draft is applied."""
        return self._head.get(name, otherwise)

    def before(self, moment: datetime) -> None:
        """This may only happen before `moment`, by the database's clock after the lock."""
        self.not_after = moment if self.not_after is None else min(self.not_after, moment)

    def change(self) -> Change:
        """The finished value."""
        return Change(
            stream=self.stream,
            expect_seq=self.expect_seq,
            at=self.at,
            actor=self.actor,
            verb=self.verb,
            head=dict(self._head),
            inserts=tuple(self._inserts),
            moves=tuple(self._moves.values()),
            not_after=self.not_after,
            tenant_seq=self.tenant_seq,
            notes=tuple(self._notes),
            head_was=self.head_was,
        )
