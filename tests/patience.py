"""Waiting for a condition instead of for a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(true: Callable[[], T], what: str, seconds: float = 20) -> T:
    """Ask again until the answer is true, and answer it; an AssertionError that says `what` after so many seconds."""
    ends = time.monotonic() + seconds
    while not (answer := true()):
        assert time.monotonic() < ends, f"waited {seconds} s for {what}"
        time.sleep(0.02)
    return answer
