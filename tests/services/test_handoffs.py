"""Handoffs: a person takes a run, and says what happens next."""

from __future__ import annotations

from uuid import UUID

import pytest

from ledger.domain.errors import LedgerError
from ledger.domain.handoffs import ESCALATES_AFTER, Outcome
from ledger.domain.identity import Caller, Verb
from ledger.engine import sweep, wakes
from ledger.models import Body, Handoff, JournalEntry, User, Wake
from ledger.services import handoffs, identity, verify
from ledger.services.explain import explain
from tests.clock import Clock
from tests.engine.waking import commit, timer
from tests.meeting import race
from tests.world import World


def person(world: World, user: User) -> Caller:
    return Caller(world.tenant.pk, f"person:{user.pk}", person_id=user.pk)


def handed_off(world: World) -> Handoff:
    """A run that a wake has given to a person: its agent was deactivated while it slept."""
    run_id = commit(world, world.claimed_run(), timer(-1))
    identity.deactivate_agent(world.admin, world.agent_id)
    assert wakes.run(run_id) == "hand_off"
    found: Handoff = Handoff.objects.of(world.tenant).get(run_id=run_id)
    assert found.state == "open" and world.head(run_id).status == "blocked"
    return found


def refused(code: str, act: object, *arguments: object) -> None:
    with pytest.raises(LedgerError) as refusal:
        act(*arguments)  # type: ignore[operator]
    assert refusal.value.code == code and refusal.value.remedy


def state(world: World, handoff_id: UUID) -> str:
    return str(Handoff.objects.of(world.tenant).get(pk=handoff_id).state)


def test_no_key_of_an_agent_and_nobody_without_the_right_takes_or_closes_one(world: World) -> None:
    found = handed_off(world)
    other = World()
    refused("agents-never-decide", handoffs.own, world.caller, found.pk)
    refused("not-found", handoffs.own, person(other, other.charlie), found.pk)
    refused("not-found", handoffs.close, person(world, other.charlie), found.pk, Outcome.WAKE, "because")
    refused("forbidden", handoffs.close, person(world, world.alice), found.pk, Outcome.WAKE, "because")
    assert state(world, found.pk) == "open"


def test_closing_needs_a_reason(world: World) -> None:
    found = handed_off(world)
    for reason in ("", "   ", "x" * 4_001):
        refused("invalid", handoffs.close, person(world, world.charlie), found.pk, Outcome.WAKE, reason)


def test_an_operator_takes_it_gives_it_back_and_takes_it_twice_without_a_second_entry(world: World) -> None:
    found = handed_off(world)
    charlie = person(world, world.charlie)
    handoffs.own(charlie, found.pk)
    before = world.head(found.run_id).head_seq
    handoffs.own(charlie, found.pk)
    assert world.head(found.run_id).head_seq == before and state(world, found.pk) == "accepted"
    handoffs.give_back(charlie, found.pk)
    assert state(world, found.pk) == "open"


@pytest.mark.parametrize(("outcome", "status"), [(Outcome.CANCEL, "cancelled"), (Outcome.FAIL, "failed")])
def test_closing_ends_the_run_by_its_wake_as_the_person_said(world: World, outcome: Outcome, status: str) -> None:
    found = handed_off(world)
    handoffs.close(person(world, world.charlie), found.pk, outcome, "the customer withdrew")
    assert world.head(found.run_id).status == "waking"
    assert wakes.run(found.run_id) == "finish" and world.head(found.run_id).status == status
    note = Body.objects.of(world.tenant).get(pk=Handoff.objects.of(world.tenant).get(pk=found.pk).note_id)
    assert bytes(note.content or b"") == b"the customer withdrew"
    assert verify.run(found.run_id).intact


def test_closing_with_a_wake_checks_everything_again(world: World) -> None:
    found = handed_off(world)
    handoffs.close(person(world, world.charlie), found.pk, Outcome.WAKE, "looked at it")
    assert wakes.run(found.run_id) == "hand_off"
    assert Handoff.objects.of(world.tenant).filter(run_id=found.run_id).count() == 2
    assert Wake.objects.of(world.tenant).filter(run_id=found.run_id).count() == 2


def overdue(world: World, clock: Clock) -> Handoff:
    """One that nobody has taken by its due time."""
    found = handed_off(world)
    clock.shift(ESCALATES_AFTER.total_seconds() + 1)
    return found


def read(world: World, handoff_id: UUID) -> Handoff:
    found: Handoff = Handoff.objects.of(world.tenant).get(pk=handoff_id)
    return found


def test_nothing_escalates_before_its_time(world: World) -> None:
    found = handed_off(world)
    assert not handoffs.escalate(found.pk) and found.pk not in handoffs.due(1_000)
    assert read(world, found.pk).escalated_at is None


