"""Two sides of a race that have both read before either writes, on PostgreSQL."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.db import connection

from ledger.domain.errors import LedgerError

Act = Callable[[], Any]


@dataclass
class Meeting:
    """Both sides stop before their first write, so both have read; then the winner writes, and after it the loser."""

    barrier: threading.Barrier = field(default_factory=lambda: threading.Barrier(2))
    written: threading.Event = field(default_factory=threading.Event)
    results: dict[str, Any] = field(default_factory=dict)

    def side(self, name: str, act: Act) -> None:
        met = False

        def wrapper(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
            nonlocal met
            if met or "INSERT INTO ledger_journal_entry" not in sql:
                return execute(sql, params, many, context)
            met = True
            self.barrier.wait(20)
            if name == "loser":
                assert self.written.wait(20)
            try:
                return execute(sql, params, many, context)
            finally:
                if name == "winner":
                    self.written.set()

        try:
            with connection.execute_wrapper(wrapper):
                self.results[name] = act()
        except LedgerError as refusal:
            self.results[name] = refusal
        finally:
            connection.close()


def race(winner: Act, loser: Act) -> tuple[Any, Any]:
    """What both sides were answered. Fails unless both were about to write on what they had read."""
    meeting = Meeting()
    threads = [threading.Thread(target=meeting.side, args=pair) for pair in (("winner", winner), ("loser", loser))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not meeting.barrier.broken and meeting.written.is_set(), "they didn't overlap"
    return meeting.results["winner"], meeting.results["loser"]


def between_reading_and_writing(meanwhile: Act, act: Act) -> Any:
    """What `act` answers when `meanwhile` happens, on a connection of its own, after `act` has read and before it first writes."""
    elsewhere = Elsewhere(meanwhile)

    def wrapper(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if "INSERT INTO ledger_journal_entry" in sql:
            elsewhere.once()
        return execute(sql, params, many, context)

    with connection.execute_wrapper(wrapper):
        answer = act()
    assert elsewhere.happened.is_set(), "nothing was about to be written"
    return answer


LOOK = "FROM ledger_event_delivery d WHERE d.event_id = e.id"
"""What every look for events that fit a wait, or for waits that fit an event, has in its statement."""


def after_its_look(meanwhile: Act, act: Act) -> Any:
    """What `act` answers when `meanwhile` happens, on a connection of its own, just after `act` has looked for its other half."""
    elsewhere = Elsewhere(meanwhile)

    def wrapper(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        result = execute(sql, params, many, context)
        if LOOK in sql:
            elsewhere.once()
        return result

    with connection.execute_wrapper(wrapper):
        answer = act()
    assert elsewhere.happened.is_set(), "it never looked"
    return answer


class Elsewhere:
    """An act on a connection of its own, that happens once while another one is under way."""

    def __init__(self, act: Act) -> None:
        self.act, self.happened = act, threading.Event()

    def once(self) -> None:
        """Let it happen, unless it has."""
        if self.happened.is_set():
            return
        thread = threading.Thread(target=self._happen)
        thread.start()
        thread.join(20)
        assert self.happened.is_set()

    def _happen(self) -> None:
        try:
            self.act()
            self.happened.set()
        finally:
            connection.close()
