"""All rows of the record as a count and a sum of each table, read again only where a statement could have written."""

import re
from collections.abc import Mapping
from typing import Any

_WRITES = re.compile(r"\b(INSERT|UPDATE|DELETE|TRUNCATE|MERGE|COPY)\b", re.IGNORECASE)
Sums = Mapping[str, tuple[int, int]]


class Rows:
    """The rows as they were when last looked at. Nobody but this process writes in this database, through whichever of its connections."""

    def __init__(self) -> None:
        from django.db import connection
        from django.db.backends.signals import connection_created

        self._sums = _sums()
        self._wrote = False
        self._watch(connection)
        connection_created.connect(self._watch_new, weak=False)

    def _watch_new(self, connection: Any, **_: Any) -> None:
        self._watch(connection)

    def _watch(self, connection: Any) -> None:
        if self._noticing not in connection.execute_wrappers:
            connection.execute_wrappers.append(self._noticing)

    def _noticing(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        """Any statement that could write makes the rows be read again."""
        self._wrote = self._wrote or _WRITES.search(sql) is not None
        return execute(sql, params, many, context)

    def changed(self) -> dict[str, tuple[tuple[int, int], tuple[int, int]]]:
        """Of each table that isn't as it was when this was asked last: what it was, and what it is."""
        if not self._wrote:
            return {}
        self._wrote = False
        before, self._sums = self._sums, _sums()
        return {name: (before[name], now) for name, now in self._sums.items() if now != before[name]}


def explained(path: str, changed: Mapping[str, Any]) -> bool:
    """A permit that finds a call's approval lapsed refuses it, and tells the run to wake: an entry of its own."""
    return path.partition("?")[0].endswith("/permit") and "ledger_journal_entry" in changed


def _sums() -> Sums:
    """Of each table how many rows it has, and a sum over everything that stands in them; but for when a key was used last."""
    from django.db import connection

    names = [name for name in connection.introspection.table_names() if name.startswith(("ledger_", "approvals_"))]
    with connection.cursor() as cursor:
        whole = "coalesce(sum(hashtext((to_jsonb(t) - 'last_used_at')::text)::bigint), 0)::bigint"
        cursor.execute(" UNION ALL ".join(f"SELECT '{name}', count(*), {whole} FROM {name} t" for name in names))
        return {name: (count, total) for name, count, total in cursor.fetchall()}
