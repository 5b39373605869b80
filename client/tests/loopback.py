"""A real HTTP server on loopback that answers by script, well or badly, and remembers what it was asked."""

from __future__ import annotations

import json
import re
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True)
class Seen:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


Reply = Callable[["Handler", Seen], None]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Loopback

    def log_message(self, *args: object) -> None:
        pass

    def _any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.answer(self, Seen(self.command, self.path, headers, body))

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _any  # noqa: N815 - http.server's names

    def head(self, status: int, length: int, kind: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()


class Loopback(ThreadingHTTPServer):
    """`on` scripts replies per method and path pattern, in order, the last one for good; `seen` are all requests."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen: list[Seen] = []
        self.closing = threading.Event()
        self._script: list[tuple[str, re.Pattern[str], list[Reply]]] = []
        self._moved = threading.Condition()
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def on(self, method: str, pattern: str, *replies: Reply) -> None:
        self._script.insert(0, (method, re.compile(pattern), list(replies)))

    def answer(self, handler: Handler, seen: Seen) -> None:
        with self._moved:
            self.seen.append(seen)
            self._moved.notify_all()
            reply = self._next(seen)
        try:
            reply(handler, seen)
        except OSError:
            handler.close_connection = True

    def _next(self, seen: Seen) -> Reply:
        for method, pattern, replies in self._script:
            if method == seen.method and pattern.fullmatch(seen.path):
                return replies.pop(0) if len(replies) > 1 else replies[0]
        return problem(404, "not-found")

    def asked(self, method: str, pattern: str) -> list[Seen]:
        return [seen for seen in self.seen if seen.method == method and re.fullmatch(pattern, seen.path)]

    def wait_for(self, method: str, pattern: str, count: int = 1, timeout: float = 10) -> Seen:
        with self._moved:
            assert self._moved.wait_for(lambda: len(self.asked(method, pattern)) >= count, timeout), (
                f"no {method} {pattern}; there were {[(seen.method, seen.path) for seen in self.seen]}"
            )
        return self.asked(method, pattern)[count - 1]

    def handle_error(self, request: object, client_address: object) -> None:
        pass

    def close(self) -> None:
        self.closing.set()
        self.shutdown()
        self.server_close()


def answer(status: int, body: Any = None, **headers: str) -> Reply:
    def reply(handler: Handler, _seen: Seen) -> None:
        content = b"" if body is None else json.dumps(body).encode()
        handler.head(status, len(content), **headers)
        handler.wfile.write(content)

    return reply


def problem(status: int, code: str, **facts: Any) -> Reply:
    body = {
        "type": "about:blank",
        "title": code,
        "status": status,
        "code": code,
        "detail": code,
        "remedy": "r",
        **facts,
    }
    return answer(status, body)


def text(status: int, content: bytes, kind: str = "application/json", **headers: str) -> Reply:
    def reply(handler: Handler, _seen: Seen) -> None:
        handler.head(status, len(content), kind, **headers)
        handler.wfile.write(content)

    return reply


def hangs(handler: Handler, _seen: Seen) -> None:
    handler.server.closing.wait(30)
    handler.close_connection = True


def closes(handler: Handler, _seen: Seen) -> None:
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)


def resets_mid_body(handler: Handler, _seen: Seen) -> None:
    handler.head(201, 100)
    handler.wfile.write(b'{"id":')
    handler.wfile.flush()
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.close_connection = True


def ends_early(handler: Handler, _seen: Seen) -> None:
    handler.head(201, 100)
    handler.wfile.write(b'{"id":')
    handler.close_connection = True


def drips(handler: Handler, _seen: Seen) -> None:
    handler.head(201, 10_000)
    while not handler.server.closing.wait(0.05):
        handler.wfile.write(b" ")
        handler.wfile.flush()


def waits(gate: threading.Event, then: Reply) -> Reply:
    def reply(handler: Handler, seen: Seen) -> None:
        gate.wait(20)
        then(handler, seen)

    return reply
