"""The canonical form in which the ledger records a request (RFC 8785): what a call sends, and what a look-up by replay sends once more."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from resumeapp_client.wire import encode

_EXPONENT_FROM, _EXPONENT_BELOW = 1e21, 1e-6


def canonical(value: Any) -> bytes:
    """The RFC 8785 form of what `encode` takes. Raises as that does."""
    return _text(json.loads(encode(value))).encode()


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{_text(key)}:{_text(value[key])}" for key in sorted(value, key=_units)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_text, value)) + "]"
    return _number(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)


def _units(key: str) -> bytes:
    """Keys are sorted by UTF-16 units, which isn't the order of characters beyond the first plane."""
    return key.encode("utf-16-be")


def _number(value: float) -> str:
    """As ECMAScript writes a number (ECMA-262, Number::toString): Python's shortest digits, its exponent at other places and in another form."""
    if value.is_integer() and abs(value) < _EXPONENT_FROM:
        return str(int(value))
    digits, _, exponent = repr(value).partition("e")
    if not exponent:
        return digits
    if _EXPONENT_BELOW <= abs(value) < _EXPONENT_FROM:
        return f"{Decimal(repr(value)):f}"
    return f"{digits}e{int(exponent):+d}"
