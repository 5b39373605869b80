"""A token bucket: nothing beyond what it holds, and no more in the long run than its rate."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ledger.domain.rates import Bucket, Rate, take

RATE = Rate(per_minute=60, at_once=3)


def test_beyond_what_it_holds_a_call_is_refused_and_told_how_long_to_wait() -> None:
    bucket: Bucket | None = None
    for _ in range(3):
        bucket, wait = take(bucket, RATE, 100.0)
        assert wait == 0
    bucket, wait = take(bucket, RATE, 100.25)
    assert wait == 0.75
    assert take(bucket, RATE, 101.0) == (Bucket(0.0, 101.0), 0.0)


def test_a_refused_call_takes_nothing_and_an_idle_key_saves_up_no_more_than_it_may_use_at_once() -> None:
    empty = Bucket(0.0, 0.0)
    for _ in range(50):
        empty, wait = take(empty, RATE, 0.5)
        assert wait == 0.5
    assert take(Bucket(0.0, 0.0), RATE, 3_600.0)[0] == Bucket(2.0, 3_600.0)


def test_a_clock_that_stands_still_or_goes_back_gives_nothing() -> None:
    assert take(Bucket(0.0, 100.0), RATE, 90.0) == (Bucket(0.0, 100.0), 1.0)


@given(st.lists(st.floats(0, 30), max_size=200))
def test_over_any_time_no_more_calls_are_taken_than_the_rate_and_the_burst(gaps: list[float]) -> None:
    bucket, now, taken = None, 0.0, 0
    for gap in gaps:
        now += gap
        bucket, wait = take(bucket, RATE, now)
        taken += not wait
    assert taken <= RATE.at_once + now * RATE.per_minute / 60 + 1e-6
