"""How often a key may call: a token bucket. No clock, no I/O."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rate:
    """So many calls a minute in the long run, and at most `at_once` of them without a pause."""

    per_minute: int
    at_once: int


@dataclass(frozen=True, slots=True)
class Bucket:
    """How many calls are `left`, as of `at` (seconds of any clock that never goes back)."""

    left: float
    at: float


def take(bucket: Bucket | None, rate: Rate, now: float) -> tuple[Bucket, float]:
    """One call: the bucket after it, and 0; or the bucket as it is, and the seconds until there is one left. None is a full one.

    A refused call takes nothing, so whoever keeps asking isn't kept out for longer. Source: the token bucket, as in RFC 2697 section 3.
    """
    a_second = rate.per_minute / 60
    before = bucket or Bucket(float(rate.at_once), now)
    at = max(now, before.at)
    left = min(float(rate.at_once), before.left + (at - before.at) * a_second)
    if left >= 1:
        return Bucket(left - 1, at), 0.0
    return Bucket(left, at), (1 - left) / a_second
