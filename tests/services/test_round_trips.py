"""Round trips are numbers: the statements of each verb in process, on PostgreSQL, and that they stay the same at ten times the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.db import connection
from psycopg._queries import _query2pg

from ledger.domain.commits import Next, NextKind
from ledger.domain.effects import EffectState, LookAnswer, Settled, SettleSpec
from ledger.domain.starts import StartSpec
from ledger.domain.waits import MemberKind, MemberSpec, OnDeadline, SetMode, WaitSpec
from ledger.engine import gather, proposals, wakes
from ledger.services import effects, events, facts, leases, runs, waits
from ledger.services import wakes as wake_rows
from ledger.services.checkpoints import CommitSpec
from ledger.services.checkpoints import commit_transition as committed_transition
from ledger.services.effects import Looked
from ledger.services.events import EventSpec
from ledger.services.packets import Packet
from tests.approvals.asking import asked, rule
from tests.clock import Clock
from tests.documents import STATE
from tests.services.issuing import DONE, PAY, issuing, opened, reclaim
from tests.trips import Act, short, statements
from tests.world import World

pytestmark = pytest.mark.postgres_only

Scene = Callable[[World, Clock], Act]
"""Everything up to the act, which is counted."""
DAY = timedelta(days=1)
BACK = Next(NextKind.GIVE_BACK, "issue")
PAID = MemberSpec(MemberKind.EVENT, type="order.paid", subject="order/1")


def event(subject: str = "order/1") -> EventSpec:
    return EventSpec("https://shop.example", str(uuid4()), "order.paid", subject)


def wait(*members: MemberSpec) -> Next:
    return Next(NextKind.WAIT, "issue", WaitSpec(SetMode.ANY, members, DAY, OnDeadline.WAKE))


def spec(packet: Packet, next_: Next, **fields: object) -> CommitSpec:
    made = CommitSpec(packet.fence, packet.checkpoint["seq"], "code-1", dict(STATE), next_, str(uuid4()), {})
    return replace(made, **fields)  # type: ignore[arg-type]


def commit(world: World, packet: Packet, next_: Next, **fields: object) -> UUID:
    proposals.commit(world.caller, packet.run.id, spec(packet, next_, **fields))
    return packet.run.id


# Owning a run -----------------------------------------------------------------------------------


def start(world: World, clock: Clock) -> Act:
    new = StartSpec("refund", "1", "refund order 17", dict(STATE), {}, "", str(uuid4()))
    return lambda: runs.start(world.caller, new)


def claim(count: int, others: int = 0) -> Scene:
    """`count` runs are claimed at once, with `others` ready beside them."""

    def scene(world: World, clock: Clock) -> Act:
        world.start_run()
        offer = replace(world.offer("1"), limit=1)
        leases.claim(
            world.caller, offer
        )  # A worker that is seen for the first time in half a minute is noted: one more.
        for _ in range(count + others):
            world.start_run()

        def act() -> None:
            assert len(leases.claim(world.caller, replace(offer, limit=count))) == count

        return act

    return scene


def heartbeat(world: World, clock: Clock) -> Act:
    worker = uuid4()
    for _ in range(3):
        world.start_run()
    packets = leases.claim(world.caller, world.offer("1", worker=worker, limit=3))
    held = [(packet.run.id, packet.fence) for packet in packets]
    assert len(held) == 3
    return lambda: leases.heartbeat(world.caller, worker, held)


def release(world: World, clock: Clock) -> Act:
    packet = world.claimed_run()
    return lambda: leases.release(world.caller, packet.run.id, packet.fence)


def lapse(world: World, clock: Clock) -> Act:
    packet = world.claimed_run(seconds=5)
    clock.shift(6)
    return lambda: leases.lapse(packet.run.id)


# Commits ----------------------------------------------------------------------------------------


def committing(next_: Next, **fields: object) -> Scene:
    def scene(world: World, clock: Clock) -> Act:
        packet = world.claimed_run()
        return lambda: commit(world, packet, next_, **fields)

    return scene


def commit_of_everything(world: World, clock: Clock) -> Act:
    """One commit proposes, settles and withdraws, and waits for a timer counted from now."""
    packet = issuing(opened(world), PAY, replace(PAY, name="other"))
    pay, other = (world.effect(packet.run.id, name).pk for name in ("pay", "other"))
    effects.permit(world.caller, pay, packet.fence)
    timer = wait(MemberSpec(MemberKind.TIMER, at=timedelta(hours=1)))
    more = {"settle": [(pay, DONE)], "withdraw": [other], "propose": [replace(PAY, name="third")]}
    return lambda: commit(world, packet, timer, **more)


def commit_that_asks(world: World, clock: Clock) -> Act:
    packet = world.claimed_run()
    leave = wait(MemberSpec(MemberKind.APPROVAL, effect="pay"))
    return lambda: commit(world, packet, leave, propose=[PAY])


def commit_after_its_event(world: World, clock: Clock) -> Act:
    packet = world.claimed_run()
    events.receive(world.caller, event())
    return lambda: commit(world, packet, wait(PAID))


def commit_again(world: World, clock: Clock) -> Act:
    packet = world.claimed_run()
    same = spec(packet, BACK, propose=[PAY])
    proposals.commit(world.caller, packet.run.id, same)
    return lambda: proposals.commit(world.caller, packet.run.id, same)


# Effects ----------------------------------------------------------------------------------------


def effect(verb: Callable[[World, Packet, UUID, UUID], Act]) -> Scene:
    """A verb on the effect `pay`, which is proposed, or `other`, which is permitted."""

    def scene(world: World, clock: Clock) -> Act:
        packet = issuing(opened(world), PAY, replace(PAY, name="other"))
        pay, other = (world.effect(packet.run.id, name).pk for name in ("pay", "other"))
        effects.permit(world.caller, other, packet.fence)
        return verb(world, packet, pay, other)

    return scene


def permit(world: World, packet: Packet, pay: UUID, other: UUID) -> Act:
    return lambda: effects.permit(world.caller, pay, packet.fence)


def settle(world: World, packet: Packet, pay: UUID, other: UUID) -> Act:
    return lambda: effects.settle(world.caller, other, DONE, packet.fence)


def withdraw(world: World, packet: Packet, pay: UUID, other: UUID) -> Act:
    return lambda: effects.withdraw(world.caller, pay, packet.fence)


def accept(world: World, packet: Packet, pay: UUID, other: UUID) -> Act:
    effects.settle(world.caller, other, DONE, packet.fence)
    leases.release(world.caller, packet.run.id, packet.fence)
    taken = reclaim(world, packet.run.id)
    return lambda: effects.accept(world.caller, packet.run.id, "other", taken.fence)


def propose(world: World, packet: Packet, pay: UUID, other: UUID) -> Act:
    effects.withdraw(world.caller, pay, packet.fence)
    new = replace(PAY, name="third")
    seq = packet.checkpoint["seq"]
    return lambda: effects.propose(world.caller, packet.run.id, packet.fence, seq, new, None, "k")


def look(world: World, packet: Packet, pay: UUID, other: UUID) -> Act:
    effects.settle(world.caller, other, SettleSpec(1, Settled.UNKNOWN), packet.fence)
    now = facts.read().now
    return lambda: effects.look(other, Looked(LookAnswer.CANNOT_TELL, now, 1))


def permit_by_grant(world: World, clock: Clock) -> Act:
    """The permit of an effect that a person has given leave for."""
    ask = asked(world, rule())
    ask.decide(world.alice)
    assert wakes.run(ask.run_id) == "resume"
    packet = world.claim()

    def act() -> None:
        assert effects.permit(world.caller, ask.effect_id, packet.fence).effect.state is EffectState.IN_FLIGHT

    return act


# What comes from outside ------------------------------------------------------------------------


def received(takers: int, others: int = 0) -> Scene:
    """An event that so many runs take, among `others` that wait for another subject and as many kept events."""

    def scene(world: World, clock: Clock) -> Act:
        for _ in range(takers):
            commit(world, world.claimed_run(), wait(PAID))
        for _ in range(others):
            commit(world, world.claimed_run(), wait(replace(PAID, subject="order/2")))
            events.receive(world.caller, event("order/3"))

        def act() -> None:
            assert events.receive(world.caller, event()).deliveries == takers

        return act

    return scene


def due_timer(world: World, clock: Clock) -> Act:
    run_id = commit(world, world.claimed_run(), wait(MemberSpec(MemberKind.TIMER, at=timedelta(seconds=1))))
    clock.shift(2)
    return lambda: waits.expire_due(run_id)


def decision(before: bool) -> Scene:
    """A vote of two that are needed: the first, or the one after it."""

    def scene(world: World, clock: Clock) -> Act:
        ask = asked(world, rule(quorum=2))
        seen = {"seen_digest": bytes(ask.request.digest), "seen_revision": ask.request.revision}
        if before:
            ask.decide(world.alice)
        return lambda: ask.decide(world.bob, **seen)

    return scene


# Wakes ------------------------------------------------------------------------------------------


def waking(world: World, rounds: int = 1) -> UUID:
    """A run with a due wake, after so many rounds of being given back, woken and claimed again."""
    packet = world.claimed_run()
    for _ in range(rounds - 1):
        commit(world, packet, BACK)
        assert wakes.run(packet.run.id) == "resume"
        (packet,) = [each for each in leases.claim(world.caller, world.offer("1")) if each.run.id == packet.run.id]
    return commit(world, packet, BACK)


def wake_begins(world: World, clock: Clock) -> Act:
    run_id = waking(world)
    return lambda: wake_rows.begin(run_id)


def wake_gathers(world: World, clock: Clock) -> Act:
    run_id = waking(world)
    taken = wake_rows.begin(run_id)
    assert taken is not None
    return lambda: gather.gather(run_id, taken)


def wake_decides(world: World, clock: Clock) -> Act:
    run_id = waking(world)
    taken = wake_rows.begin(run_id)
    assert taken is not None
    gathered = gather.gather(run_id, taken)
    return lambda: wake_rows.apply(run_id, gathered)


def wake_by_grant(world: World, clock: Clock) -> Act:
    """The wake after a person's leave: the votes behind it are looked at."""
    ask = asked(world, rule())
    ask.decide(world.alice)

    def act() -> None:
        assert wakes.run(ask.run_id) == "resume"

    return act


