"""The product with one fault in each of seven calls, to see that whoever judges its answers finds every one of them."""

import json
from collections.abc import Callable, Iterable
from typing import Any
from uuid import uuid4

Answer = tuple[str, bytes]
FAULTS = {
    "GET /api/v1/workflows": "is answered 206, which isn't documented",
    "GET /api/v1/runs": "Response violates schema",
    "POST /api/v1/events": "without a problem",
    "POST /api/v1/heartbeat": "without a remedy",
    "POST /api/v1/runs": "and rows",
    "GET /api/v1/effects": "Server error",
    "POST /api/v1/runs/claim": "Schema-violating request accepted",
}
"""What is said of the fault of each call."""


def _spoilt(call: str, status: str, content: bytes) -> Answer:
    """The same answer, or with its fault. `call` is method and path."""
    refused = status[0] == "4"
    match call:
        case "GET /api/v1/workflows" if not refused:
            return "206 Partial Content", content
        case "GET /api/v1/runs" if not refused:
            return status, json.dumps({**json.loads(content), "next": None}).encode()
        case "POST /api/v1/events" if refused:
            return status, b"no"
        case "POST /api/v1/heartbeat" if refused:
            return status, json.dumps({**json.loads(content), "remedy": ""}).encode()
        case "GET /api/v1/effects" if not refused:
            return "500 Internal Server Error", content
        case "POST /api/v1/runs/claim" if status[:3] == "422":
            return "200 OK", b'{"packets": []}'
    return status, content


def spoil(application: Callable[..., Iterable[bytes]]) -> Callable[..., list[bytes]]:
    """The application with the faults of `FAULTS`."""

    def answering(environ: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
        from ledger.models import Tenant

        call = f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}"
        if call == "POST /api/v1/runs":
            Tenant.objects.update(name=uuid4().hex)
        told: list[Any] = []
        content = b"".join(application(environ, lambda *head, **_: told.append(head)))
        status, content = _spoilt(call, told[-1][0], content)
        kept = [(name, text) for name, text in told[-1][1] if name.lower() != "content-length"]
        start(status, [*kept, ("Content-Length", str(len(content)))])
        return [content]

    return answering
