"""Documents that tests share: a state, its schema, transitions, and a target's guarantees."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final
from uuid import UUID

STATE: Final[dict[str, Any]] = {"order": "17", "amount_minor": 4200, "currency": "EUR"}
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["order", "amount_minor", "currency"],
    "properties": {
        "order": {"type": "string"},
        "amount_minor": {"type": "integer"},
        "currency": {"type": "string"},
        "receipt": {"type": ["string", "null"]},
    },
    "additionalProperties": False,
}
TRANSITIONS: Final[dict[str, Any]] = {
    "assess": {"targets": [], "tools": [], "on_conflict": ["ask_again"]},
    "issue": {"targets": ["payments", "wires", "notes"], "tools": [], "on_conflict": ["ask_again"]},
    "think": {"targets": [], "tools": []},
}
REQUEST: Final = b'{"amount_minor":4200,"currency":"EUR","order":"17","reason":"broken"}'
LOOKUP: Final[dict[str, Any]] = {
    "by": "key",
    "path": "/refunds?key={key}",
    "list": "/refunds",
    "status": "/status",
    "answers": {"settled": "applied", "pending": "in_progress", "refused": "refused", "in_progress": "in_progress"},
    "compare": [["/amount_minor", "/amount_minor"], ["/order", "/order"]],
    "reference": "/id",
    "by_reference": "/refunds/{reference}",
}
REPLAY: Final[dict[str, Any]] = {
    "by": "replay",
    "path": "/refunds",
    "key_header": "Idempotency-Key",
    "cases": [
        {"status": [200, 201], "answer": "applied"},
        {"status": [409], "answer": "in_progress"},
        {"status": [422], "pointer": "/error", "values": ["insufficient", "refused"], "answer": "refused"},
    ],
    "compare": [["/amount_minor", "/amount_minor"]],
    "reference": "/id",
}
OBSERVE: Final[dict[str, Any]] = {"path": "/orders/{resource}", "version": "etag", "strip": "order/"}


def target_row(target_id: UUID, name: str, base_url: str, at: datetime, lookup: bool) -> dict[str, Any]:
    """A target at the sandbox: keyed and with a look-up, or neither."""
    return {
        "id": target_id,
        "name": name,
        "kind": "http",
        "base_url": base_url,
        "private": True,
        "keyed": lookup,
        "first_result_replayed": lookup,
        "key_retention": 86_400 if lookup else 0,
        "visibility_delay": 0,
        "freshness": 300,
        "call_limit": 10,
        "lookup": None,
        "observe": None,
        "material": [],
        "guaranteed_at": at,
        "created_at": at,
    }
