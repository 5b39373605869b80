"""Who else acts on a run that sleeps or wakes, on PostgreSQL: both sides have read before either writes, and each side wins once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.db import connection

from approvals.models import ApprovalRequest, Vote
from ledger.domain.commits import Next, NextKind
from ledger.domain.errors import LedgerError
from ledger.domain.waits import MemberKind, MemberSpec, OnDeadline, SetMode, WaitSpec
from ledger.engine import gather, wakes
from ledger.models import Decision, Event, EventDelivery, Grant, User, WaitMember, WaitSet, Wake
from ledger.services import events, facts, identity, verify, waits
from ledger.services import wakes as wake_rows
from ledger.services.events import EventSpec
from tests.clock import Clock
from tests.engine.waking import answer, asking, commit, pay, timer
from tests.meeting import after_its_look, race
from tests.shop import Shop
from tests.world import World

pytestmark = pytest.mark.postgres_only


def slept(world: World) -> UUID:
    """A run whose timer was past: it is to be woken."""
    return commit(world, world.claimed_run(), timer(-1))


def meeting_an_event(world: World, seconds: float = 86_400, or_approval: bool = False) -> tuple[UUID, UUID, UUID]:
    """A waiting run, its member, and an event that fits it; neither has looked for the other yet."""
    packet = world.claimed_run()
    now = facts.read().now
    member = MemberSpec(MemberKind.EVENT, type="order.paid", subject="order/17", since=now - timedelta(hours=1))
    spec = EventSpec("https://shop.example", str(uuid4()), "order.paid", "order/17")
    assert events.receive(world.caller, spec).deliveries == 0
    members = (member, MemberSpec(MemberKind.APPROVAL, effect="pay")) if or_approval else (member,)
    wait = WaitSpec(SetMode.ANY, members, now + timedelta(seconds=seconds), OnDeadline.CANCEL)
    world.commit(packet, Next(NextKind.WAIT, "issue", wait), propose=(pay("payments", ""),) if or_approval else ())
    waiting = WaitMember.objects.of(world.tenant).get(run_id=packet.run.id, kind="event")
    return packet.run.id, waiting.pk, Event.objects.of(world.tenant).get(event_id=spec.id).pk


def wakes_of(world: World, run_id: UUID) -> int:
    return Wake.objects.of(world.tenant).filter(run_id=run_id).count()


def test_a_wake_that_two_take_at_once_has_one_checker(world: World) -> None:
    run_id = slept(world)
    first, second = race(lambda: wake_rows.begin(run_id), lambda: wake_rows.begin(run_id))
    assert first is not None and second is None
    assert Wake.objects.of(world.tenant).get(run_id=run_id).attempt == 1


def test_a_wake_that_two_decide_at_once_is_decided_once(world: World) -> None:
    run_id = slept(world)
    taken = wake_rows.begin(run_id)
    assert taken is not None
    gathered = gather.gather(run_id, taken)
    first, second = race(lambda: wake_rows.apply(run_id, gathered), lambda: wake_rows.apply(run_id, gathered))
    assert (str(first), second) == ("resume", None)
    assert Decision.objects.of(world.tenant).filter(run_id=run_id).count() == 1
    assert world.head(run_id).status == "ready" and verify.run(run_id).faults == []


def test_two_who_bring_one_event_to_one_wait_wake_it_once(world: World) -> None:
    run_id, member_id, event_id = meeting_an_event(world)
    first, second = race(lambda: events.deliver(run_id, member_id, event_id), lambda: waits.look_after_open(run_id))
    assert (first, second) == (True, False)
    assert EventDelivery.objects.of(world.tenant).filter(run_id=run_id).count() == wakes_of(world, run_id) == 1
    assert verify.run(run_id).faults == []


def about_to_meet(world: World) -> tuple[UUID, Callable[[], UUID], Callable[[], events.Received]]:
    """A claimed run; the commit by which it waits for its order to be paid; and the event that says so."""
    packet = world.claimed_run()
    member = MemberSpec(MemberKind.EVENT, type="order.paid", subject="order/17")
    wait = WaitSpec(SetMode.ANY, (member,), facts.read().now + timedelta(days=1), OnDeadline.WAKE)
    spec = EventSpec("https://shop.example", str(uuid4()), "order.paid", "order/17")
    return (
        packet.run.id,
        lambda: commit(world, packet, Next(NextKind.WAIT, "issue", wait)),
        lambda: events.receive(world.caller, spec),
    )


def test_an_event_that_looked_before_its_wait_was_there_is_found_by_the_wait(world: World) -> None:
    run_id, open_wait, receive = about_to_meet(world)
    received = after_its_look(open_wait, receive)
    assert (received.status, received.deliveries) == ("kept", 0), "it had looked already"
    assert world.head(run_id).status == "waking" and wakes_of(world, run_id) == 1


def test_a_wait_that_looked_before_its_event_was_there_is_found_by_the_event(world: World) -> None:
    run_id, open_wait, receive = about_to_meet(world)
    received: list[events.Received] = []
    after_its_look(lambda: received.append(receive()), open_wait)
    assert (received[0].status, received[0].deliveries) == ("matched", 1)
    assert world.head(run_id).status == "waking" and wakes_of(world, run_id) == 1


def test_an_event_that_loses_against_the_deadline_revives_nothing(world: World, clock: Clock) -> None:
    run_id, member_id, event_id = meeting_an_event(world, 60)
    clock.shift(61)
    expired, delivered = race(lambda: waits.expire_due(run_id), lambda: events.deliver(run_id, member_id, event_id))
    assert (expired, delivered) == (True, False)
    wait = WaitSet.objects.of(world.tenant).get(run_id=run_id)
    assert (wait.state, wait.cause, wakes_of(world, run_id)) == ("expired", "deadline_cancel", 1)
    assert str(wakes.run(run_id)) == "finish" and world.head(run_id).status == "cancelled"


def test_two_who_see_a_due_timer_wake_the_run_once(world: World, clock: Clock) -> None:
    run_id = commit(world, world.claimed_run(), timer(5))
    clock.shift(6)
    first, second = race(lambda: waits.expire_due(run_id), lambda: waits.expire_due(run_id))
    assert (first, second) == (True, False) and wakes_of(world, run_id) == 1


def test_an_approval_and_an_event_that_close_one_wait_wake_it_once(world: World) -> None:
    run_id, member_id, event_id = meeting_an_event(world, or_approval=True)
    request = ApprovalRequest.objects.of(world.tenant).get(run_id=run_id)
    _, delivered = race(
        lambda: answer(world, world.alice, request), lambda: events.deliver(run_id, member_id, event_id)
    )
    assert delivered is False and wakes_of(world, run_id) == 1
    assert Grant.objects.of(world.tenant).get(run_id=run_id).state == "live"
    assert verify.run(run_id).faults == []


def test_of_many_approvers_at_once_exactly_one_decides_and_all_others_are_told(world: World, shop: Shop) -> None:
    people = [world.alice, world.bob, *(world.person(f"approver{number}") for number in range(4))]
    for person in people[2:]:
        identity.add_to_team(world.admin, world.approvers, person)
    run_id = asking(world)
    request = ApprovalRequest.objects.of(world.tenant).get(run_id=run_id)
    barrier = threading.Barrier(len(people))

    def vote(number: int, person: User) -> str:
        try:
            barrier.wait(20)
            answer(world, person, request, "deny" if number % 2 else "approve")
            return "decided"
        except LedgerError as refusal:
            return refusal.code
        finally:
            connection.close()

    with ThreadPoolExecutor(len(people)) as pool:
        said = [future.result() for future in [pool.submit(vote, *each) for each in enumerate(people)]]
    assert sorted(said) == ["already-decided"] * (len(people) - 1) + ["decided"]
    assert Vote.objects.of(world.tenant).filter(request=request).count() == 1
    assert wakes_of(world, run_id) == 1 and verify.run(run_id).faults == []
