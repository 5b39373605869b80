"""How many rows several queries have, asked at once and never more than a page says; and the clock, for a query that counts what is due."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from django.db import connection
from django.db.models import DateTimeField, Func, QuerySet

from ledger.services import facts


def clock() -> Func:
    """The database's clock, so that no page asks for the time first."""
    return Func(template=facts.clock(), output_field=DateTimeField())


def lengths(queries: Sequence[QuerySet[Any]], most: int) -> list[int]:
    """The length of each query, in one statement; nobody counts beyond `most`."""
    asked = [rows.order_by().values("pk")[:most].query.sql_with_params() for rows in queries]
    counts = ", ".join(f"(SELECT count(*) FROM ({sql}) counted)" for sql, _ in asked)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {counts}", list(chain.from_iterable(params for _, params in asked)))
        return list(cursor.fetchone())
