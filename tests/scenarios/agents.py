"""Real workers of the client against the product over sockets: in threads of the test, or in processes of their own."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx2 as httpx
from resumeapp_client import Client, Worker, Workflow

from ledger.services import targets
from ledger.services.targets import TargetSpec
from tests.sandbox.process import Sandbox
from tests.world import World


class Wire(httpx.BaseTransport):
    """A worker's exchanges, noted as (path, status); `hold` may keep one back."""

    def __init__(self, hold: Callable[[str], None] = lambda path: None) -> None:
        self.seen: list[tuple[str, int]] = []
        self._hold = hold
        self._inner = httpx.HTTPTransport(trust_env=False)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self._hold(request.url.path)
        reply = self._inner.handle_request(request)
        reply.read()
        self.seen.append((request.url.path, reply.status_code))
        return reply

    def close(self) -> None:
        self._inner.close()

    def of(self, ending: str) -> list[int]:
        """The statuses of calls to paths that end so."""
        return [status for path, status in self.seen if path.endswith(ending)]


@contextmanager
def worker(
    url: str, world: World, flow: Workflow[Any], service: Sandbox, wire: Wire | None = None, **more: Any
) -> Iterator[Wire]:
    """A worker in a thread until the end of the block; its exchanges."""
    wire = wire or Wire()
    with Client(url, world.secret, wire) as client:
        works = Worker(client, [flow], targets={"notes": f"http://{service.host}"}, wait_seconds=0, **more)
        thread = threading.Thread(target=works.run)
        thread.start()
        try:
            yield wire
        finally:
            works.stop()
            thread.join(60)
            assert not thread.is_alive()


def keep_notes(world: World, service: Sandbox) -> None:
    """Notes are kept at the payment service, which adds a row for each."""
    spec = TargetSpec(
        "notes",
        f"http://{service.host}",
        keyed=True,
        private=True,
        first_result_replayed=True,
        key_retention=86_400,
        call_limit=5,
    )
    targets.register(world.admin, spec)


def rows(service: Sandbox, name: str) -> list[str]:
    """The subjects of the notes that the service has applied, by its own file."""
    with sqlite3.connect(f"file:{service.data / 'sandbox.sqlite3'}?mode=ro", uri=True) as file:
        found = file.execute("SELECT subject FROM note WHERE subject LIKE ? ORDER BY n", (f"{name} %",)).fetchall()
    return [subject for (subject,) in found]
