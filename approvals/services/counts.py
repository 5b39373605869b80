"""How many rows several queries have, asked at once and never more than a page says."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from django.db import connection
from django.db.models import QuerySet


def lengths(queries: Sequence[QuerySet[Any]], most: int) -> list[int]:
    """The length of each query, in one statement; nobody counts beyond `most`."""
    asked = [rows.order_by().values("pk")[:most].query.sql_with_params() for rows in queries]
    counts = ", ".join(f"(SELECT count(*) FROM ({sql}) counted)" for sql, _ in asked)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {counts}", list(chain.from_iterable(params for _, params in asked)))
        return list(cursor.fetchone())
