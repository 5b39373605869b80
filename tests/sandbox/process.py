"""A sandbox in a process of its own, and a caller of it."""

import http.client
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).resolve().parents[2]
REFUND = {"order": "17", "amount_minor": 1500, "currency": "EUR", "reason": "broken on arrival"}


@dataclass
class Answer:
    """A reply that was read to its end."""

    status: int
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw)


class Sandbox:
    """Starts the service on a directory; ``kill`` is SIGKILL, and ``start`` may follow."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self._connections: list[http.client.HTTPConnection] = []
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "examples.sandbox", "--port", "0", "--data", str(self.data)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.process.stdout
        ready = json.loads(self.process.stdout.readline())
        assert ready["pid"] == self.process.pid
        self.host = ready["address"].removeprefix("http://")

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self._collect()

    def stop(self) -> bytes:
        """Stop it in an orderly way; returns what it wrote to stderr."""
        if self.process.returncode is not None:
            return b""
        self.process.terminate()
        return self._collect()

    def _collect(self) -> bytes:
        _, errors = self.process.communicate(timeout=10)
        return errors

    def caller(self) -> "Caller":
        self._connections.append(http.client.HTTPConnection(self.host, timeout=10))
        return Caller(self._connections[-1])

    def hang_up(self) -> None:
        """Close the connections of all callers."""
        while self._connections:
            self._connections.pop().close()


@dataclass
class Caller:
    """One keep-alive connection."""

    connection: http.client.HTTPConnection

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> None:
        """Send a request; underscores in header names stand for hyphens."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        raw = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        self.connection.request(method, path, raw, named)

    def read(self) -> Answer:
        response = self.connection.getresponse()
        return Answer(response.status, dict(response.headers), response.read())

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        self.send(method, path, body, **headers)
        return self.read()

    def order(self, amount_minor: int = 12_000, **more: Any) -> Answer:
        return self.call(
            "PUT",
            "/orders/17",
            {"customer": "Alice", "amount_minor": amount_minor, "currency": "EUR", **more},
        )

    def refund(self, key: str, path: str = "/refunds", if_match: str | None = None, **changes: Any) -> Answer:
        more = {} if if_match is None else {"If_Match": if_match}
        return self.call("POST", path, {**REFUND, **changes}, Idempotency_Key=key, **more)

    def look_up(self, key: str) -> Answer:
        return self.call("GET", f"/refunds?key={quote(key)}")

    def control(self, name: str, body: Any = None) -> Any:
        """POST to the control plane, which must accept."""
        answer = self.call("POST", f"/_control/{name}", {} if body is None else body)
        assert answer.status in (200, 201), answer
        return answer.body

    def arm(self, fault: str, **more: Any) -> None:
        self.control("faults", {"fault": fault, **more})

    def blocked(self, count: int = 1) -> list[dict[str, Any]]:
        """Wait until requests are blocked."""
        answer = self.call("GET", f"/_control/blocked?count={count}&timeout=5")
        assert answer.status == 200, answer
        found: list[dict[str, Any]] = answer.body["blocked"]
        return found

    def counted(self, key: str) -> Any:
        """What the log counts for a key: mutating requests, look-ups, applied, amounts."""
        keys = self.call("GET", "/_control/applied").body["keys"]
        return keys.get(key, {"mutating": 0, "lookups": 0, "applied": 0, "amounts": []})
