"""One row that can't be handled stops nothing else, isn't tried for ever, and ends in a person's hands."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest
from django.conf import settings
from django.db import connection

from approvals.services import requests
from ledger.domain.commits import Next, NextKind
from ledger.domain.effects import EffectState, LookAnswer
from ledger.domain.errors import LedgerError
from ledger.domain.journal import link
from ledger.domain.runs import Status
from ledger.domain.waits import MemberKind, MemberSpec, OnDeadline, SetMode, WaitSpec
from ledger.engine import reconcile, sweep, wakes
from ledger.models import Handoff, JournalEntry
from ledger.services import administration, effects, facts, leases
from tests.approvals.asking import asked, rule
from tests.clock import Clock
from tests.documents import LOOKUP
from tests.engine.waking import asking, say
from tests.services.issuing import ANYTHING, PAY, issuing
from tests.shop import Shop
from tests.tamper import run_sql, triggers_off
from tests.world import World


def key_of(value: UUID) -> object:
    return value if connection.vendor == "postgresql" else value.hex


def waking(world: World) -> UUID:
    """A run that its worker gave back."""
    packet = world.claimed_run()
    leases.release(world.caller, packet.run.id, packet.fence)
    assert world.head(packet.run.id).status == Status.WAKING
    run_id: UUID = packet.run.id
    return run_id


def test_an_entry_that_isn_t_json_though_its_hash_fits_is_handed_to_a_person_at_once(world: World) -> None:
    run_id = waking(world)
    entries = JournalEntry.objects.of(world.tenant).filter(stream_id=run_id).order_by("-seq")
    last, before = entries[0], entries[1]
    digest = link(bytes(before.digest), b"not json")
    with triggers_off("ledger_journal_entry"):
        run_sql("UPDATE ledger_journal_entry SET content = %s, digest = %s WHERE id = %s", b"not json", digest, last.pk)
    run_sql("UPDATE ledger_run_head SET head_digest = %s WHERE run_id = %s", digest, key_of(run_id))
    wakes.run(run_id)
    assert world.head(run_id).status == Status.BLOCKED
    assert Handoff.objects.of(world.tenant).get(run_id=run_id).reason.startswith("integrity:")


def test_a_wake_that_always_fails_ends_in_a_person_s_hands(world: World, clock: Clock) -> None:
    packet = world.claimed_run()
    world.commit(packet, Next(NextKind.GO_ON, "issue"), propose=(PAY,))
    run_id = packet.run.id
    with triggers_off("ledger_policy_version"):
        run_sql(
            "UPDATE ledger_policy_version SET rules = %s WHERE tenant_id = %s", '[{"x": 1}]', key_of(world.tenant.pk)
        )
    assert world.head(run_id).status == Status.WAKING
    for _ in range(6):
        sweep.sweep(10_000)
        clock.shift(settings.RESUMEAPP_CHECK_SECONDS + 1)
    assert world.head(run_id).status == Status.BLOCKED
    assert Handoff.objects.of(world.tenant).get(run_id=run_id).reason == "attempts:never_finished"


def test_a_look_up_that_can_t_even_be_asked_is_recorded_and_comes_round_more_slowly(
    committed: None, clock: Clock
) -> None:
    world = World("http://127.0.0.1:99999")
    world.policy(ANYTHING)
    with administration.act(world.admin, "target.register") as draft:
        draft.move("target", world.target_ids["payments"], {"name": "payments"}, lookup=LOOKUP)
    packet = issuing(world, PAY)
    effect = world.effect(packet.run.id)
    effects.permit(world.caller, effect.pk, packet.fence)
    clock.shift(61)
    assert leases.lapse(packet.run.id)
    assert reconcile.reconcile(effect.pk) is LookAnswer.CANNOT_TELL
    looked = world.effect(packet.run.id)
    assert (looked.state, looked.looks) == (EffectState.UNKNOWN, 1)
    assert looked.due_at is not None and looked.due_at > clock.now()


def test_a_pass_that_asks_targets_ends_in_time_and_the_rest_is_done_by_the_next(
    world: World, shop: Shop, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep.sweep(10_000)
    monkeypatch.setattr(sweep, "LONGEST_EACH", 0.0)
    runs = [asking(world) for _ in range(3)]
    for run_id in runs:
        say(world, world.alice, run_id)
    abandoned = [world.claimed_run(seconds=1).run.id for _ in range(3)]
    clock.shift(2)
    done = sweep.sweep(10_000)
    assert done["leases"] >= 3
    assert [world.head(run_id).status for run_id in runs].count(Status.READY) == 1
    assert {world.head(run_id).status for run_id in abandoned} == {Status.READY}, "they ask no target"
    for _ in range(len(runs) + len(abandoned)):
        sweep.sweep(10_000)
    assert {world.head(run_id).status for run_id in [*runs, *abandoned]} == {Status.READY}


def test_a_request_that_can_t_be_expired_keeps_no_other_from_expiring(world: World, clock: Clock) -> None:
    poisoned, sound = asked(world, rule(decide_by=20)), asked(world, rule(decide_by=30))
    clock.shift(31)
    run_sql("UPDATE ledger_run_head SET head_seq = head_seq - 1 WHERE run_id = %s", key_of(poisoned.run_id))
    requests.expire_due(10_000)
    assert sound.request.state == "expired"
    run_sql("UPDATE ledger_run_head SET head_seq = head_seq + 1 WHERE run_id = %s", key_of(poisoned.run_id))


def test_a_wait_can_t_be_put_off_beyond_what_anybody_would_see(world: World) -> None:
    packet = world.claimed_run()
    now = facts.read().now
    member = MemberSpec(MemberKind.TIMER, at=now + timedelta(seconds=5))
    wait = WaitSpec(SetMode.ANY, (member,), now + timedelta(days=365 * 7_000), OnDeadline.WAKE)
    with pytest.raises(LedgerError, match="invalid"):
        world.commit(packet, Next(NextKind.WAIT, "think", wait))
