"""The target of the sequences: it says at which version an order is, and counts what it has told."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Target(ThreadingHTTPServer):
    """`version` is where its one order is; `tell` hears each version that somebody was told."""

    daemon_threads = True
    version = 1
    tell: Callable[[str], None]


class _Handler(BaseHTTPRequestHandler):
    server: Target

    def do_GET(self) -> None:
        version = f'"v{self.server.version}"'
        self.server.tell(version)
        self.send_response(200)
        self.send_header("ETag", version)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: Any) -> None:
        return


@contextmanager
def serving() -> Iterator[Target]:
    """On loopback, until the end."""
    server = Target(("127.0.0.1", 0), _Handler)
    server.tell = lambda version: None
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
