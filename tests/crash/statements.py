"""Kill points at statements: Django's execute_wrapper counts, reports and blocks. The product knows nothing of it."""

import threading
from collections.abc import Callable, Iterable
from typing import Any

from django.db.backends.signals import connection_created

from tests.crash.points import Line


class Plan:
    """Block once, before or after the `nth` statement that counts. `begins` says which statement is the first to count."""

    def __init__(self, line: Line, nth: int, after: bool, begins: Callable[[str], bool]) -> None:
        self._line = line
        self._nth = nth
        self._after = after
        self._begins = begins
        self._lock = threading.Lock()
        self._spent = False
        self._here = threading.local()

    def install(self) -> None:
        """Every connection that this process opens from now on has the wrapper."""
        connection_created.connect(self._on_connection, weak=False)

    def begin(self) -> None:
        """Statements of this thread count from the next one that `begins`."""
        self._here.counting = True
        self._here.count = 0

    def finish(self) -> None:
        """Statements of this thread count no more."""
        if getattr(self._here, "counting", False) and not self._spent:
            self._line.say("passed", statements=self._here.count)
        self._here.counting = False

    def _on_connection(self, connection: Any, **_: Any) -> None:
        connection.execute_wrappers.append(self._wrap)

    def _wrap(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        here = self._counts(sql)
        if here and not self._after:
            self._line.block("statement", nth=self._nth, when="before", statement=" ".join(sql.split())[:120])
        result = execute(sql, params, many, context)
        if here and self._after:
            self._line.block("statement", nth=self._nth, when="after", statement=" ".join(sql.split())[:120])
        return result

    def _counts(self, sql: str) -> bool:
        """Is this the statement to block at? Once a process."""
        if not getattr(self._here, "counting", False) or (self._here.count == 0 and not self._begins(sql)):
            return False
        self._here.count += 1
        if self._here.count != self._nth:
            return False
        with self._lock:
            first, self._spent = not self._spent, True
        return first


def around(application: Any, plan: Plan, suffix: str) -> Any:
    """A WSGI application whose statements count while it answers a POST to a path that ends so."""

    def armed(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] != "POST" or not environ["PATH_INFO"].endswith(suffix):
            answer: Iterable[bytes] = application(environ, start_response)
            return answer
        plan.begin()
        try:
            answer = application(environ, start_response)
        finally:
            plan.finish()
        return answer

    return armed
