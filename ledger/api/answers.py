"""How answers are written: compact JSON, times in UTC with Z, bytes as hexadecimal digits, never kept by a cache."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import orjson
from django.http import HttpResponse

from ledger.domain.canonical import rfc3339

_OPTIONS = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_NON_STR_KEYS
JSON = "application/json"


def encode(data: Any) -> bytes:
    """The bytes of an answer. Stored canonical JSON goes in as `stored(...)`, unparsed."""
    return orjson.dumps(data, default=_value, option=_OPTIONS)


def _value(value: Any) -> Any:
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, bytes | memoryview):
        return bytes(value).hex()
    raise TypeError(f"{type(value).__name__} has no place in an answer")


def stored(content: bytes | None) -> Any:
    """JSON as it was stored, put into an answer byte for byte: digits and order stay what they were."""
    return None if content is None else orjson.Fragment(content)


def answer(data: Any, status: int = 200, *, replayed: bool = False) -> HttpResponse:
    """An answer; `replayed` says that it was rebuilt from what an earlier call with this key wrote."""
    response = HttpResponse(encode(data), status=status, content_type=JSON)
    if replayed:
        response["Idempotency-Replayed"] = "true"
    return response


def nothing() -> HttpResponse:
    """204: there is nothing for this caller now."""
    response = HttpResponse(status=204)
    del response["Content-Type"]
    return response
