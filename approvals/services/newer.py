"""Whether a list that somebody has open is still what it was: what came to it, and what left it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

MOST = 1_000
"""Nobody counts beyond."""


@dataclass(frozen=True, slots=True)
class Moved:
    """How many rows came to a list, and how many of those that it shows left it."""

    new: int = 0
    gone: int = 0


def since(rows: QuerySet[Any], column: str, at: datetime) -> Moved:
    """Of a list that only grows or moves on: the rows whose time in this column is later. One query."""
    return Moved(new=rows.filter(**{f"{column}__gt": at}).order_by()[:MOST].count())


def against(rows: QuerySet[Any], shown: Collection[UUID], total: int) -> Moved:
    """Of a list that rows come to and leave: `shown` are the ids on its page, `total` is how many the whole list had then. One query.

    On a list of one page both numbers are exact; of a longer one what left it beyond the page is set off against what came.
    """
    found = set(rows.order_by().values_list("pk", flat=True)[: MOST + 1])
    gone = sum(row not in found for row in shown)
    if total == len(shown):
        return Moved(len(found - set(shown)), gone)
    return Moved(max(0, min(len(found), MOST) - min(total, MOST) + gone), gone)
