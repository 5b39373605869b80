"""Rate limits: a bucket for each key in each process. No row is written for it, since one row that every call of a key writes would be the
narrowest place of the whole database; so a deployment of n web processes lets through up to n times as much.
"""

from __future__ import annotations

import math
import time
from threading import Lock
from typing import Final
from uuid import UUID

from django.conf import settings

from ledger.domain.errors import LedgerError
from ledger.domain.rates import Bucket, Rate, take

KNOWN_AT_MOST: Final = 10_000
"""Keys whose buckets a process remembers; beyond that all begin full again."""
_buckets: dict[UUID, Bucket] = {}
_lock = Lock()


def check(key_id: UUID) -> None:
    """Count one call of a key, where a limit is set. Raises LedgerError `rate-limited` with the whole seconds after which to ask again."""
    rate = Rate(settings.RESUMEAPP_REQUESTS_PER_MINUTE, settings.RESUMEAPP_REQUESTS_AT_ONCE)
    if not rate.per_minute:
        return
    with _lock:
        if key_id not in _buckets and len(_buckets) >= KNOWN_AT_MOST:
            _buckets.clear()
        _buckets[key_id], wait = take(_buckets.get(key_id), rate, time.monotonic())
    if wait:
        raise LedgerError(
            "rate-limited",
            "this key calls more often than is allowed here",
            "Ask again after Retry-After; nothing of this call was carried out.",
            retry_after=math.ceil(wait),
        )
