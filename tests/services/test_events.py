"""Events early, doubled, late and lost: each wakes its run once, and none is swallowed."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from ledger.domain.commits import Next, NextKind
from ledger.domain.errors import LedgerError
from ledger.domain.identity import Caller
from ledger.domain.waits import MemberKind, MemberSpec, OnDeadline, SetMode, WaitSpec
from ledger.models import Decision, EventDelivery, JournalEntry, WaitMember, WaitSet, Wake
from ledger.services import events, facts, verify, waits
from ledger.services.events import EventSpec
from tests.clock import Clock
from tests.world import World

DAY = timedelta(days=1)


def paid(event_id: str | None = None, subject: str = "order/17", data: bytes = b'{"paid":true}') -> EventSpec:
    return EventSpec("https://shop.example", event_id or str(uuid4()), "order.paid", subject, None, data)


def waiting(world: World, *members: MemberSpec, mode: SetMode = SetMode.ANY, seconds: float = 86_400) -> UUID:
    """A run that waits for an event (by default for a paid order 17)."""
    wanted = members or (MemberSpec(MemberKind.EVENT, type="order.paid", subject="order/17"),)
    wait = WaitSpec(mode, wanted, facts.read().now + timedelta(seconds=seconds), OnDeadline.WAKE)
    run_id = world.waiting_run(wait)
    waits.look_after_open(run_id)
    return run_id


def wakes_of(world: World, run_id: UUID) -> int:
    return Wake.objects.of(world.tenant).filter(run_id=run_id).count()


def deliveries(world: World, run_id: UUID) -> int:
    return EventDelivery.objects.of(world.tenant).filter(run_id=run_id).count()


def test_a_key_without_the_scope_emits_nothing(world: World) -> None:
    powerless = Caller(world.tenant.pk, "agent:x")
    with pytest.raises(LedgerError) as refusal:
        events.receive(powerless, paid())
    assert refusal.value.code == "scope-missing"


def test_the_same_id_with_other_content_is_refused(world: World) -> None:
    events.receive(world.caller, paid("e1"))
    for other in (paid("e1", data=b'{"paid":false}'), paid("e1", subject="order/18")):
        with pytest.raises(LedgerError) as refusal:
            events.receive(world.caller, other)
        assert refusal.value.code == "event-differs"


def test_the_same_identity_of_another_tenant_is_another_event(world: World) -> None:
    events.receive(world.caller, paid("e1"))
    assert events.receive(World().caller, paid("e1", data=b"1")).status == "kept"


def test_an_event_without_a_wait_is_kept_and_is_a_stream_of_one_entry(world: World) -> None:
    received = events.receive(world.caller, paid())
    assert received.status == "kept" and received.deliveries == 0
    entry = JournalEntry.objects.of(world.tenant).get(stream_id=received.event_id)
    assert (entry.kind, entry.seq, entry.verb) == ("event", 1, "event.receive")


def test_an_event_wakes_the_run_that_waits_for_it_once(world: World) -> None:
    run_id = waiting(world)
    received = events.receive(world.caller, paid())
    assert (received.status, received.deliveries) == ("matched", 1)
    assert world.head(run_id).status == "waking" and wakes_of(world, run_id) == 1
    member = WaitMember.objects.of(world.tenant).get(run_id=run_id)
    assert (member.state, member.outcome, member.event_id) == ("met", "received", received.event_id)
    assert WaitSet.objects.of(world.tenant).get(run_id=run_id).state == "satisfied"
    assert verify.run(run_id).intact


def test_an_event_that_came_early_is_found_when_the_wait_opens(world: World) -> None:
    packet = world.claimed_run()
    assert events.receive(world.caller, paid()).status == "kept"
    member = MemberSpec(MemberKind.EVENT, type="order.paid", subject="order/17")
    wait = WaitSpec(SetMode.ANY, (member,), facts.read().now + DAY, OnDeadline.WAKE)
    world.commit(packet, Next(NextKind.WAIT, "issue", wait))
    assert world.head(packet.run.id).status == "waiting"
    waits.look_after_open(packet.run.id)
    assert world.head(packet.run.id).status == "waking" and deliveries(world, packet.run.id) == 1


def test_an_event_from_before_the_transition_was_opened_is_not_taken(world: World) -> None:
    events.receive(world.caller, paid())
    run_id = waiting(world)
    assert world.head(run_id).status == "waiting" and deliveries(world, run_id) == 0


def test_an_event_is_kept_for_seven_days(world: World, clock: Clock) -> None:
    packet = world.claimed_run(seconds=30 * 86_400)
    events.receive(world.caller, paid())
    clock.shift(7 * 86_400 + 1)
    member = MemberSpec(MemberKind.EVENT, type="order.paid")
    wait = WaitSpec(SetMode.ANY, (member,), facts.read().now + DAY, OnDeadline.WAKE)
    world.commit(packet, Next(NextKind.WAIT, "issue", wait))
    waits.look_after_open(packet.run.id)
    assert world.head(packet.run.id).status == "waiting"


def test_a_repeated_event_is_a_duplicate_during_and_after_the_wait(world: World) -> None:
    run_id = waiting(world)
    answers = [events.receive(world.caller, paid("e1")).status for _ in range(5)]
    assert answers == ["matched"] + ["duplicate"] * 4
    assert deliveries(world, run_id) == 1 and wakes_of(world, run_id) == 1


def test_type_source_and_subject_must_fit_where_the_member_names_them(world: World) -> None:
    run_id = waiting(world, MemberSpec(MemberKind.EVENT, source="https://bank.example", type="order.paid"))
    assert events.receive(world.caller, paid()).status == "kept"
    assert world.head(run_id).status == "waiting"
    fitting = EventSpec("https://bank.example", "b1", "order.paid", "anything")
    assert events.receive(world.caller, fitting).status == "matched"


def test_an_event_of_another_tenant_wakes_nobody_here(world: World) -> None:
    run_id = waiting(world)
    assert events.receive(World().caller, paid()).status == "kept"
    assert world.head(run_id).status == "waiting"


def test_all_waits_for_every_event_and_one_event_counts_once(world: World) -> None:
    run_id = waiting(
        world,
        MemberSpec(MemberKind.EVENT, type="order.paid"),
        MemberSpec(MemberKind.EVENT, type="order.packed"),
        mode=SetMode.ALL,
    )
    events.receive(world.caller, paid("e1"))
    assert world.head(run_id).status == "waiting"
    events.receive(world.caller, paid("e2"))
    assert world.head(run_id).status == "waiting"
    events.receive(world.caller, EventSpec("https://shop.example", "e3", "order.packed"))
    assert world.head(run_id).status == "waking" and deliveries(world, run_id) == 2


WIDE_AND_NARROW = (
    MemberSpec(MemberKind.EVENT, type="order.paid"),
    MemberSpec(MemberKind.EVENT, type="order.paid", source="https://shop.example"),
    MemberSpec(MemberKind.EVENT, type="order.paid", subject="order/17"),
)


@pytest.mark.parametrize("early", [False, True], ids=["late", "early"])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)], ids=["wide first", "narrow first"])
def test_an_event_meets_the_narrowest_member_that_it_fits(world: World, order: tuple[int, ...], early: bool) -> None:
    """Else an event about 17 met the member for any order, and one about 18 none of the two that were left."""
    members = tuple(WIDE_AND_NARROW[each] for each in order)
    packet = world.claimed_run()
    wait = WaitSpec(SetMode.ALL, members, facts.read().now + DAY, OnDeadline.WAKE)
    bank = EventSpec("https://bank.example", "b1", "order.paid", "order/19")
    sent = (paid("e1"), paid("e2", subject="order/18"), bank)
    if early:
        for each in sent:
            events.receive(world.caller, each)
    world.commit(packet, Next(NextKind.WAIT, "issue", wait))
    waits.look_after_open(packet.run.id)
    if not early:
        assert [events.receive(world.caller, each).deliveries for each in sent] == [1, 1, 1]
    assert world.head(packet.run.id).status == "waking" and deliveries(world, packet.run.id) == 3


def test_an_event_a_second_after_the_deadline_is_late_and_revives_nothing(world: World, clock: Clock) -> None:
    run_id = waiting(world, seconds=10)
    clock.shift(11)
    assert waits.expire_due(run_id)
    before = wakes_of(world, run_id)
    assert events.receive(world.caller, paid("e1")).status == "late"
    assert events.receive(world.caller, paid("e1")).status == "duplicate"
    assert wakes_of(world, run_id) == before and deliveries(world, run_id) == 0
    assert WaitSet.objects.of(world.tenant).get(run_id=run_id).state == "expired"


@pytest.mark.parametrize("subject", ["", "order/18"])
def test_an_event_is_not_late_for_a_wait_that_was_about_something_else(
    world: World, clock: Clock, subject: str
) -> None:
    gone = waiting(world, MemberSpec(MemberKind.EVENT, type="order.paid", subject=subject), seconds=10)
    clock.shift(11)
    waits.expire_due(gone)
    since = facts.read().now
    clock.shift(1)
    assert events.receive(world.caller, paid("e1")).status == "kept"
    own = waiting(world, MemberSpec(MemberKind.EVENT, type="order.paid", subject="order/17", since=since))
    assert world.head(own).status == "waking" and deliveries(world, own) == 1


def test_an_event_is_late_for_as_long_as_events_are_kept(world: World, clock: Clock) -> None:
    subjectless = (waiting(world, MemberSpec(MemberKind.EVENT, type="order.packed"), seconds=10), "")
    for run_id, subject in ((waiting(world, seconds=10), "order/17"), subjectless):
        clock.shift(11)
        waits.expire_due(run_id)
        kind = "order.paid" if subject else "order.packed"
        for shift, status in ((7 * 86_400 - 5, "late"), (10, "kept")):
            clock.shift(shift)
            sent = EventSpec("https://shop.example", f"{kind}-{status}", kind, subject)
            assert events.receive(world.caller, sent).status == status


def test_an_event_that_matched_a_wait_which_has_gone_is_there_for_the_next(world: World, clock: Clock) -> None:
    first = waiting(world, seconds=10)
    lost = WaitMember.objects.of(world.tenant).get(run_id=first)
    clock.shift(11)
    waits.expire_due(first)
    received = events.receive(world.caller, paid("e1"))
    assert not events.deliver(first, lost.id, received.event_id)
    second = waiting(world, MemberSpec(MemberKind.EVENT, type="order.paid", since=facts.read().now - DAY))
    assert world.head(second).status == "waking" and deliveries(world, second) == 1


def test_a_meeting_that_a_death_left_apart_is_found_by_the_sweep(world: World) -> None:
    packet = world.claimed_run()
    events.receive(world.caller, paid())
    member = MemberSpec(MemberKind.EVENT, type="order.paid")
    wait = WaitSpec(SetMode.ANY, (member,), facts.read().now + DAY, OnDeadline.WAKE)
    world.commit(packet, Next(NextKind.WAIT, "issue", wait))
    assert packet.run.id in waits.for_events(100)
    waits.look_after_open(packet.run.id)
    assert world.head(packet.run.id).status == "waking"
    assert packet.run.id not in waits.for_events(100)


def test_nothing_is_decided_by_receiving(world: World) -> None:
    run_id = waiting(world)
    events.receive(world.caller, paid())
    assert not Decision.objects.of(world.tenant).filter(run_id=run_id).exists()
