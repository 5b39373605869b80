"""The sweep: everything that is due, from rows alone. Queue messages only make it prompt; without any of them everything still proceeds.

Each pass takes a bounded batch. An item that fails is logged by its id and the kind of error, and never stops the rest. Neither does a connection
that is lost: passes come in an order, and where each loss ended the sweep, the last of them would never have their turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic
from typing import Any, Final

import structlog
from django.db import OperationalError, connection

from ledger.domain.errors import LedgerError
from ledger.engine import clocks, reconcile, wakes
from ledger.services import effects, facts, grants, handoffs, leases, verifications, waits
from ledger.services import wakes as wake_rows
from ledger.services.contracts import writes
from ledger.services.effects import Due
from ledger.services.facts import Part

BATCH: Final = 100
NEVER_LONGER: Final = timedelta(seconds=1)
LONGEST_EACH: Final = 0.05
"""Seconds for each item that a pass may take; one that asks targets begins with no further item after that (five seconds for a batch): a target
that is silent must not keep leases and deadlines waiting. What is left is due at the next pass, and what was asked comes round later than that."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Pass:
    """One kind of thing that becomes due: `due` answers at most so many items, `act` handles one and may be repeated. `together`, where there is one,
    handles many at once before that, and answers those that are left for `act`."""

    name: str
    due: Callable[[int], Sequence[Any]]
    act: Callable[[Any], object]
    asks_targets: bool = False
    together: Callable[[Sequence[Any]], Sequence[Any]] | None = None


def _effect(due: Due) -> object:
    return effects.lapse(due.run_id) if due.lapse else reconcile.reconcile(due.effect_id)


FACTS: Final = (
    Pass("leases", leases.due, leases.lapse),
    Pass("lapsed_calls", lambda limit: [due for due in effects.due(limit) if due.lapse], _effect),
)
_WAKES: Final = Pass("wakes", wake_rows.due, wakes.run, asks_targets=True, together=wakes.run_each)
WAITS: Final = (
    Pass("waits", waits.due, waits.expire_due, together=waits.expire_each),
    Pass("events", waits.for_events, waits.look_after_open),
    Pass("grants", grants.due, grants.expire),
    Pass("handoffs", handoffs.due, handoffs.escalate),
    Pass("owners", handoffs.left, handoffs.reopen),
    Pass("clearances", wake_rows.unclaimed, wake_rows.not_claimed),
    Pass("versions", wake_rows.outdated, wake_rows.reconsider),
    _WAKES,
    Pass("effects", effects.due, _effect, asks_targets=True),
)
CHECKS: Final = Pass("verifications", verifications.due, verifications.advance)

_hooks: Final[dict[str, Callable[[int], int]]] = {}
_watch: Final = clocks.Watch()


def register(name: str, expire: Callable[[int], int]) -> None:
    """Add another app's pass: it acts on at most so many due items and answers how many. It runs before waits look at their deadlines."""
    _hooks[name] = expire


@writes(
    moves="Everything that is due, by the services above; other apps' passes between facts and deadlines.",
    twice="Takes what became due since.",
    dies="What is left is due rows: any other sweep goes on.",
)
def sweep(limit: int = BATCH) -> dict[str, int]:
    """Act once on everything that is due, at most `limit` of each kind. Answers how many of each were looked at."""
    clocks.look(_watch, limit)
    done = {each.name: _run(each, limit) for each in FACTS}
    done |= {name: _hook(name, expire, limit) for name, expire in _hooks.items()}
    return done | {each.name: _run(each, limit) for each in (*WAITS, CHECKS)}


@writes(
    moves="What `wakes.run` moves, for each wake that is due.",
    twice="Takes what became due since.",
    dies="The wakes that are left are due rows.",
)
def wakes_due(limit: int = BATCH) -> int:
    """Only the wakes that are due. Answers how many were looked at."""
    return _run(_WAKES, limit)


@writes(
    moves="What `effects.lapse` and `reconcile` move, for each effect that is due.",
    twice="Takes what became due since.",
    dies="What is left is due rows.",
)
def reconcile_due(limit: int = BATCH) -> int:
    """Only the effects that are due: lapse them, or ask their targets."""
    return _run(WAITS[-1], limit)


def _run(each: Pass, limit: int) -> int:
    items = _due(each, limit)
    left = _together(each, items)
    begun = monotonic()
    for done, item in enumerate(left):
        if done and each.asks_targets and monotonic() - begun > limit * LONGEST_EACH:
            return len(items) - len(left) + done
        try:
            each.act(item)
        except LedgerError as refusal:
            _log.warning("sweep_item_refused", what=each.name, item=_id(item), code=refusal.code)
        except Exception as fault:
            _log.error("sweep_item_failed", what=each.name, item=_id(item), error=type(fault).__name__)
            connection.close_if_unusable_or_obsolete()
    return len(items)


def _together(each: Pass, items: Sequence[Any]) -> Sequence[Any]:
    """What is left for itself after all that could be done together; all of it where that failed."""
    if each.together is None or len(items) < 2:
        return items
    try:
        return each.together(items)
    except Exception as fault:
        _log.warning("sweep_one_by_one", what=each.name, error=type(fault).__name__)
        connection.close_if_unusable_or_obsolete()
        return items


def _due(each: Pass, limit: int) -> Sequence[Any]:
    """What is due. Where the connection is lost, one more is made; when that fails too, the database doesn't answer."""
    try:
        return each.due(limit)
    except OperationalError as fault:
        _log.warning("sweep_pass_repeated", what=each.name, error=type(fault).__name__)
        connection.close_if_unusable_or_obsolete()
        return each.due(limit)


def _hook(name: str, expire: Callable[[int], int], limit: int) -> int:
    try:
        return expire(limit)
    except Exception as fault:
        _log.error("sweep_hook_failed", what=name, error=type(fault).__name__)
        connection.close_if_unusable_or_obsolete()
        return 0


def _id(item: Any) -> str:
    return str(item.effect_id if isinstance(item, Due) else item)


def pause() -> timedelta:
    """How long nothing will be due, at most a second: what a timer process sleeps."""
    read = facts.read(
        waits=Part("wait_set", "t.state = 'open'", order="t.due_at"),
        wakes=Part("wake", "t.state = 'queued'", order="t.due_at"),
        effects=Part("effect", "t.state IN ('in_flight', 'unknown')", order="t.due_at"),
        leases=Part("lease", "t.active", order="t.expires_at"),
    )
    times = [row["due_at"] for name in ("waits", "wakes", "effects") if (row := read.row(name))]
    lease = read.row("leases")
    if lease:
        times.append(lease["expires_at"])
    left = min([moment - read.now for moment in times], default=NEVER_LONGER)
    return max(timedelta(milliseconds=20), min(left, NEVER_LONGER))
