"""Runs in their transition `issue`, with effects proposed and permitted; built by the services alone."""

from __future__ import annotations

from uuid import UUID

from ledger.domain.commits import Next, NextKind
from ledger.domain.effects import ProposalSpec, Settled, SettleSpec
from ledger.domain.runs import Status
from ledger.engine import wakes
from ledger.models import Effect, EffectReport
from ledger.services import effects, leases, targets
from ledger.services.packets import Packet
from ledger.services.targets import TargetSpec
from tests.clock import Clock
from tests.documents import LOOKUP, REQUEST
from tests.world import World

ANYTHING = ({"tool": "*", "verdict": "allow"},)
PAY = ProposalSpec("pay", "payments.refund", "payments", "", REQUEST)
DONE = SettleSpec(1, Settled.COMMITTED, reference="rf_1", result=b'{"id":"rf_1"}')


def opened(world: World) -> World:
    """A world whose policy allows every tool, and whose target `payments` has a look-up by key (which nobody answers); `wires` has none."""
    world.policy(ANYTHING)
    spec = TargetSpec("payments", "http://127.0.0.1:9", True, key_retention=86_400, private=True, lookup=LOOKUP)
    targets.register(world.admin, spec)
    return world


def issuing(world: World, *propose: ProposalSpec) -> Packet:
    """A run in its transition `issue`, cleared and in a worker's hands, with these effects proposed."""
    packet = world.claimed_run()
    world.commit(packet, Next(NextKind.GO_ON, "issue"), propose=propose)
    return reclaim(world, packet.run.id)


def reclaim(world: World, run_id: UUID) -> Packet:
    """The next owner of a run that is waking."""
    wakes.run(run_id)
    assert world.head(run_id).status == Status.READY
    packet = world.claim()
    assert packet.run.id == run_id
    return packet


def paying(world: World) -> tuple[Packet, Effect, effects.PermitAnswer]:
    """A run whose payment is permitted."""
    packet = issuing(world, PAY)
    effect = world.effect(packet.run.id)
    return packet, effect, effects.permit(world.caller, effect.pk, packet.fence)


def state(world: World, effect: Effect) -> str:
    return str(Effect.objects.of(world.tenant).get(pk=effect.pk).state)


def lapse(world: World, clock: Clock, run_id: UUID) -> None:
    """The owner is gone: its lease runs out."""
    clock.shift(61)
    assert leases.lapse(run_id)


def reports(world: World, effect: Effect) -> list[tuple[str, str, bool]]:
    """What was told of an effect: kind, answer, and whether it counted."""
    rows = EffectReport.objects.of(world.tenant).filter(effect=effect).order_by("ordinal")
    return list(rows.values_list("kind", "answer", "counted"))
