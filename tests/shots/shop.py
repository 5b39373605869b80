"""The other side of the pictures: orders that can be looked at, whose version moves when a scene says so."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Shop(ThreadingHTTPServer):
    """`orders` maps an order's number to its version and fields."""

    daemon_threads = True

    def __init__(self) -> None:
        self.orders: dict[str, tuple[int, dict[str, Any]]] = {}
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def put(self, number: str, **fields: Any) -> None:
        """Write an order: each time it gets the next version."""
        version, known = self.orders.get(number, (11, {}))
        self.orders[number] = version + 1, known | fields

    def read(self, number: str) -> tuple[str, dict[str, Any]]:
        version, fields = self.orders.get(number, (1, {"order": number}))
        return str(version), fields


class _Handler(BaseHTTPRequestHandler):
    server: Shop

    def do_GET(self) -> None:
        version, fields = self.server.read(self.path.rpartition("/")[2])
        body = json.dumps(fields).encode()
        self.send_response(200)
        self.send_header("ETag", f'"{version}"')
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        return


@contextmanager
def open_shop() -> Iterator[Shop]:
    """A shop while pictures are taken."""
    shop = Shop()
    thread = threading.Thread(target=shop.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield shop
    finally:
        shop.shutdown()
        thread.join()
        shop.server_close()
