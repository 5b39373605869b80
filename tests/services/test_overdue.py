"""What time has closed already is closed before anything that comes later counts, whether or not a sweep has come by."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from threading import Thread
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection

from approvals.domain.decisions import EntryPoint
from approvals.models import ApprovalRequest, Vote
from approvals.services import requests
from approvals.services.decisions import decide
from ledger.domain.effects import ProposalSpec
from ledger.domain.errors import LedgerError
from ledger.domain.waits import MemberKind, MemberSpec, OnDeadline, SetMode, WaitSpec
from ledger.engine import sweep, wakes
from ledger.models import Grant, WaitMember, WaitSet
from ledger.services import events, verify, waits
from ledger.services.events import EventSpec
from tests.approvals.asking import RECEIPT
from tests.clock import Clock
from tests.documents import REQUEST
from tests.world import World

HOUR = 3_600
HEAD = "SELECT head_seq, head_digest FROM ledger_run_head "
"""The first statement of a run's Change on SQLite, before the clock is read."""
PAID = MemberSpec(MemberKind.EVENT, type="order.paid", subject="order/17")
LEAVE = MemberSpec(MemberKind.APPROVAL, effect="pay")


def timer(hours: float) -> MemberSpec:
    return MemberSpec(MemberKind.TIMER, at=timedelta(hours=hours))


def waiting(
    world: World, *members: MemberSpec, mode: SetMode = SetMode.ANY, hours: float = 24, then: str = "cancel"
) -> UUID:
    """A run that waits, with payments proposed for the approvals among what it waits for."""
    named = sorted({member.effect for member in members if member.effect})
    proposed = tuple(ProposalSpec(name, f"payments.{name}", "payments", "", REQUEST) for name in named)
    return world.waiting_run(WaitSpec(mode, members, timedelta(hours=hours), OnDeadline(then)), proposed)


def paid(world: World) -> str:
    spec = EventSpec("https://shop.example", str(uuid4()), "order.paid", "order/17", None, b"1")
    return str(events.receive(world.caller, spec).status)


def wait_of(world: World, run_id: UUID) -> tuple[str, str]:
    found = WaitSet.objects.of(world.tenant).get(run_id=run_id)
    return found.state, found.cause


def outcomes(world: World, run_id: UUID) -> list[str]:
    members = WaitMember.objects.of(world.tenant).filter(run_id=run_id).order_by("ordinal")
    return [member.outcome for member in members]


def request_of(world: World, run_id: UUID, name: str = "pay") -> ApprovalRequest:
    found: ApprovalRequest = ApprovalRequest.objects.of(world.tenant).get(subject_id=world.effect(run_id, name).pk)
    return found


def vote(world: World, run_id: UUID, choice: str = "approve", name: str = "pay") -> Any:
    asked = request_of(world, run_id, name)
    reason = "no" if choice == "deny" else ""
    return decide(world.alice, asked.pk, choice, reason, bytes(asked.digest), asked.revision, EntryPoint.PAGE, RECEIPT)


def elsewhere(act: Callable[[], None]) -> None:
    """On a connection of its own, so that nothing of it is undone with what goes on here."""

    def run() -> None:
        try:
            act()
        finally:
            connection.close()

    thread = Thread(target=run)
    thread.start()
    thread.join()


