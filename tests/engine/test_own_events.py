"""Nobody answers their own wait: an event of an agent that has held a run never meets the run's waits, whichever side is first.

Nor does an event reach runs of a type that the key which emitted it isn't for. It is kept, and said to be.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from ledger.domain.commits import Next, NextKind
from ledger.domain.errors import LedgerError
from ledger.domain.identity import Caller, Scope
from ledger.domain.waits import MemberKind, MemberSpec, OnDeadline, SetMode, WaitSpec
from ledger.domain.workflows import VersionSpec
from ledger.engine import wakes
from ledger.models import EventDelivery, Lease, WaitMember
from ledger.services import events, identity, keys, leases, verify, waits, workflows
from ledger.services.events import EventSpec
from ledger.services.packets import Packet
from tests.documents import SCHEMA, TRANSITIONS
from tests.engine.waking import commit
from tests.meeting import race
from tests.world import ANYTHING, EVERYTHING, World

VERSION = "9"
"""A version that says nothing of own events."""


def agent(world: World, scopes: tuple[Scope, ...] = EVERYTHING, **leave: Any) -> Caller:
    """Another agent of the tenant with a key."""
    agent_id = identity.add_agent(world.admin, f"agent-{uuid4().hex[:8]}", world.dora)
    issued = identity.issue_key(world.admin, "other", scopes, agent_id=agent_id, **{**ANYTHING, **leave})
    return keys.authenticate(f"Bearer {issued.secret}")


def paid() -> EventSpec:
    return EventSpec("https://shop.example", str(uuid4()), "order.paid", "order/17")


def for_payment() -> Next:
    member = MemberSpec(MemberKind.EVENT, type="order.paid", subject="order/17")
    wait = WaitSpec(SetMode.ANY, (member,), timedelta(days=1), OnDeadline.WAKE)
    return Next(NextKind.WAIT, "issue", wait)


def held(world: World, own_events: bool = False) -> Packet:
    """A run in the world's agent's hands."""
    spec = VersionSpec(SCHEMA, "assess", TRANSITIONS, own_events=own_events)
    workflows.register(world.caller, "refund", VERSION, spec)
    world.start_run(version=VERSION)
    return world.claim(VERSION)


def untouched(world: World, run_id: UUID) -> None:
    """The run waits, nothing was delivered to it, and the sweep finds nothing to bring to it."""
    assert world.head(run_id).status == "waiting"
    assert not EventDelivery.objects.of(world.tenant).filter(run_id=run_id).exists()
    assert run_id not in waits.for_events(1_000)
    waits.look_after_open(run_id)
    assert world.head(run_id).status == "waiting"


def test_what_the_holder_emits_while_its_run_waits_is_kept_and_wakes_nothing(world: World) -> None:
    run_id = commit(world, held(world), for_payment())
    received = events.receive(world.caller, paid())
    assert (received.status, received.deliveries) == ("kept", 0)
    untouched(world, run_id)
    assert events.receive(agent(world), paid()).status == "matched"
    assert world.head(run_id).status == "waking" and verify.run(run_id).intact


def test_what_the_holder_emitted_before_it_waited_is_not_taken_either(world: World) -> None:
    packet = held(world)
    assert events.receive(world.caller, paid()).status == "kept"
    run_id = commit(world, packet, for_payment())
    untouched(world, run_id)


def test_another_key_of_the_same_agent_is_the_same_agent(world: World) -> None:
    run_id = commit(world, held(world), for_payment())
    issued = identity.issue_key(world.admin, "relay", EVERYTHING, agent_id=world.agent_id, **ANYTHING)
    assert events.receive(keys.authenticate(f"Bearer {issued.secret}"), paid()).status == "kept"
    untouched(world, run_id)


def test_an_agent_that_held_the_run_before_another_is_not_heard_either(world: World) -> None:
    packet = held(world)
    leases.release(world.caller, packet.run.id, packet.fence)
    assert wakes.run(packet.run.id) == "resume"
    second = agent(world)
    (packet,) = leases.claim(second, world.offer(VERSION))
    assert Lease.objects.of(world.tenant).get(run_id=packet.run.id).agents == [
        str(world.agent_id),
        str(second.agent_id),
    ]
    world.caller, first = second, world.caller
    run_id = commit(world, packet, for_payment())
    for emitter in (first, second):
        assert events.receive(emitter, paid()).status == "kept"
    untouched(world, run_id)
    assert WaitMember.objects.of(world.tenant).get(run_id=run_id).not_from == [
        str(first.agent_id),
        str(second.agent_id),
    ]
    assert events.receive(agent(world), paid()).status == "matched" and verify.run(run_id).intact


def test_an_agent_that_only_started_the_run_may_tell_it(world: World) -> None:
    starter, worker = world.caller, agent(world)
    workflows.register(starter, "refund", VERSION, VersionSpec(SCHEMA, "assess", TRANSITIONS))
    world.start_run(version=VERSION)
    world.caller = worker
    run_id = commit(world, world.claim(VERSION), for_payment())
    assert events.receive(worker, paid()).status == "kept"
    assert events.receive(starter, paid()).status == "matched"
    assert world.head(run_id).status == "waking"


def test_a_version_may_be_registered_to_hear_its_own_agents_and_can_t_change_that(world: World) -> None:
    run_id = commit(world, held(world, own_events=True), for_payment())
    assert events.receive(world.caller, paid()).status == "matched"
    assert world.head(run_id).status == "waking"
    with pytest.raises(LedgerError, match="version-exists"):
        workflows.register(world.caller, "refund", VERSION, VersionSpec(SCHEMA, "assess", TRANSITIONS))
    again = VersionSpec(SCHEMA, "assess", TRANSITIONS, own_events=True)
    assert not workflows.register(world.caller, "refund", VERSION, again).created


def test_an_event_reaches_only_runs_of_the_types_that_its_key_is_for(world: World) -> None:
    relay = agent(world, (Scope.EVENTS_EMIT,), workflows=["payroll", "wire"])
    run_id = commit(world, held(world), for_payment())
    assert events.receive(relay, paid()).status == "kept"
    untouched(world, run_id)
    for_refunds = agent(world, (Scope.EVENTS_EMIT,), workflows=["payroll", "refund"])
    assert events.receive(for_refunds, paid()).status == "matched"


Order = tuple[str, str]


@pytest.mark.postgres_only
@pytest.mark.parametrize("order", [("event", "wait"), ("wait", "event")])
@pytest.mark.parametrize("emitter", ["its own agent", "another agent", "a key for other types"])
def test_event_and_wait_at_once_obey_it_whoever_is_first(world: World, order: Order, emitter: str) -> None:
    packet = held(world)
    caller = world.caller if emitter == "its own agent" else agent(world)
    if emitter == "a key for other types":
        caller = agent(world, workflows=["payroll"])
    spec = paid()
    acts: dict[str, Callable[[], Any]] = {
        "event": lambda: events.receive(caller, spec),
        "wait": lambda: commit(world, packet, for_payment()),
    }
    race(acts[order[0]], acts[order[1]])
    run_id = packet.run.id
    if emitter == "another agent":
        assert EventDelivery.objects.of(world.tenant).filter(run_id=run_id).count() == 1
        assert world.head(run_id).status == "waking"
    else:
        untouched(world, run_id)
    assert verify.run(run_id).faults == []
