"""A small shop on loopback whose orders have versions that move, and that can fall silent."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import UUID

from ledger.services import targets
from ledger.services.targets import TargetSpec
from tests.documents import LOOKUP
from tests.world import World


class Shop(ThreadingHTTPServer):
    """`version` is the ETag of every order that nobody has put there, `order` its content; a silent shop answers 503, a held one nothing at all,
    one that hangs up nothing either, but at once. `asked` counts questions, `most` those at once."""

    daemon_threads = True

    def __init__(self) -> None:
        self.version = "1"
        self.order: dict[str, object] = {}
        self.orders: dict[str, tuple[int, dict[str, Any]]] = {}
        self.silent = self.hangs_up = False
        self.asked = self.present = self.most = 0
        self.goes_on = threading.Event()
        self.goes_on.set()
        self.counting = threading.Lock()
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Whoever asked has hung up."""

    @contextmanager
    def asks(self) -> Iterator[None]:
        """A question is there until it is answered."""
        with self.counting:
            self.asked += 1
            self.present += 1
            self.most = max(self.most, self.present)
        try:
            yield
        finally:
            with self.counting:
                self.present -= 1

    def put(self, number: str, **fields: Any) -> None:
        """Write an order of its own: each time it gets the next version."""
        version, known = self.orders.get(number, (11, {}))
        self.orders[number] = version + 1, known | fields

    def read(self, number: str) -> tuple[object, dict[str, Any]]:
        """Version and content of an order."""
        return self.orders.get(number, (self.version, self.order))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Shop

    def do_GET(self) -> None:
        with self.server.asks():
            self.server.goes_on.wait(60)
            if not self.server.hangs_up:
                self._answer()

    def _answer(self) -> None:
        version, fields = self.server.read(self.path.rpartition("/")[2])
        body = json.dumps(fields).encode()
        self.send_response(503 if self.server.silent else 200)
        self.send_header("ETag", f'"{version}"')
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        return


@contextmanager
def open_shop() -> Iterator[Shop]:
    """A shop, until the end."""
    shop = Shop()
    thread = threading.Thread(target=shop.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield shop
    finally:
        shop.goes_on.set()
        shop.shutdown()
        thread.join()
        shop.server_close()


def register(world: World, shop: Shop, name: str = "shop", material: tuple[str, ...] = ()) -> UUID:
    """The shop as one of the world's targets; which fields of its orders matter, where not every version does."""
    spec = TargetSpec(
        name=name,
        base_url=shop.url,
        private=True,
        keyed=True,
        first_result_replayed=False,
        key_retention=86_400,
        visibility_delay=0,
        freshness=300,
        call_limit=5,
        observe={"path": "/orders/{resource}", "version": "etag"},
        material=material,
        lookup=LOOKUP,
    )
    return targets.register(world.admin, spec).id
