"""The same call twice at once, on PostgreSQL: neither has found the other's row when it is about to write, and one answer comes of both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from ledger.domain.commits import Next, NextKind
from ledger.domain.errors import LedgerError
from ledger.domain.starts import StartSpec
from ledger.models import Checkpoint, Effect, Event, JournalEntry, Run
from ledger.services import checkpoints, effects, events, runs, verify
from ledger.services.checkpoints import CommitSpec
from ledger.services.events import EventSpec
from tests.documents import STATE
from tests.meeting import race
from tests.services.issuing import PAY, issuing, opened
from tests.world import World

pytestmark = pytest.mark.postgres_only


def starting(world: World, key: str, **fields: Any) -> Callable[[], Any]:
    spec = StartSpec("refund", "1", "refund order 17", dict(STATE), {}, "", key)
    return lambda: runs.start(world.caller, replace(spec, **fields))


def committing(world: World, packet: Any, key: str, next_: Next) -> Callable[[], Any]:
    document = {"next": str(next_.kind), "transition": next_.transition}
    spec = CommitSpec(packet.fence, packet.checkpoint["seq"], "code-1", dict(STATE), next_, key, document)
    return lambda: checkpoints.commit_transition(world.caller, packet.run.id, spec)


def test_twin_starts_with_one_key_are_one_run(world: World) -> None:
    first, second = race(starting(world, "k"), starting(world, "k"))
    assert (first.created, second.created) == (True, False) and first.run_id == second.run_id
    assert Run.objects.of(world.tenant).count() == 1
    assert verify.run(first.run_id).faults == []


def test_of_two_starts_with_one_key_and_other_content_the_second_is_refused(world: World) -> None:
    first, second = race(starting(world, "k"), starting(world, "k", task="refund order 18"))
    assert first.created and isinstance(second, LedgerError) and second.code == "key-reused"
    assert second.facts["run"] == str(first.run_id) and Run.objects.of(world.tenant).count() == 1


def test_the_same_key_in_two_tenants_starts_two_runs(world: World) -> None:
    first, second = race(starting(world, "k"), starting(World(), "k"))
    assert first.created and second.created and first.run_id != second.run_id


@pytest.mark.parametrize("kind", [NextKind.GO_ON, NextKind.GIVE_BACK, NextKind.COMPLETE])
def test_twin_commits_with_one_key_are_one_checkpoint(world: World, kind: NextKind) -> None:
    packet = world.claimed_run()
    step = Next(kind) if kind is NextKind.COMPLETE else Next(kind, "think")
    (first, repeated), (second, again) = race(
        committing(world, packet, "k", step), committing(world, packet, "k", step)
    )
    assert (repeated, again) == (False, True)
    assert (first.seq, first.digest, first.status, first.fence) == (
        second.seq,
        second.digest,
        second.status,
        second.fence,
    )
    assert Checkpoint.objects.of(world.tenant).filter(run_id=packet.run.id).count() == 2
    assert verify.run(packet.run.id).faults == []


def test_of_two_commits_with_one_key_and_other_content_the_second_is_refused(world: World) -> None:
    packet = world.claimed_run()
    first, second = race(
        committing(world, packet, "k", Next(NextKind.GO_ON, "think")),
        committing(world, packet, "k", Next(NextKind.COMPLETE)),
    )
    assert first[0].status == "running" and isinstance(second, LedgerError) and second.code == "key-reused"
    assert world.head(packet.run.id).status == "running"


def test_of_two_commits_with_keys_of_their_own_the_second_is_out_of_sequence(world: World) -> None:
    packet = world.claimed_run()
    step = Next(NextKind.GO_ON, "think")
    first, second = race(committing(world, packet, "k", step), committing(world, packet, "l", step))
    assert first[0].seq == 2 and isinstance(second, LedgerError)
    assert (second.code, second.facts["seq"]) == ("wrong-sequence", 2)
    assert Checkpoint.objects.of(world.tenant).filter(run_id=packet.run.id).count() == 2


def test_twin_proposals_with_one_key_are_one_effect(world: World) -> None:
    packet = issuing(opened(world))
    propose = lambda: effects.propose(  # noqa: E731
        world.caller, packet.run.id, packet.fence, packet.checkpoint["seq"], PAY, None, "k"
    )
    first, second = race(propose, propose)
    assert (first.new, second.new) == (True, False)
    assert (first.effect.id, first.seq) == (second.effect.id, second.seq)
    assert Effect.objects.of(world.tenant).filter(run_id=packet.run.id).count() == 1


def test_twin_events_are_one_event_and_one_of_them_is_told_so(world: World) -> None:
    event = EventSpec("https://shop.example", str(uuid4()), "order.paid", "order/17")
    receive = lambda: events.receive(world.caller, event)  # noqa: E731
    first, second = race(receive, receive)
    assert (str(first.status), str(second.status)) == ("kept", "duplicate")
    found = Event.objects.of(world.tenant).get(event_id=event.id)
    assert JournalEntry.objects.of(world.tenant).filter(stream_id=found.pk).count() == 1
