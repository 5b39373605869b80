"""Checks of the record in the background: bounded slices, one at a time, nothing left out, and what is kept of them."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest
from django.db import connection

from ledger import tasks
from ledger.domain.errors import LedgerError
from ledger.engine import sweep
from ledger.models import JournalEntry, Verification, VerifiedChain
from ledger.services import events, facts, verifications, verify
from ledger.services.events import EventSpec
from tests.clock import Clock
from tests.tamper import run_sql, triggers_off
from tests.ui.scenes import completed
from tests.world import World

NO_TIME = 0.0


def row(world: World, check: UUID) -> Verification:
    found: Verification = Verification.objects.of(world.tenant).get(pk=check)
    return found


def through(world: World, check: UUID) -> Verification:
    """The check, once it is through: one chain a slice."""
    for _ in range(50):
        if not verifications.advance(check, NO_TIME):
            break
    found = row(world, check)
    assert found.finished_at is not None
    return found


def key_of(value: UUID) -> object:
    return value if connection.vendor == "postgresql" else value.hex


def spoil(run_id: UUID) -> None:
    run_sql("UPDATE ledger_run_head SET asks = 9 WHERE run_id = %s", key_of(run_id))


def test_a_second_asking_while_a_check_is_open_answers_that_one_and_later_another(world: World) -> None:
    run_id = world.start_run()
    first = verifications.ask(world.caller, run_id)
    assert verifications.ask(world.caller, run_id) == first
    assert verifications.ask(world.caller) != first
    through(world, first)
    assert verifications.ask(world.caller, run_id) != first


def test_a_slice_that_somebody_has_in_hand_is_not_done_twice(world: World, clock: Clock) -> None:
    check = verifications.ask(world.caller, world.start_run())
    assert verifications._take(check) is not None
    assert not verifications.advance(check)
    assert row(world, check).done == 0
    clock.shift(verifications.ALONE.total_seconds() + 1)
    assert not verifications.advance(check)
    assert row(world, check).finished_at is not None and row(world, check).done == 1


def test_a_slice_that_was_taken_for_dead_counts_for_nothing(world: World, clock: Clock) -> None:
    check = verifications.ask(world.caller, world.start_run())
    slow = verifications._take(check)
    assert slow is not None
    work = verifications._Work(slow, facts.read().now)
    verifications._one_run(work)
    clock.shift(verifications.ALONE.total_seconds() + 1)
    done = through(world, check)
    verifications._keep(work)
    assert (row(world, check).done, row(world, check).finished_at) == (1, done.finished_at)


def test_a_tenant_is_checked_chain_by_chain_and_nothing_is_left_out(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verifications, "EVENTS", 2)
    runs = {completed(world), *(world.start_run() for _ in range(3))}
    for number in range(5):
        events.receive(world.caller, EventSpec("https://shop.example", f"e{number}", "order.paid"))
    check = verifications.ask(world.caller)
    assert verifications.advance(check, NO_TIME)
    begun = row(world, check)
    assert (begun.done, begun.total, begun.stage) == (1, 1 + 5 + 4, "events")
    ended = through(world, check)
    assert (ended.done, ended.faults, ended.stage) == (10, 0, "done")
    assert ended.entries == JournalEntry.objects.of(world.tenant).count()
    chains = VerifiedChain.objects.of(world.tenant)
    assert set(chains.values_list("stream_id", flat=True)) == runs | {world.tenant.pk}
    assert all(chain.intact and chain.verification_id == check for chain in chains)
    for run_id in runs:
        assert chains.get(pk=run_id).seq == world.head(run_id).head_seq


def test_runs_of_one_moment_are_all_checked(world: World) -> None:
    runs = [world.start_run() for _ in range(4)]
    same = "UPDATE ledger_run SET created_at = (SELECT r.created_at FROM ledger_run r WHERE r.id = %s) WHERE id = %s"
    with triggers_off("ledger_run"):
        for run_id in runs:
            run_sql(same, key_of(runs[0]), key_of(run_id))
    check = verifications.ask(world.caller)
    through(world, check)
    assert VerifiedChain.objects.of(world.tenant).filter(reach="run").count() == 4


def test_a_run_that_was_started_later_is_not_waited_for(world: World, clock: Clock) -> None:
    world.start_run()
    check = verifications.ask(world.caller)
    clock.shift(1)
    world.start_run()
    assert through(world, check).done == 2


def test_faults_are_counted_all_and_kept_in_part_and_the_chain_says_so(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ledger.domain.verifications.KEPT", 2)
    good, *bad = (world.start_run() for _ in range(4))
    for run_id in bad:
        spoil(run_id)
    ended = through(world, verifications.ask(world.caller))
    assert ended.faults == 3 and len(ended.found) == 2
    assert {fault["code"] for fault in ended.found} == {"row-differs"}
    chains = VerifiedChain.objects.of(world.tenant)
    assert set(chains.filter(intact=False).values_list("stream_id", flat=True)) == set(bad)
    assert chains.get(pk=good).intact


def test_a_record_too_broken_to_be_checked_is_a_fault_and_stops_no_other(world: World) -> None:
    broken, whole = world.start_run(), world.start_run()
    with triggers_off("ledger_checkpoint"):
        run_sql("UPDATE ledger_checkpoint SET artifacts = '5' WHERE run_id = %s", key_of(broken))
    ended = through(world, verifications.ask(world.caller))
    assert [(fault["stream"], fault["code"]) for fault in ended.found] == [(f"run:{broken}", "unreadable")]
    assert VerifiedChain.objects.of(world.tenant).get(pk=whole).intact


def test_a_run_that_moves_while_it_is_read_is_no_fault(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = completed(world)
    calls = []
    real = verify._run

    def torn(*args: object) -> verify.Report:
        report = real(*args)  # type: ignore[arg-type]
        calls.append(report)
        if len(calls) < 3:
            report.faults.append(verify.Fault(None, "x", "row-differs", "read while it moved"))
            run_sql("UPDATE ledger_run_head SET head_seq = head_seq + 1 WHERE run_id = %s", key_of(run_id))
        elif len(calls) == 3:
            run_sql("UPDATE ledger_run_head SET head_seq = head_seq - 2 WHERE run_id = %s", key_of(run_id))
        return report

    monkeypatch.setattr(verify, "_run", torn)
    assert verify.run(run_id).intact and len(calls) > 3


def test_a_run_that_never_stands_still_is_refused_and_not_called_faulty(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = completed(world)
    real = verify._run

    def torn(*args: object) -> verify.Report:
        report = real(*args)  # type: ignore[arg-type]
        run_sql("UPDATE ledger_run_head SET head_seq = head_seq + 1 WHERE run_id = %s", key_of(run_id))
        return report

    monkeypatch.setattr(verify, "_run", torn)
    spoil(run_id)
    with pytest.raises(LedgerError, match="busy"):
        verify.run(run_id)
    check = verifications.ask(world.caller, run_id)
    with pytest.raises(LedgerError, match="busy"):
        verifications.advance(check)
    assert row(world, check).finished_at is None


def test_the_queue_and_the_sweep_both_finish_what_was_asked(world: World) -> None:
    by_queue = verifications.ask(world.caller, world.start_run())
    while row(world, by_queue).finished_at is None:
        tasks.check_due()
    by_sweep = verifications.ask(world.caller)
    while row(world, by_sweep).finished_at is None:
        assert sweep.sweep()["verifications"] >= 1
    assert row(world, by_sweep).faults == 0


def test_a_check_costs_the_record_nothing(world: World) -> None:
    run_id = completed(world)
    before = JournalEntry.objects.of(world.tenant).count()
    through(world, verifications.ask(world.caller, run_id))
    through(world, verifications.ask(world.caller))
    assert JournalEntry.objects.of(world.tenant).count() == before
    assert verify.run(run_id).intact and verify.tenant(world.tenant.pk).intact


def test_due_checks_come_longest_waiting_first(world: World, clock: Clock) -> None:
    first = verifications.ask(world.caller, world.start_run())
    later = facts.read().now + timedelta(days=-1)
    Verification.objects.of(world.tenant).filter(pk=first).update(due_at=later)
    assert verifications.due(5)[0] == first
