"""Two people decide at the same moment, on PostgreSQL: the second waits for the first's lock, reads what it wrote, and is told.

Overlap is proven: one transaction is held open under the run's lock until the database itself says that the other waits for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
from django.db import connection, transaction

from approvals.services import policies, requests
from approvals.services.decisions import DecisionAnswer
from ledger.domain.errors import LedgerError
from ledger.services import identity, verify
from tests.approvals.asking import Asked, asked, rule
from tests.clock import Clock
from tests.world import World

pytestmark = pytest.mark.postgres_only
Act = Callable[[], Any]


def outcome(act: Act) -> Any:
    try:
        return act()
    except LedgerError as refusal:
        return refusal


def waiting_for(pid: int) -> int:
    """How many sessions wait for a lock that this one holds."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))", [pid])
        found: int = cursor.fetchone()[0]
    return found


LOCKED, WRITTEN = "FOR UPDATE", "ledger_journal_entry"
"""Where the first is held: with the lock and nothing read yet, or with everything written and not committed."""


class Hold:
    """An execute wrapper that stops its thread once, after the statement that holds `point`, until it is told to go on."""

    def __init__(self, point: str) -> None:
        self.point = point
        self.reached, self.go_on = threading.Event(), threading.Event()
        self.pid = 0

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        result = execute(sql, params, many, context)
        if not self.reached.is_set() and "ledger_run_head" in sql and self.point in sql:
            self.pid = context["connection"].connection.info.backend_pid
            self.reached.set()
            assert self.go_on.wait(20)
        return result


def race(first: Act, second: Act, meanwhile: Act = lambda: None, point: str = LOCKED) -> tuple[Any, Any]:
    """`first` is held at `point` with the run's lock; `second` begins, is seen waiting for it, `meanwhile` happens, and both go on."""
    results: dict[str, Any] = {}
    hold = Hold(point)

    def run(name: str, act: Act, wrapped: bool) -> None:
        try:
            with connection.execute_wrapper(hold) if wrapped else nullcontext():
                results[name] = outcome(act)
        finally:
            connection.close()

    one = threading.Thread(target=run, args=("first", first, True))
    two = threading.Thread(target=run, args=("second", second, False))
    one.start()
    assert hold.reached.wait(20)
    two.start()
    seen = False
    while two.is_alive() and not seen:
        seen = waiting_for(hold.pid) > 0
    meanwhile()
    hold.go_on.set()
    one.join(20)
    two.join(20)
    assert seen, "the second never waited for the first: no overlap"
    return results["first"], results["second"]


def whole(ask: Asked) -> bool:
    """One decision, one grant at most, one outcome of the wait, and a history that verifies."""
    approved = ask.request.state == "approved"
    return len(ask.grants) == int(approved) and not verify.run(ask.run_id).faults


def test_of_two_last_votes_exactly_one_decides(world: World) -> None:
    ask = asked(world)
    first, second = race(lambda: ask.decide(world.alice), lambda: ask.decide(world.bob))
    assert isinstance(first, DecisionAnswer) and first.state == "approved"
    assert isinstance(second, LedgerError) and second.code == "already-decided"
    assert second.facts["decided_by"] == str(world.alice.pk)
    assert len(ask.votes) == 1 and whole(ask)


def test_two_votes_that_make_a_quorum_together_reach_it_once(world: World) -> None:
    ask = asked(world, rule(quorum=2))
    first, second = race(lambda: ask.decide(world.alice), lambda: ask.decide(world.bob))
    assert (first.state, second.state) == ("pending", "approved")
    assert len(ask.votes) == 2 and len(ask.grants) == 1 and whole(ask)


def test_a_double_click_is_one_vote_and_both_get_the_same_answer(world: World) -> None:
    ask = asked(world)
    first, second = race(lambda: ask.decide(world.alice), lambda: ask.decide(world.alice))
    assert (first.state, first.repeated, second.state, second.repeated) == ("approved", False, "approved", True)
    assert first.grant_id == second.grant_id and len(ask.votes) == 1 and whole(ask)


