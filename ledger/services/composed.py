"""Queries that Django composes once: to compose one takes milliseconds of CPU, and the database answers it in a tenth of one."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet

from ledger.services import statements

Compose = Callable[..., QuerySet[Any, Any]]


def composed_once(compose: Compose) -> Callable[..., list[Any]]:
    """Answers the rows of the query that `compose` makes of some ids, as tuples; each number of ids is composed once.

    `compose` is a query's shape: it may hand its ids on into the query, and must not look at them. Only the text is kept, never an answer.
    On SQLite, which has ids of its own form and no distance to go, the query is composed each time.
    """

    @wraps(compose)
    def rows(*ids: UUID) -> list[Any]:
        if connection.vendor != "postgresql":
            return list(compose(*ids))
        sql, params = _text(compose, len(ids))
        return statements.rows(sql, [ids[each.int] if isinstance(each, UUID) else each for each in params])

    return rows


@lru_cache(maxsize=128)
def _text(compose: Compose, count: int) -> tuple[str, tuple[Any, ...]]:
    """The query's text and its parameters: where an id belongs, a UUID that is the id's number."""
    sql, params = compose(*[UUID(int=number) for number in range(count)]).query.sql_with_params()
    return sql, tuple(params)
