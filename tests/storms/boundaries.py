"""Every SQL statement, HTTP send and HTTP receive of a process, named and counted; at a chosen one it blocks to be killed, or fails.

Seams: Django's execute_wrapper, the transport of the HTTP library, the WSGI application. The product knows nothing of it.
A name is a scope (`POST /runs/claim #2`, `wake #1`), what is done in it, and which of these it is: `POST /runs/claim #2: sql 3`.
"""

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx2 as httpx

from tests.crash.points import Line

_ID = re.compile(r"/[0-9a-f]{8}-[0-9a-f-]{27}(?=/|$)")
UNCOUNTED = ("/heartbeat", "/verify")
"""A heartbeat comes when its time has come, not in an order; and the harness reads."""


def route(method: str, path: str) -> str:
    """The call without its ids."""
    short = _ID.sub("/{id}", path.removeprefix("/api/v1"))
    return f"{method} {'/orders/{id}' if short.startswith('/orders/') else short}"


class Boundaries:
    """The boundaries of this process. `strike` names one, and how: `kill`, `error` before it, or `late`, an error after it. Once."""

    def __init__(self, line: Line, strike: Mapping[str, Any] | None) -> None:
        self._line = line
        self._strike = dict(strike or {})
        self._lock = threading.Lock()
        self._scopes: Counter[str] = Counter()
        self._here = threading.local()
        self._report = self._strike.get("how") == "count"

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Boundaries of this thread belong to the `name`'s next turn."""
        with self._lock:
            self._scopes[name] += 1
            self._here.scope = f"{name} #{self._scopes[name]}"
        self._here.count = Counter()
        try:
            yield
        finally:
            self._here.scope = ""

    def begin(self, name: str) -> None:
        """As `scope`, until `end`."""
        with self._lock:
            self._scopes[name] += 1
            self._here.scope = f"{name} #{self._scopes[name]}"
        self._here.count = Counter()

    def end(self) -> None:
        self._here.scope = ""

    @property
    def within(self) -> bool:
        """Is this thread in a scope?"""
        return bool(getattr(self._here, "scope", ""))

    def reach(self, what: str) -> str:
        """A boundary of this thread: '' to go on, else how to fail here. Who is to be killed here never returns."""
        if not self.within:
            return ""
        self._here.count[what] += 1
        name = f"{self._here.scope}: {what} {self._here.count[what]}"
        if self._report:
            self._line.say("boundary", name=name)
            return ""
        with self._lock:
            if name != self._strike.get("name"):
                return ""
            self._strike["name"] = None
        how = str(self._strike["how"])
        if how == "kill":
            self._line.block("boundary", name=name)
        self._line.say("struck", name=name, how=how)
        return how

    # The seams

    def on_connection(self, connection: Any, **_: Any) -> None:
        """A signal's receiver: every connection of this process is watched."""
        connection.execute_wrappers.append(self._statement)

    def _statement(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        how = self.reach("sql")
        if how == "":
            return execute(sql, params, many, context)
        from django.db import OperationalError

        if how == "late":
            execute(sql, params, many, context)
        context["connection"].connection.close()
        raise OperationalError("server closed the connection unexpectedly")

    def watch_http(self, scoped: bool) -> None:
        """Every request of this process; with `scoped` each is a scope of its own, otherwise it belongs to the thread's."""
        send = httpx.HTTPTransport.handle_request

        def handle_request(transport: httpx.HTTPTransport, request: httpx.Request) -> httpx.Response:
            if request.url.path.endswith(UNCOUNTED):
                return send(transport, request)
            if not scoped:
                return self._exchange(lambda: send(transport, request), "ask ")
            with self.scope(route(request.method, request.url.path)):
                return self._exchange(lambda: send(transport, request))

        httpx.HTTPTransport.handle_request = handle_request  # type: ignore[method-assign]

    def _exchange(self, send: Callable[[], httpx.Response], what: str = "") -> httpx.Response:
        if self.reach(f"{what}send"):
            raise httpx.ConnectError("the connection could not be made")
        reply = send()
        if self.reach(f"{what}receive"):
            reply.close()
            raise httpx.ReadError("the connection was reset")
        return reply

    def around(self, application: Any) -> Any:
        """A WSGI application that receives, works and sends within a scope; an error at its borders cuts the connection."""

        def watched(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
            path = environ["PATH_INFO"]
            if not path.startswith("/api/v1/") or path.endswith(UNCOUNTED):
                answer: Iterable[bytes] = application(environ, start_response)
                return answer
            with self.scope(route(environ["REQUEST_METHOD"], path)):
                if self.reach("receive"):
                    raise ConnectionResetError
                said: list[Any] = []
                answer = application(environ, lambda *status, **more: said.append((status, more)))
                body = list(answer)
                if hasattr(answer, "close"):
                    answer.close()
                if self.reach("send"):
                    raise ConnectionResetError
            for status, more in said:
                start_response(*status, **more)
            return body

        return watched
