"""The canonical form in which the ledger records a request (RFC 8785): what a call sends, and what a look-up by replay sends once more."""

from __future__ import annotations

import json
from typing import Any

import rfc8785

from resumeapp_client.wire import encode


def canonical(value: Any) -> bytes:
    """The RFC 8785 form of what `encode` takes, and raises as that does.

    An integer beyond 2^53 - 1 has no such form. The ledger records none, so that only a translation into a target's own form can hold one:
    it goes as `encode` writes it.
    """
    written = encode(value)
    try:
        return rfc8785.dumps(json.loads(written))
    except rfc8785.IntegerDomainError:
        return written
