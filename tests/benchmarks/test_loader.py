"""The loader of large databases: what it writes is what services write, and verifies as such."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.db import connection
from psycopg.errors import UniqueViolation

from approvals.models import ApprovalRequest
from benchmarks.loader import WORD, golden, load
from benchmarks.loader.stamps import Press
from ledger.domain.commits import Next, NextKind
from ledger.domain.effects import ProposalSpec
from ledger.domain.starts import StartSpec
from ledger.domain.waits import MemberKind, MemberSpec, OnDeadline, SetMode, WaitSpec
from ledger.engine import wakes
from ledger.models import Effect, RunHead, WaitMember
from ledger.services import events, leases, runs, verify, waits
from ledger.services.events import EventSpec
from tests.approvals.asking import RECEIPT
from tests.documents import STATE
from tests.world import World

pytestmark = pytest.mark.postgres_only
PAY = ProposalSpec("pay", "payments.refund", "payments", f"order/{WORD}", b'{"amount_minor":4200}')


def started(world: World) -> UUID:
    """A run that carries the golden word in its key, task and state."""
    state = {**STATE, "order": WORD}
    return runs.start(
        world.caller, StartSpec("refund", "1", f"refund {WORD}", state, {"order": WORD}, "", f"{uuid4()}{WORD}")
    ).run_id


def waiting(world: World, member: MemberSpec, *propose: ProposalSpec) -> UUID:
    run_id = started(world)
    packet = world.claim()
    wait = WaitSpec(SetMode.ANY, (member,), timedelta(hours=1), OnDeadline.WAKE)
    world.commit(packet, Next(NextKind.WAIT, "think", wait), propose=propose, state={**STATE, "order": WORD})
    return run_id


def for_event(world: World) -> UUID:
    return waiting(world, MemberSpec(MemberKind.EVENT, type="paid", subject=f"order/{WORD}"))


def for_approval(world: World) -> UUID:
    return waiting(world, MemberSpec(MemberKind.APPROVAL, effect="pay"), PAY)


def test_a_run_that_took_an_event_is_refused(world: World) -> None:
    run_id = for_event(world)
    events.receive(world.caller, EventSpec("/shop", str(uuid4()), "paid", f"order/{WORD}"))
    with pytest.raises(ValueError, match="stream of its own"):
        golden(run_id)


def test_a_golden_run_whose_digests_come_out_otherwise_is_refused(world: World) -> None:
    made = golden(started(world))
    checkpoint = {**made.rows["checkpoint"][0], "code_version": "other"}
    with pytest.raises(ValueError, match="checkpoint1"):
        Press(replace(made, rows={**made.rows, "checkpoint": [checkpoint]})).prove()


def test_a_word_of_another_length_is_refused(world: World) -> None:
    with pytest.raises(ValueError, match="characters"):
        Press(golden(started(world))).stamp("short", timedelta(0))


def test_the_same_words_twice_hit_the_records_own_constraints(world: World) -> None:
    made = golden(started(world))
    load(made, 3)
    with pytest.raises(UniqueViolation, match="run_key_unique"):
        load(made, 3)


def test_two_hundred_loaded_runs_verify_each_and_the_tenant(world: World) -> None:
    loaded = load(golden(for_event(world)), 100).ids + load(golden(for_approval(world)), 100, first=1_000).ids
    faults = {run_id: report.faults for run_id in loaded if (report := verify.run(run_id, world.tenant.pk)).faults}
    assert len(set(loaded)) == 200 and not faults
    assert verify.tenant(world.tenant.pk).intact
    assert verify.run(loaded[0]).entries == 3 and verify.run(loaded[0]).rows > 8


def test_a_loaded_row_that_is_changed_past_the_journal_is_found(world: World) -> None:
    run_id = load(golden(for_event(world)), 2).ids[1]
    with connection.cursor() as cursor:
        cursor.execute("UPDATE ledger_run_head SET asks = 7 WHERE run_id = %s", [run_id])
    assert [fault.code for fault in verify.run(run_id).faults] == ["row-differs"]


def test_loaded_rows_refer_to_each_other_and_to_nothing_of_the_golden_run(world: World) -> None:
    first = for_approval(world)
    run_id = load(golden(first), 1).ids[0]
    effect, request = (
        Effect.objects.of(world.tenant).get(run_id=run_id),
        ApprovalRequest.objects.of(world.tenant).get(run_id=run_id),
    )
    assert request.subject_id == effect.pk and request.digest == effect.subject_digest
    assert effect.key != world.effect(first).key and effect.resource == "order/word-00000001"
    with connection.cursor() as cursor:
        for table in (
            "ledger_checkpoint",
            "ledger_wait_set",
            "ledger_wait_member",
            "ledger_effect",
            "ledger_lease",
            "approvals_revision",
        ):
            cursor.execute(f"SELECT string_agg(t::text, ' ') FROM {table} t WHERE t.run_id = %s", [run_id])
            assert str(first) not in cursor.fetchone()[0]


def test_a_loaded_run_takes_its_event_wakes_and_is_claimed(world: World) -> None:
    run_id = load(golden(for_event(world)), 5).ids[2]
    received = events.receive(world.caller, EventSpec("/shop", str(uuid4()), "paid", "order/word-00000003"))
    assert received.deliveries == 1 and world.head(run_id).status == "waking"
    assert str(wakes.run(run_id)) == "resume"
    assert leases.claim(world.caller, world.offer("1"))[0].run.id == run_id
    assert verify.run(run_id).intact


def test_a_loaded_request_is_approved_and_its_run_goes_on(world: World) -> None:
    from approvals.services.decisions import decide

    run_id = load(golden(for_approval(world)), 2).ids[0]
    request = ApprovalRequest.objects.of(world.tenant).get(run_id=run_id)
    decide(world.alice, request.pk, "approve", "", bytes(request.digest), 1, "page", RECEIPT)
    assert world.head(run_id).status == "waking"
    assert verify.run(run_id).intact


def test_times_are_shifted_together(world: World) -> None:
    first = waiting(world, MemberSpec(MemberKind.TIMER, timedelta(minutes=30)))
    loaded = load(golden(first), 2, shift=lambda number: timedelta(hours=-2 + 2 * number)).ids
    due = {row.run_id: row.due_at for row in WaitMember.objects.of(world.tenant).filter(run_id__in=[first, *loaded])}
    assert due[first] - due[loaded[0]] == timedelta(hours=2) and due[loaded[1]] == due[first]
    assert set(waits.due(10_000)) & {first, *loaded} == {loaded[0]}
    assert RunHead.objects.of(world.tenant).filter(run_id__in=loaded).count() == 2