def wake(rounds: int = 1) -> Scene:
    def scene(world: World, clock: Clock) -> Act:
        run_id = waking(world, rounds)

        def act() -> None:
            assert wakes.run(run_id) == "resume"

        return act

    return scene


TRIPS: tuple[tuple[str, int, Scene], ...] = (
    ("start", 2, start),
    ("claim of one run", 3, claim(1)),
    ("claim of five runs", 3, claim(5)),
    ("heartbeat of three runs", 1, heartbeat),
    ("release", 2, release),
    ("lapse", 2, lapse),
    ("commit that gives back", 2, committing(BACK)),
    ("commit that goes on and keeps the lease", 2, committing(Next(NextKind.GO_ON, "think"))),
    ("commit that ends the run", 2, committing(Next(NextKind.COMPLETE))),
    ("commit that proposes", 2, committing(BACK, propose=[PAY])),
    ("commit that proposes, settles, withdraws and waits for a timer", 2, commit_of_everything),
    ("commit that waits for an event", 3, committing(wait(PAID))),
    ("commit that waits for an event which came early", 5, commit_after_its_event),
    ("commit that asks for approval", 2, commit_that_asks),
    ("commit that is repeated", 1, commit_again),
    ("propose", 2, effect(propose)),
    ("permit", 2, effect(permit)),
    ("permit by a person's grant", 3, permit_by_grant),
    ("settle", 2, effect(settle)),
    ("withdraw", 2, effect(withdraw)),
    ("accept by name", 2, effect(accept)),
    ("look", 2, effect(look)),
    ("event that is kept", 3, received(0)),
    ("event that one run takes", 4, received(1)),
    ("event that five runs take", 8, received(5)),
    ("wake: take", 2, wake_begins),
    ("wake: gather", 1, wake_gathers),
    ("wake: decide", 1, wake_decides),
    ("wake as a whole", 4, wake()),
    ("wake after a person's leave", 5, wake_by_grant),
    ("due timer", 2, due_timer),
    ("decision of a person that leaves it open", 8, decision(before=False)),
    ("decision of a person that closes it", 8, decision(before=True)),
)


