"""Count statements: on PostgreSQL each is a round trip."""

from __future__ import annotations

from collections.abc import Callable

from django.db import connection
from django.test.utils import CaptureQueriesContext

Act = Callable[[], object]


def statements(act: Act) -> list[str]:
    """What an act sends to the database."""
    with CaptureQueriesContext(connection) as caught:
        act()
    return [query["sql"] for query in caught.captured_queries]


def short(sent: list[str]) -> str:
    """The beginnings of statements, for a failure's reader."""
    return "\n".join(sql[:90] for sql in sent)
