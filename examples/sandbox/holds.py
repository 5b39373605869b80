"""Requests that block until released, so that their caller can be killed exactly there."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from examples.sandbox.messages import JSON

_POLL_SECONDS = 0.02
_LONGEST_SECONDS = 900.0


class Verdict(StrEnum):
    """How a block ended."""

    GO_ON = "go_on"
    ABANDON = "abandon"


@dataclass(slots=True)
class Hold:
    """One blocked request."""

    id: int
    point: str
    seq: int
    key: str
    path: str
    at: str
    verdict: Verdict | None = None

    def as_json(self) -> JSON:
        """What the control plane tells about it."""
        return {
            "id": self.id,
            "point": self.point,
            "seq": self.seq,
            "key": self.key,
            "path": self.path,
            "at": self.at,
        }


class Holds:
    """All blocked and lingering requests."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._blocked: dict[int, Hold] = {}
        self._next = 1
        self._round = 0

    def block(self, *, point: str, seq: int, key: str, path: str, at: str, until: Callable[[], bool]) -> Verdict:
        """Block until released, or ``until`` holds (go on), or for 15 minutes (abandon)."""
        with self._changed:
            hold = Hold(self._next, point, seq, key, path, at)
            self._next += 1
            self._blocked[hold.id] = hold
            self._changed.notify_all()
            give_up = time.monotonic() + _LONGEST_SECONDS
            while hold.verdict is None:
                if until():
                    hold.verdict = Verdict.GO_ON
                elif time.monotonic() > give_up:
                    hold.verdict = Verdict.ABANDON
                else:
                    self._changed.wait(_POLL_SECONDS)
            del self._blocked[hold.id]
            self._changed.notify_all()
            return hold.verdict

    def linger(self, seconds: float, until: Callable[[], bool]) -> None:
        """Stay for ``seconds``, less when ``until`` holds or everything is released."""
        give_up = time.monotonic() + seconds
        with self._changed:
            mine = self._round
            while self._round == mine and not until() and (left := give_up - time.monotonic()) > 0:
                self._changed.wait(min(left, _POLL_SECONDS))

    def wait_for(self, count: int, seconds: float, key: str | None) -> list[Hold]:
        """The blocked requests (of a key), once ``count`` are or ``seconds`` are over."""

        def found() -> list[Hold]:
            return [hold for hold in self._blocked.values() if key is None or hold.key == key]

        with self._changed:
            self._changed.wait_for(lambda: len(found()) >= count, seconds)
            return found()

    def release(self, verdict: Verdict, hold_id: int | None = None, key: str | None = None) -> int:
        """Release one block, those of a key, or all; returns how many."""
        released = 0
        with self._changed:
            for hold in self._blocked.values():
                if hold_id in (None, hold.id) and key in (None, hold.key) and hold.verdict is None:
                    hold.verdict = verdict
                    released += 1
            self._changed.notify_all()
        return released

    def release_everything(self) -> None:
        """Abandon all blocks and end all lingering: the service is being reset or stopped."""
        with self._changed:
            self._round += 1
        self.release(Verdict.ABANDON)