def test_one_that_a_person_has_taken_escalates_when_they_don_t_close_it_in_time_and_stays_theirs(
    world: World, clock: Clock
) -> None:
    found, charlie = handed_off(world), person(world, world.charlie)
    handoffs.own(charlie, found.pk)
    assert found.pk not in handoffs.due(1_000) and not handoffs.escalate(found.pk)
    clock.shift(ESCALATES_AFTER.total_seconds() + 1)
    sweep.sweep(10_000)
    after = read(world, found.pk)
    assert (after.state, after.owner_id) == ("accepted", world.charlie.pk) and after.escalated_at is not None
    assert "has taken it" in (told := explain(found.run_id).sentence) and "escalated" in told
    assert found.pk not in handoffs.due(1_000) and not handoffs.escalate(found.pk) and verify.run(found.run_id).intact


GONE = {"left": identity.leave, "deactivated": identity.deactivate_person}


@pytest.mark.parametrize("how", GONE)
def test_one_whose_owner_is_gone_is_anybodys_again_by_the_next_sweep(world: World, how: str) -> None:
    found = handed_off(world)
    handoffs.own(person(world, world.charlie), found.pk)
    assert not handoffs.reopen(found.pk) and found.pk not in handoffs.left(1_000)
    GONE[how](world.admin, world.charlie)
    assert found.pk in handoffs.left(1_000)
    sweep.sweep(10_000)
    after = read(world, found.pk)
    assert (after.state, after.owner_id) == ("open", None) and not handoffs.reopen(found.pk)
    last = world.head(found.run_id).head_seq
    entry = JournalEntry.objects.of(world.tenant).get(stream_id=found.run_id, seq=last)
    assert (entry.verb, entry.actor) == ("handoff.give_back", "system:sweep") and verify.run(found.run_id).intact


def test_one_of_somebody_who_only_lost_the_right_stays_theirs_until_it_is_put_back(world: World) -> None:
    found = handed_off(world)
    handoffs.own(person(world, world.charlie), found.pk)
    identity.withdraw_permission(world.admin, world.charlie, Verb.OPERATE, world.workflow)
    sweep.sweep(10_000)
    assert state(world, found.pk) == "accepted"


def test_the_sweep_escalates_what_nobody_took_in_time_once_and_closes_nothing(world: World, clock: Clock) -> None:
    found = overdue(world, clock)
    before = world.head(found.run_id).head_seq
    for _ in range(2):
        sweep.sweep(10_000)
    after = read(world, found.pk)
    assert after.escalated_at is not None and (after.state, after.severity) == ("open", "high")
    head = world.head(found.run_id)
    assert (head.status, head.head_seq) == ("blocked", before + 1)
    entry = JournalEntry.objects.of(world.tenant).get(stream_id=found.run_id, seq=head.head_seq)
    assert (entry.verb, entry.actor) == ("handoff.escalate", "system:sweep")
    assert verify.run(found.run_id).intact and not handoffs.escalate(found.pk)
    assert "escalated" in explain(found.run_id).sentence


def test_an_escalated_one_is_taken_and_closed_as_any_other_and_stays_marked(world: World, clock: Clock) -> None:
    found, charlie = overdue(world, clock), person(world, world.charlie)
    handoffs.escalate(found.pk)
    handoffs.own(charlie, found.pk)
    handoffs.close(charlie, found.pk, Outcome.CANCEL, "late, but looked at")
    assert read(world, found.pk).state == "closed" and read(world, found.pk).escalated_at is not None
    assert wakes.run(found.run_id) == "finish" and verify.run(found.run_id).intact


@pytest.mark.postgres_only
def test_who_takes_it_at_the_last_moment_and_the_sweep_lose_nothing_of_each_other(world: World, clock: Clock) -> None:
    found, charlie = overdue(world, clock), person(world, world.charlie)
    _, escalated = race(lambda: handoffs.own(charlie, found.pk), lambda: handoffs.escalate(found.pk))
    assert escalated is True and (row := read(world, found.pk)).escalated_at is not None and row.state == "accepted"
    other = overdue(world := World(), clock)
    escalated, _ = race(
        lambda: handoffs.escalate(other.pk), lambda: handoffs.own(person(world, world.charlie), other.pk)
    )
    assert escalated is True and read(world, other.pk).state == "accepted"


def test_a_closed_one_is_not_closed_again(world: World) -> None:
    found = handed_off(world)
    charlie = person(world, world.charlie)
    handoffs.close(charlie, found.pk, Outcome.WAKE, "once")
    refused("wrong-state", handoffs.close, charlie, found.pk, Outcome.CANCEL, "twice")
