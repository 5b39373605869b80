"""Send one statement to PostgreSQL: what facts, writer and other services ask goes through a cursor that its connection keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.db import DEFAULT_DB_ALIAS, connections

_KEPT: Final = "resumeapp_cursor"


def rows(sql: str, params: Sequence[Any]) -> list[Any]:
    """All rows of the answer. Django sees the statement as it sees any other: wrappers, its log, and errors as its own.

    To make a cursor costs about as much as to send a statement. So the driver's connection keeps one, which is taken while it is in use: a
    statement that is sent while another one is on its way (by a wrapper) gets one of its own, and one that failed isn't kept. Raises what
    Django raises.
    """
    database = connections[DEFAULT_DB_ALIAS]
    database.close_if_health_check_failed()
    database.ensure_connection()
    database.validate_thread_sharing()
    kept = vars(database.connection).pop(_KEPT, None)
    cursor = database.cursor() if kept is None or database.queries_logged else database.make_cursor(kept)
    cursor.execute(sql, params)
    found: list[Any] = cursor.cursor.fetchall()  # it is here already: nothing that Django would have to translate
    vars(cursor.cursor.connection)[_KEPT] = cursor.cursor
    return found
