"""A permit reads again who acts and for whom: nothing that held at the wake, or when the key was read, is taken for granted."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest

from ledger.domain.commits import Next, NextKind
from ledger.domain.effects import EffectState, Settled, SettleSpec
from ledger.domain.errors import LedgerError
from ledger.domain.runs import Status
from ledger.domain.starts import StartSpec
from ledger.engine import wakes
from ledger.models import ApiKey, Grant, Handoff, Lease, Permit, PolicyVersion, TenantHead
from ledger.services import effects, identity, leases, runs
from ledger.services.packets import Packet
from tests.clock import Clock
from tests.documents import STATE
from tests.services.filled import fill
from tests.services.issuing import PAY, issuing, opened, reclaim, state
from tests.world import World


@pytest.fixture
def open_world(world: World) -> World:
    return opened(world)


def permits(world: World, effect_id: UUID) -> int:
    return Permit.objects.of(world.tenant).filter(effect_id=effect_id).count()


def acting_for(world: World, person: Any) -> Packet:
    """A claimed run in `issue` that acts on a person's behalf, with a payment proposed."""
    spec = StartSpec("refund", "1", "refund", dict(STATE), {}, "", str(uuid4()), person.pk)
    run_id = runs.start(world.caller, spec).run_id
    world.commit(world.claim(), Next(NextKind.GO_ON, "issue"), propose=(PAY,))
    return reclaim(world, run_id)


def test_no_permit_once_the_person_whom_the_agent_acts_for_has_left(open_world: World) -> None:
    packet = acting_for(open_world, open_world.charlie)
    effect = open_world.effect(packet.run.id)
    identity.leave(open_world.admin, open_world.charlie)
    with pytest.raises(LedgerError, match="forbidden"):
        effects.permit(open_world.caller, effect.pk, packet.fence)
    assert permits(open_world, effect.pk) == 0
    assert open_world.head(packet.run.id).status == Status.WAKING
    wakes.run(packet.run.id)
    assert Handoff.objects.of(open_world.tenant).get(run_id=packet.run.id).reason == "identity:person_inactive"


def test_no_permit_for_a_key_that_was_revoked_after_it_was_read(open_world: World) -> None:
    packet = issuing(open_world, PAY)
    effect = open_world.effect(packet.run.id)
    key = ApiKey.objects.of(open_world.tenant).get(pk=open_world.caller.key_id)
    identity.revoke_key(open_world.admin, key.pk)
    with pytest.raises(LedgerError, match="key-revoked"):
        effects.permit(open_world.caller, effect.pk, packet.fence)
    assert permits(open_world, effect.pk) == 0


def test_no_permit_for_an_agent_that_was_deactivated_after_its_key_was_read(open_world: World) -> None:
    packet = issuing(open_world, PAY)
    effect = open_world.effect(packet.run.id)
    identity.deactivate_agent(open_world.admin, open_world.agent_id)
    with pytest.raises(LedgerError, match="forbidden"):
        effects.permit(open_world.caller, effect.pk, packet.fence)
    assert permits(open_world, effect.pk) == 0
    assert open_world.head(packet.run.id).status == Status.WAKING


def test_a_run_whose_key_may_be_forgotten_is_not_cleared_to_meet_a_refusal(open_world: World, clock: Clock) -> None:
    packet = issuing(open_world, PAY)
    run_id, effect = packet.run.id, open_world.effect(packet.run.id)
    effects.permit(open_world.caller, effect.pk, packet.fence)
    effects.settle(open_world.caller, effect.pk, SettleSpec(1, Settled.FAILED, "throttled"), packet.fence)
    clock.shift(86_400)
    assert state(open_world, effect) == EffectState.FAILED
    assert leases.lapse(run_id)
    wakes.run(run_id)
    assert open_world.head(run_id).status == Status.BLOCKED
    handoff = Handoff.objects.of(open_world.tenant).get(run_id=run_id)
    assert (handoff.reason, handoff.effect_id) == ("retry:key_forgotten", effect.pk)


def test_nobody_acts_on_behalf_of_a_stranger(open_world: World) -> None:
    for stranger in (uuid4(), World().alice.pk):
        spec = StartSpec("refund", "1", "refund", dict(STATE), {}, "", str(uuid4()), stranger)
        with pytest.raises(LedgerError, match="invalid"):
            runs.start(open_world.caller, spec)


# What a permit stood on --------------------------------------------------------------------------


def test_a_permit_keeps_what_it_stood_on_and_the_next_one_what_held_then(open_world: World) -> None:
    world, packet = open_world, issuing(open_world, PAY)
    effect = world.effect(packet.run.id)
    effects.permit(world.caller, effect.pk, packet.fence)
    first = _stood_on(world, effect.pk, 1)
    effects.settle(world.caller, effect.pk, SettleSpec(1, Settled.FAILED, "not_dispatched"), packet.fence)
    world.policy(({"tool": "payments.*", "verdict": "allow"},))
    leases.heartbeat(world.caller, first.worker_id, [(packet.run.id, packet.fence)])
    effects.permit(world.caller, effect.pk, packet.fence)
    second = _stood_on(world, effect.pk, 2)
    assert second.policy_id != first.policy_id and second.policy_seq == first.policy_seq + 1
    assert second.lease_until > first.lease_until
    assert (first.key_id, first.scopes, first.clearance_id) == (second.key_id, second.scopes, second.clearance_id)


def test_a_permit_under_leave_names_the_grant_and_the_policy_that_wanted_it(world: World) -> None:
    fill(world)
    permit = Permit.objects.of(world.tenant).get()
    grant = Grant.objects.of(world.tenant).get(pk=permit.grant_id)
    policy = PolicyVersion.objects.of(world.tenant).get(pk=permit.policy_id)
    assert grant.subject_id == permit.effect_id and policy.rules[0]["verdict"] == "approve"


def _stood_on(world: World, effect_id: UUID, attempt: int) -> Permit:
    """The permit's row, in which everything is as it holds right after it was given."""
    permit: Permit = Permit.objects.of(world.tenant).get(effect_id=effect_id, attempt=attempt)
    head = world.head(permit.run_id)
    assert permit.policy_id == PolicyVersion.objects.of(world.tenant).latest("number").pk
    assert permit.policy_seq == TenantHead.objects.of(world.tenant).get().head_seq
    assert permit.scopes == ApiKey.objects.of(world.tenant).get(pk=permit.key_id).scopes
    assert permit.lease_until == Lease.objects.of(world.tenant).get(run_id=permit.run_id).expires_at
    assert permit.clearance_id == head.clearance_id and permit.grant_id is None
    assert (permit.fence_epoch, permit.fence_count) == (head.fence_epoch, head.fence_count)
    return permit
