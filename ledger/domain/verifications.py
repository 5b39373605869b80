"""What a check of the record covers, in which order, and what is kept of what it found."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from ledger.domain.journal import Fault

KEPT = 50
"""Faults of one check that are kept word for word; all of them are counted."""


class Reach(StrEnum):
    """What is checked: one run, or everything of a tenant."""

    RUN = "run"
    TENANT = "tenant"


class Stage(StrEnum):
    """What a check does next. A run's has one stage; a tenant's goes through all of them, in this order."""

    ADMINISTRATION = "administration"
    EVENTS = "events"
    RUNS = "runs"
    DONE = "done"


def first(reach: Reach) -> Stage:
    """The stage that a check begins with."""
    return Stage.RUNS if reach is Reach.RUN else Stage.ADMINISTRATION


def following(stage: Stage) -> Stage:
    """The stage after one that is through."""
    order = tuple(Stage)
    return order[min(order.index(stage) + 1, len(order) - 1)]


def kept(before: Iterable[dict[str, Any]], stream: str, faults: Iterable[Fault]) -> list[dict[str, Any]]:
    """The first faults of a check as documents, these after those of before."""
    told = [*before]
    told += [{"stream": stream, "seq": f.seq, "object": f.object, "code": f.code, "reason": f.reason} for f in faults]
    return told[:KEPT]