@pytest.mark.parametrize(("verb", "expected", "scene"), TRIPS, ids=[verb for verb, *_ in TRIPS])
def test_each_verb_takes_its_number_of_round_trips(
    world: World, clock: Clock, verb: str, expected: int, scene: Scene
) -> None:
    sent = statements(scene(world, clock))
    assert len(sent) == expected, f"{verb}\n{short(sent)}"


@pytest.mark.parametrize(
    ("few", "many"),
    [(claim(2, 1), claim(2, 20)), (received(1, 1), received(1, 10)), (wake(1), wake(10))],
    ids=["claim", "event", "wake"],
)
def test_ten_times_the_data_takes_as_many(world: World, clock: Clock, few: Scene, many: Scene) -> None:
    assert len(statements(few(world, clock))) == len(statements(many(World(), clock)))


def test_a_commit_is_neither_converted_nor_planned_again(world: World) -> None:
    packet = world.claimed_run()
    go_on = Next(NextKind.GO_ON, "think")
    first, _ = committed_transition(world.caller, packet.run.id, spec(packet, go_on))
    for _ in range(8):
        first, _ = committed_transition(world.caller, packet.run.id, replace(spec(packet, go_on), expect_seq=first.seq))
    before = _query2pg.cache_info()
    committed_transition(world.caller, packet.run.id, replace(spec(packet, go_on), expect_seq=first.seq))
    after = _query2pg.cache_info()
    assert (after.hits - before.hits, after.misses - before.misses) == (2, 0)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_prepared_statements WHERE generic_plans > 0 AND statement LIKE '%ledger_clock()%'"
        )
        assert cursor.fetchone()[0] >= 2