def at_the_write(table: str, act: Callable[[], None]) -> Callable[..., Any]:
    """Wraps statements: acts once, after the facts were read, before the write that names the table looks at the clock."""
    done: list[bool] = []

    def wrapper(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if (f"INSERT INTO {table} " if connection.vendor == "postgresql" else HEAD) in sql and not done:
            done.append(True)
            elsewhere(act)
        return execute(sql, params, many, context)

    return wrapper


@pytest.mark.parametrize("late_by", [0, HOUR], ids=["at the deadline", "an hour later"])
def test_an_event_from_the_deadline_on_is_late_and_the_deadlines_action_holds_though_no_sweep_ran(
    world: World, clock: Clock, late_by: int
) -> None:
    run_id = waiting(world, PAID, hours=1)
    clock.shift(HOUR + late_by)
    assert paid(world) == "late"
    assert wait_of(world, run_id) == ("expired", "deadline_cancel") and outcomes(world, run_id) == [""]
    assert wakes.run(run_id) == "finish" and world.head(run_id).status == "cancelled"
    assert verify.run(run_id).intact


def test_an_event_before_the_deadline_counts(world: World, clock: Clock) -> None:
    run_id = waiting(world, PAID, hours=1)
    clock.shift(HOUR - 60)
    assert paid(world) == "matched" and wait_of(world, run_id) == ("satisfied", "received")


def test_an_event_whose_delivery_reaches_the_lock_after_the_deadline_is_late(world: World, clock: Clock) -> None:
    run_id = waiting(world, PAID, hours=1)
    with connection.execute_wrapper(at_the_write("ledger_event_delivery", lambda: clock.shift(HOUR))):
        assert paid(world) == "late"
    assert wait_of(world, run_id) == ("expired", "deadline_cancel")


def test_a_timer_that_was_due_first_wins_over_an_event(world: World, clock: Clock) -> None:
    run_id = waiting(world, PAID, timer(1))
    clock.shift(2 * HOUR)
    assert paid(world) == "late"
    assert wait_of(world, run_id) == ("satisfied", "due") and outcomes(world, run_id) == ["", "due"]


def test_beside_a_timer_that_is_only_one_of_all_an_event_counts(world: World, clock: Clock) -> None:
    run_id = waiting(world, PAID, timer(1), mode=SetMode.ALL)
    clock.shift(2 * HOUR)
    assert paid(world) == "matched" and world.head(run_id).status == "waiting"
    assert waits.expire_due(run_id) and wait_of(world, run_id) == ("satisfied", "all_met")


def test_an_approval_that_ran_out_first_wins_over_an_event(world: World, clock: Clock) -> None:
    world.policy(({"tool": "payments.*", "verdict": "approve", "group": "approvers", "decide_by": HOUR},))
    run_id = waiting(world, PAID, LEAVE)
    clock.shift(2 * HOUR)
    assert paid(world) == "late"
    assert wait_of(world, run_id) == ("expired", "expired") and outcomes(world, run_id) == ["", "expired"]
    assert request_of(world, run_id).state == "expired"
    effect = world.effect(run_id)
    assert (effect.state, effect.cause) == ("withdrawn", "expired") and verify.run(run_id).intact


@pytest.mark.parametrize("choice", ["approve", "deny"])
def test_a_vote_after_a_timer_that_was_due_first_is_refused_and_the_run_goes_on_by_the_timer(
    world: World, clock: Clock, choice: str
) -> None:
    run_id = waiting(world, LEAVE, timer(1))
    clock.shift(2 * HOUR)
    with pytest.raises(LedgerError) as refusal:
        vote(world, run_id, choice)
    assert refusal.value.code == "expired", "the card said that it is to be decided before the timer"
    sweep.sweep(1_000)
    assert wait_of(world, run_id) == ("satisfied", "due") and request_of(world, run_id).state == "withdrawn"
    assert not Vote.objects.of(world.tenant).filter(run_id=run_id).exists()
    assert not Grant.objects.of(world.tenant).filter(run_id=run_id).exists() and verify.run(run_id).intact


def test_a_vote_that_reaches_the_lock_after_a_timer_is_refused(world: World, clock: Clock) -> None:
    run_id = waiting(world, LEAVE, timer(1))
    with (
        connection.execute_wrapper(at_the_write("approvals_vote", lambda: clock.shift(HOUR))),
        pytest.raises(LedgerError) as refusal,
    ):
        vote(world, run_id)
    assert refusal.value.code == "expired"
    sweep.sweep(1_000)
    assert wait_of(world, run_id) == ("satisfied", "due")


def test_a_vote_after_another_request_of_the_same_wait_ran_out_is_refused(world: World, clock: Clock) -> None:
    short = {"tool": "payments.fee", "verdict": "approve", "group": "approvers", "decide_by": HOUR}
    world.policy((short, {"tool": "payments.*", "verdict": "approve", "group": "approvers"}))
    run_id = waiting(world, LEAVE, MemberSpec(MemberKind.APPROVAL, effect="fee"), mode=SetMode.ALL)
    clock.shift(2 * HOUR)
    with pytest.raises(LedgerError) as refusal:
        vote(world, run_id)
    assert refusal.value.code == "wrong-state"
    assert request_of(world, run_id, "fee").state == "expired" and wait_of(world, run_id) == ("expired", "expired")


def test_a_vote_before_the_timer_counts(world: World, clock: Clock) -> None:
    run_id = waiting(world, LEAVE, timer(1))
    clock.shift(HOUR - 60)
    assert vote(world, run_id).state == "approved" and wait_of(world, run_id) == ("satisfied", "approved")


@pytest.mark.parametrize(
    ("hours", "expected"),
    [(0.5, ("satisfied", "due")), (2, ("expired", "expired"))],
    ids=["timer first", "decide-by first"],
)
@pytest.mark.parametrize("first", [requests.expire_of, waits.expire_due], ids=["requests", "waits"])
def test_whichever_was_due_first_closes_the_wait_whatever_a_late_sweep_begins_with(
    world: World, clock: Clock, hours: float, expected: tuple[str, str], first: Callable[[UUID], bool]
) -> None:
    world.policy(({"tool": "payments.*", "verdict": "approve", "group": "approvers", "decide_by": HOUR},))
    run_id = waiting(world, LEAVE, timer(hours))
    clock.shift(48 * HOUR)
    assert first(run_id)
    assert wait_of(world, run_id) == expected
    assert request_of(world, run_id).state == ("expired" if expected[0] == "expired" else "withdrawn")


def test_a_policy_that_leaves_less_time_to_decide_leaves_it_to_request_and_wait_alike(
    world: World, clock: Clock
) -> None:
    run_id = waiting(world, PAID, LEAVE)
    world.policy(({"tool": "payments.*", "verdict": "approve", "group": "approvers", "decide_by": HOUR},))
    with pytest.raises(LedgerError) as refusal:
        vote(world, run_id)
    assert refusal.value.code == "changed"
    member = WaitMember.objects.of(world.tenant).get(run_id=run_id, kind="approval")
    assert member.due_at == request_of(world, run_id).decide_by
    clock.shift(2 * HOUR)
    assert paid(world) == "late", "nobody decided in time, and no sweep ran"
    assert wait_of(world, run_id) == ("expired", "expired") and outcomes(world, run_id) == ["", "expired"]
    assert request_of(world, run_id).state == "expired" and verify.run(run_id).intact


def test_a_wait_of_less_time_than_the_deadline_is_told_and_never_takes_the_deadline_s_action(
    world: World, clock: Clock
) -> None:
    run_id = waiting(world, LEAVE)
    world.policy(({"tool": "payments.*", "verdict": "approve", "group": "approvers", "decide_by": HOUR},))
    with pytest.raises(LedgerError):
        vote(world, run_id)
    clock.shift(48 * HOUR)
    assert waits.expire_due(run_id), "the first sweep for two days"
    assert wait_of(world, run_id) == ("expired", "expired") and wakes.run(run_id) == "resume"