@pytest.mark.parametrize("first_choice", ["approve", "deny"])
def test_approve_against_deny_has_one_winner_and_the_loser_sees_it(world: World, first_choice: str) -> None:
    ask = asked(world)
    other = "deny" if first_choice == "approve" else "approve"
    first, second = race(
        lambda: ask.decide(world.alice, first_choice, "because"), lambda: ask.decide(world.bob, other, "because")
    )
    assert second.code == "already-decided" and second.facts["state"] == first.state
    assert ask.request.state == first.state and len(ask.votes) == 1 and whole(ask)


def test_a_vote_that_waited_for_the_lock_past_decide_by_is_refused(world: World, clock: Clock) -> None:
    ask = asked(world, rule(decide_by=60))
    first, second = race(
        lambda: ask.decide(world.alice),
        lambda: ask.decide(world.bob, "deny", "late"),
        meanwhile=lambda: clock.shift(61),
    )
    assert (first.code, second.code) == ("expired", "expired")
    assert not ask.votes and whole(ask)


def test_a_sweep_that_waited_for_an_approval_leaves_it_alone(world: World, clock: Clock) -> None:
    ask = asked(world, rule(decide_by=60))

    def late_sweep() -> bool:
        clock.shift(61)
        return requests.expire_of(ask.run_id)

    first, _ = race(lambda: ask.decide(world.alice), late_sweep, point=WRITTEN)
    assert first.state == "approved" and ask.request.state == "approved"
    assert ask.effect.state == "proposed" and whole(ask)


def test_a_vote_that_waited_for_a_sweep_is_told_that_it_expired(world: World, clock: Clock) -> None:
    ask = asked(world, rule(decide_by=60))
    now = ask.request
    seen = {"seen_digest": bytes(now.digest), "seen_revision": now.revision}
    clock.shift(61)

    def sweep() -> None:
        with transaction.atomic():
            requests.expire_of(ask.run_id)

    _, second = race(sweep, lambda: ask.decide(world.alice, **seen), point=WRITTEN)
    assert second.code == "expired" and ask.request.state == "expired"
    assert not ask.votes and whole(ask)


@pytest.mark.parametrize("choice", ["approve", "deny"])
def test_a_vote_that_waited_while_it_was_asked_anew_is_not_counted_for_that(world: World, choice: str) -> None:
    ask = asked(world, rule())
    seen = {"seen_digest": bytes(ask.request.digest), "seen_revision": 1}
    world.policy((rule(quorum=2),))

    def sweep() -> bool:
        with transaction.atomic():
            return policies.follow(ask.run_id)

    moved, refusal = race(sweep, lambda: ask.decide(world.alice, choice, "no", **seen), point=WRITTEN)
    assert moved is True and refusal.code == "changed"
    assert (ask.request.state, ask.request.revision, ask.votes) == ("pending", 2, []) and whole(ask)


def test_a_sweep_that_waited_for_a_denial_asks_nobody_anew(world: World) -> None:
    ask = asked(world, rule())
    world.policy((rule(quorum=2),))
    vote, moved = race(lambda: ask.decide(world.alice, "deny", "no"), lambda: policies.follow(ask.run_id))
    assert vote.state == "denied" and moved is False and ask.request.revision == 1


def test_a_right_that_is_taken_while_the_vote_waits_is_not_there_any_more(world: World) -> None:
    ask = asked(world, rule(quorum=2))
    first, second = race(
        lambda: ask.decide(world.alice),
        lambda: ask.decide(world.bob),
        meanwhile=lambda: identity.remove_from_team(world.admin, world.approvers, world.bob),
    )
    assert first.state == "pending" and second.code == "not-found"
    assert [vote.voter_id for vote in ask.votes] == [world.alice.pk] and whole(ask)


def test_a_right_that_is_taken_between_reading_and_writing_stops_the_vote(world: World) -> None:
    ask = asked(world)
    removed = threading.Event()

    def remove_after_the_rights_were_read(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if WRITTEN in sql and not removed.is_set():
            removed.set()
            thread = threading.Thread(target=remove)
            thread.start()
            thread.join(20)
        return execute(sql, params, many, context)

    def remove() -> None:
        try:
            identity.remove_from_team(world.admin, world.approvers, world.alice)
        finally:
            connection.close()

    with connection.execute_wrapper(remove_after_the_rights_were_read):
        refusal = outcome(lambda: ask.decide(world.alice))
    assert removed.is_set() and isinstance(refusal, LedgerError) and refusal.code == "not-found"
    assert not ask.votes and not ask.grants and whole(ask)
