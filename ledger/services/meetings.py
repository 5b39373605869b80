"""What two writers who didn't see each other left apart: waits for an event, and events that fit one, of which neither has found the other."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, Protocol
from uuid import UUID

from ledger.services import facts
from ledger.services.events import BY_SUBJECT, NOT_CONSUMED, meets
from ledger.services.facts import Part
from ledger.services.ids import first_id

LOOKED_BACK: Final = timedelta(minutes=10)
"""How old the younger of the two may be when it is usually looked at. Whoever wrote it looks at once, and a statement is given up long before."""
ALL_AGAIN: Final = timedelta(minutes=10)


class Find(Protocol):
    """Runs for which something is to be done, at most `limit`: because of what was written after `since`, or whenever it was (None)."""

    def __call__(self, limit: int, since: datetime | None = None) -> list[UUID]: ...


class Looks:
    """One process's looks for one thing. They are at the young ones; at all of them first, after a pause in which some may have grown old, and once
    in a while.

    What is looked at each second must not grow with what waits.
    """

    def __init__(self, find: Find, back: timedelta = LOOKED_BACK) -> None:
        self.find, self.back = find, back
        self.last: datetime | None = None
        self.whole: datetime | None = None

    def found(self, limit: int) -> list[UUID]:
        """Runs for which something is to be done, at most `limit`."""
        now = facts.read().now
        whole = self._whole_due(now)
        found = self.find(limit, None if whole else now - self.back)
        self.last = now
        if whole and len(found) < limit:
            self.whole = now
        return found

    def _whole_due(self, now: datetime) -> bool:
        if self.last is None or self.whole is None:
            return True
        return not (self.last <= now < self.last + self.back / 2) or now >= self.whole + ALL_AGAIN


def unmet(limit: int, since: datetime | None = None) -> list[UUID]:
    """Runs that wait for an event which is there, where either of the two was written after `since` (None: whenever it was)."""
    floor = UUID(int=0) if since is None else first_id(since)
    kept = f"e.keep_until > {facts.clock()} AND {NOT_CONSUMED}"
    pairs = " UNION ".join(
        f"SELECT m.id AS id FROM ledger_event e JOIN ledger_wait_member m ON {meets()} AND {subject}"
        f" WHERE {younger}.id >= %s AND m.state = 'open' AND {kept}"
        for younger in ("e", "m")
        for subject in BY_SUBJECT
    )
    read = facts.read(
        members=Part(
            "wait_member",
            f"t.id IN (SELECT f.id FROM ({pairs} ORDER BY id LIMIT {limit}) f)",
            (floor,) * 2 * len(BY_SUBJECT),
            many=True,
            order="t.id",
        )
    )
    return list(dict.fromkeys(row["run_id"] for row in read.many("members")))
