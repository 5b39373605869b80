"""Ids of rows: version 7 UUIDs (RFC 9562), time-ordered by the clock that the facts were read with."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import datetime
from uuid import UUID

from ledger.domain.canonical import SALT_BYTES, Body, media_type

_VERSION_7 = 0x7 << 76 | 0b10 << 62
_RANDOM = (2**12 - 1) << 64 | (2**62 - 1)


def new_id(now: datetime) -> UUID:
    """A UUID of version 7: milliseconds since 1970 in front of 74 random bits."""
    return minter(now)()


def first_id(at: datetime) -> UUID:
    """Below every id that was minted from this moment on, and not below any that was minted a millisecond before."""
    return UUID(int=int(at.timestamp() * 1000) << 80)


def minter(now: datetime) -> Callable[[], UUID]:
    """A source of ids for one call."""
    front = (int(now.timestamp() * 1000) & (2**48 - 1)) << 80 | _VERSION_7
    return lambda: UUID(int=front | secrets.randbits(76) & _RANDOM)


def new_salt() -> bytes:
    """Fresh random bytes for a body, or for a stream."""
    return secrets.token_bytes(SALT_BYTES)


def new_body(content: bytes, now: datetime, media: str = "application/json") -> Body:
    """Bytes with a fresh random salt. Of what somebody outside says they are, only the kind is kept."""
    return Body(new_id(now), new_salt(), content, media_type(media))
