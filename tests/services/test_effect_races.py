"""Races over one effect, on PostgreSQL: both sides have read before either writes, and each side wins once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection

from ledger.domain.effects import EffectState, LookAnswer
from ledger.domain.errors import LedgerError
from ledger.domain.identity import Caller
from ledger.domain.runs import Status
from ledger.models import Permit
from ledger.services import effects, facts, leases, verify
from ledger.services.effects import Looked
from tests.clock import Clock
from tests.meeting import race
from tests.services.issuing import DONE, PAY, issuing, lapse, opened, paying, reports, state
from tests.world import World

pytestmark = pytest.mark.postgres_only


@pytest.fixture
def open_world(world: World) -> World:
    return opened(world)


def test_a_settle_that_wins_against_the_lapse_counts(open_world: World, clock: Clock) -> None:
    packet, effect, _ = paying(open_world)
    clock.shift(61)
    settled, lapsed = race(
        lambda: effects.settle(open_world.caller, effect.pk, DONE, packet.fence), lambda: leases.lapse(packet.run.id)
    )
    assert settled.counted and lapsed is True
    assert state(open_world, effect) == EffectState.COMMITTED
    assert reports(open_world, effect) == [("settle", "committed", True)]
    assert verify.run(packet.run.id).faults == []


def test_a_settle_that_loses_against_the_lapse_is_evidence(open_world: World, clock: Clock) -> None:
    packet, effect, _ = paying(open_world)
    clock.shift(61)
    lapsed, settled = race(
        lambda: leases.lapse(packet.run.id), lambda: effects.settle(open_world.caller, effect.pk, DONE, packet.fence)
    )
    assert lapsed is True and not settled.counted
    assert state(open_world, effect) == EffectState.UNKNOWN
    assert reports(open_world, effect) == [("lapse", "unknown", True), ("late", "committed", False)]
    assert verify.run(packet.run.id).faults == []


def test_two_permits_at_once_are_one_permit(open_world: World) -> None:
    packet = issuing(open_world, PAY)
    effect = open_world.effect(packet.run.id)
    ask = lambda: effects.permit(open_world.caller, effect.pk, packet.fence)  # noqa: E731
    first, second = race(ask, ask)
    assert (first.new, second.new) == (True, False)
    assert (first.attempt, first.key, first.send_by) == (second.attempt, second.key, second.send_by)
    assert Permit.objects.of(open_world.tenant).filter(effect=effect).count() == 1


def test_a_permit_that_loses_against_a_release_is_refused(open_world: World) -> None:
    packet = issuing(open_world, PAY)
    effect = open_world.effect(packet.run.id)
    _, refused = race(
        lambda: leases.release(open_world.caller, packet.run.id, packet.fence),
        lambda: effects.permit(open_world.caller, effect.pk, packet.fence),
    )
    assert isinstance(refused, LedgerError) and refused.code == "stale-fence"
    assert Permit.objects.of(open_world.tenant).filter(effect=effect).count() == 0


def test_a_policy_published_between_reading_and_writing_decides_the_permit(open_world: World) -> None:
    packet = issuing(open_world, PAY)
    effect = open_world.effect(packet.run.id)
    published = False

    def publish_first(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal published
        if "INSERT INTO ledger_journal_entry" in sql and not published:
            published = True
            thread = threading.Thread(target=publish)
            thread.start()
            thread.join(20)
        return execute(sql, params, many, context)

    def publish() -> None:
        try:
            open_world.policy(({"tool": "*", "verdict": "deny"},))
        finally:
            connection.close()

    with connection.execute_wrapper(publish_first), pytest.raises(LedgerError, match="policy-denies"):
        effects.permit(open_world.caller, effect.pk, packet.fence)
    assert published and Permit.objects.of(open_world.tenant).filter(effect=effect).count() == 0
    assert open_world.head(packet.run.id).status == Status.WAKING


def unknown_wire(world: World, clock: Clock) -> tuple[Any, Any, Caller]:
    """An effect at a target without a look-up, unknown; its stale owner's packet; an operator."""
    packet = issuing(world, replace(PAY, target="wires"))
    effect = world.effect(packet.run.id)
    effects.permit(world.caller, effect.pk, packet.fence)
    lapse(world, clock, packet.run.id)
    charlie = replace(world.admin, actor=f"person:{world.charlie.pk}", person_id=world.charlie.pk)
    return packet, effect, charlie


def absent(effect: Any, person: Caller) -> Callable[[], Any]:
    """A person's word that it wasn't done, on the effect as it is now."""
    read, said = effects.read_now(effect.pk), "not in the statement"
    return lambda: effects.verdict(person, effect.pk, EffectState.FAILED, "confirmed_absent", said, read=read)


def test_a_stale_receipt_that_wins_against_a_verdict_is_final_and_the_person_is_shown_it_first(
    open_world: World, clock: Clock
) -> None:
    packet, effect, charlie = unknown_wire(open_world, clock)
    receipt, judged = race(
        lambda: effects.settle(open_world.caller, effect.pk, DONE, packet.fence), absent(effect, charlie)
    )
    assert receipt.counted and judged.code == "changed"
    assert state(open_world, effect) == EffectState.COMMITTED
    assert absent(effect, charlie)().disputed, "who says so having read of the receipt disputes it"
    assert verify.run(packet.run.id).faults == []


def test_a_stale_receipt_that_loses_against_a_verdict_reopens_it(open_world: World, clock: Clock) -> None:
    packet, effect, charlie = unknown_wire(open_world, clock)
    judged, receipt = race(
        absent(effect, charlie),
        lambda: effects.settle(open_world.caller, effect.pk, DONE, packet.fence),
    )
    assert judged.state is EffectState.FAILED and receipt.effect.state is EffectState.UNKNOWN
    assert reports(open_world, effect)[-1] == ("late", "committed", True)
    assert verify.run(packet.run.id).faults == []


def test_two_looks_at_once_settle_the_effect_once(open_world: World, clock: Clock) -> None:
    packet, effect, _ = paying(open_world)
    lapse(open_world, clock, packet.run.id)
    looked = Looked(LookAnswer.APPLIED, facts.read().now, 1, "rf_1")
    first, second = race(lambda: effects.look(effect.pk, looked), lambda: effects.look(effect.pk, looked))
    assert first.state is second.state is EffectState.COMMITTED
    assert [counted for kind, _, counted in reports(open_world, effect) if kind == "lookup"] == [True, False]
    assert verify.run(packet.run.id).faults == []


def test_of_two_people_s_words_on_one_attempt_the_first_is_taken_and_the_second_asked_to_read_it(
    open_world: World, clock: Clock
) -> None:
    packet, effect, charlie = unknown_wire(open_world, clock)
    read = effects.read_now(effect.pk)
    first, second = race(
        absent(effect, charlie),
        lambda: effects.verdict(charlie, effect.pk, EffectState.COMMITTED, "", "line 4", "wire-1", read=read),
    )
    assert first.state is EffectState.FAILED and second.code == "changed"
    assert reports(open_world, effect)[-1] == ("verdict", "failed", True)
    assert verify.run(packet.run.id).faults == []
