"""A Change: everything one transaction does to the record, as a value.

Rules make Changes; the one writer applies them. Whatever a Change inserts or moves is listed in its journal entry by construction,
so a replay of the journal arrives at the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID


class Kind(StrEnum):
    """What a journal stream belongs to: a run, a tenant's administration, or one received event."""

    RUN = "run"
    TENANT = "tenant"
    EVENT = "event"


@dataclass(frozen=True, slots=True)
class Stream:
    """`salt` is what its entries commit to texts with; None once it is erased."""

    kind: Kind
    id: UUID
    tenant: UUID
    salt: bytes | None


@dataclass(frozen=True, slots=True)
class Insert:
    """A new row. `row` maps attribute names (`run_id`, `state`) to values."""

    table: str
    row: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Move:
    """An existing row from–to. The whole Change is refused unless the row still has the `expect`ed values, the machine's column among them where
    the table has one: that is the `from` of its line in the entry."""

    table: str
    key: UUID
    expect: Mapping[str, Any]
    set: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Note:
    """What the same transaction does beside the record (a membership, a permission): ids and codes, for the entry alone."""

    object: str
    fields: Mapping[str, UUID | StrEnum | bool]


@dataclass(frozen=True, slots=True)
class Change:
    """One transaction on one stream.

    `expect_seq` is the head's sequence as read (0 opens a stream); `at` the database's clock as read with the facts; `head` the columns of the
    stream's head row to set, `head_was` where its machine stood as read; `not_after` the last moment at which this may still happen, by the clock
    read after the lock; `tenant_seq` the version of the tenant's administration that the rule read, compared again after the lock.
    """

    stream: Stream
    expect_seq: int
    at: datetime
    actor: str
    verb: str
    head: Mapping[str, Any] = field(default_factory=dict)
    inserts: tuple[Insert, ...] = ()
    moves: tuple[Move, ...] = ()
    not_after: datetime | None = None
    tenant_seq: int | None = None
    notes: tuple[Note, ...] = ()
    head_was: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Written:
    """What the writer answers: the entry's sequence and digest (32 bytes), and the clock read after the lock."""

    seq: int
    digest: bytes
    clock: datetime
