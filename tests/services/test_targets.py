"""A target's address and look-up stay what they are while calls there may have happened: asked elsewhere they would be found absent."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection, transaction

from ledger.domain.effects import EffectState, ProposalSpec, Settled, SettleSpec
from ledger.domain.errors import LedgerError
from ledger.domain.targets import TargetSpec
from ledger.models import Target, TenantHead
from ledger.services import effects, targets, verify
from tests.documents import LOOKUP, OBSERVE, REPLAY, REQUEST
from tests.meeting import between_reading_and_writing
from tests.patience import until
from tests.services.issuing import PAY, issuing, opened, paying
from tests.world import World

KNOWN: dict[str, Any] = {
    "name": PAY.target,
    "base_url": "http://127.0.0.1:9",
    "private": True,
    "keyed": True,
    "key_retention": 86_400,
    "lookup": LOOKUP,
}
"""As `opened` registers it."""
CHANGES: dict[str, dict[str, Any]] = {
    "the address": {"base_url": "http://127.0.0.1:10"},
    "that it can be asked": {"lookup": None},
    "how it is asked": {"lookup": REPLAY, "first_result_replayed": True},
    "what its silence means": {"visibility_delay": 5},
    "how long it remembers": {"key_retention": 60},
    "whether it knows keys": {"keyed": False, "key_retention": 0},
    "whether it answers the first result": {"first_result_replayed": True},
}


def spec(**fields: Any) -> TargetSpec:
    return TargetSpec(**{**KNOWN, **fields})


def base_url(world: World) -> str:
    return str(Target.objects.of(world.tenant).get(name=PAY.target).base_url)


def version(world: World) -> int:
    head: TenantHead = TenantHead.objects.of(world.tenant).get()
    return head.head_seq


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("state", [EffectState.IN_FLIGHT, EffectState.UNKNOWN])
def test_what_a_look_up_rests_on_is_not_changed_while_a_call_is_open(
    world: World, state: EffectState, change: str
) -> None:
    packet, effect, _ = paying(opened(world))
    if state is EffectState.UNKNOWN:
        effects.settle(world.caller, effect.pk, SettleSpec(1, Settled.UNKNOWN), packet.fence)
    before = version(world)
    with pytest.raises(LedgerError) as refusal:
        targets.register(world.admin, spec(**CHANGES[change]))
    assert refusal.value.code == "target-in-use" and refusal.value.status == 409
    assert refusal.value.facts["effects"] == 1 and "Reconcile" in refusal.value.remedy
    assert set(refusal.value.facts["fields"]) == set(CHANGES[change])
    assert version(world) == before and base_url(world) == KNOWN["base_url"]


def test_what_no_look_up_rests_on_may_change_meanwhile(world: World) -> None:
    paying(opened(world))
    assert (
        targets.register(
            world.admin, spec(freshness=60, call_limit=20, material=("/amount",), observe=OBSERVE)
        ).freshness
        == 60
    )
    assert targets.register(world.admin, spec(name="other", base_url="http://127.0.0.1:10")).name == "other"


def test_a_proposed_effect_and_one_that_is_settled_hold_nothing_back(world: World) -> None:
    packet = issuing(opened(world), PAY, replace(PAY, name="other"))
    assert targets.register(world.admin, spec(base_url="http://127.0.0.1:10")).base_url == "http://127.0.0.1:10"
    pay = world.effect(packet.run.id).pk
    effects.permit(world.caller, pay, packet.fence)
    with pytest.raises(LedgerError, match="target-in-use"):
        targets.register(world.admin, spec())
    effects.settle(world.caller, pay, SettleSpec(1, Settled.COMMITTED, reference="r-1"), packet.fence)
    assert targets.register(world.admin, spec()).base_url == KNOWN["base_url"]
    assert verify.tenant(world.tenant.pk).intact


def test_calls_to_another_target_and_of_another_tenant_hold_nothing_back(world: World) -> None:
    wire = ProposalSpec("wire", "wires.send", "wires", "", REQUEST)
    packet = issuing(opened(world), wire)
    effects.permit(world.caller, world.effect(packet.run.id, "wire").pk, packet.fence)
    paying(opened(World()))
    assert targets.register(world.admin, spec(base_url="http://127.0.0.1:10")).base_url == "http://127.0.0.1:10"


@pytest.mark.postgres_only
def test_a_permit_that_read_the_old_address_is_written_only_after_reading_the_new_one(world: World) -> None:
    packet = issuing(opened(world), PAY)
    effect = world.effect(packet.run.id)
    read: list[int] = []

    def permit() -> Any:
        read.append(version(world))
        return effects.permit(world.caller, effect.pk, packet.fence)

    given = between_reading_and_writing(
        lambda: targets.register(world.admin, spec(base_url="http://127.0.0.1:10")), permit
    )
    assert given.effect.state is EffectState.IN_FLIGHT and base_url(world) == "http://127.0.0.1:10"
    assert version(world) == read[0] + 1 and verify.run(packet.run.id).faults == []


@pytest.mark.postgres_only
def test_a_change_waits_for_the_permit_that_is_being_written_and_is_refused_then(world: World) -> None:
    packet = issuing(opened(world), PAY)
    effect = world.effect(packet.run.id)
    told: list[Any] = []

    def change() -> None:
        try:
            told.append(targets.register(world.admin, spec(base_url="http://127.0.0.1:10")))
        except LedgerError as refusal:
            told.append(refusal.code)
        finally:
            connection.close()

    thread = threading.Thread(target=change)
    with transaction.atomic():
        effects.permit(world.caller, effect.pk, packet.fence)
        thread.start()
        until(waits_for_the_effects, "the change to wait for the permit")
        assert told == []
    thread.join(20)
    assert told == ["target-in-use"] and base_url(world) == KNOWN["base_url"]


def waits_for_the_effects() -> bool:
    """Does somebody wait for the table of effects?"""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE relation = 'ledger_effect'::regclass AND NOT granted")
        return bool(cursor.fetchone()[0])
