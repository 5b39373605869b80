"""Runs as the product itself brings them there: approved, woken, called, lost, asked about, handed over."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from ledger.domain.commits import Next, NextKind
from ledger.domain.effects import LookAnswer
from ledger.engine import wakes
from ledger.models import Effect, Handoff
from ledger.services import effects, leases, targets
from ledger.services.effects import Looked
from ledger.services.packets import Packet
from ledger.services.targets import TargetSpec
from tests.clock import Clock
from tests.documents import REPLAY
from tests.ui.asking import ask, client_of, decide
from tests.world import World


def approved(world: World, **asking: Any) -> UUID:
    """A run whose call was asked for, approved by Alice, and that the wake cleared."""
    request = ask(world, **asking)
    decide(client_of(world.alice), world, request, "approve", "The photos show it.")
    wakes.run(request.run_id)
    return UUID(str(request.run_id))


def called(world: World, *, seconds: int = 60, **asking: Any) -> tuple[Packet, Effect]:
    """A worker holds an approved run, and its call is out."""
    run_id = approved(world, **asking)
    packet = world.claim("1", "2", seconds=seconds)
    assert packet.run.id == run_id
    effect = world.effect(run_id)
    effects.permit(world.caller, effect.pk, packet.fence)
    return packet, world.effect(run_id)


def found_by(world: World, lookup: Mapping[str, Any]) -> None:
    """The payment service, where nobody answers, found again in this way."""
    spec = TargetSpec(
        "payments",
        "http://127.0.0.1:9",
        True,
        key_retention=86_400,
        private=True,
        lookup=dict(lookup),
        first_result_replayed=lookup is REPLAY,
    )
    targets.register(world.admin, spec)


def lost(world: World, clock: Clock, **asking: Any) -> Effect:
    """The worker is gone while its call is out: nobody knows what happened."""
    packet, _ = called(world, **asking)
    clock.shift(120)
    assert leases.lapse(packet.run.id)
    effect = world.effect(packet.run.id)
    assert effect.state == "unknown"
    return effect


def just_lost(world: World, clock: Clock) -> Effect:
    """The worker is gone while its call may still arrive."""
    packet, _ = called(world, seconds=1)
    clock.shift(2)
    assert leases.lapse(packet.run.id)
    effect = world.effect(packet.run.id)
    assert effect.state == "unknown"
    return effect


def horizon_of(effect: Effect) -> datetime:
    """When the call can no longer arrive, and what arrived shows."""
    assert effect.answer_by is not None
    return effect.answer_by + timedelta(seconds=effect.target.visibility_delay)


def answered(effect: Effect, answer: LookAnswer, at: Any, **more: Any) -> None:
    """The target was asked and said this."""
    effects.look(effect.pk, Looked(answer, at, effect.attempt, **more))


def handed_over(world: World, clock: Clock, **asking: Any) -> Handoff:
    """The target has something else under the key: the run is in people's hands."""
    effect = lost(world, clock, **asking)
    answered(effect, LookAnswer.DIFFERS, clock.now(), cause="amount", evidence=b'{"refund":"re_9","amount_minor":9900}')
    found: Handoff = Handoff.objects.of(world.tenant).get(run_id=effect.run_id, state="open")
    return found


def completed(world: World) -> UUID:
    """A run that ended well."""
    packet = world.claimed_run()
    world.commit(packet, Next(NextKind.COMPLETE), state={"order": "17", "amount_minor": 4200, "currency": "EUR"})
    return packet.run.id


def named() -> str:
    """A word that no other row has."""
    return f"w{uuid4().hex[:10]}"


def given_up(world: World, clock: Clock, run_id: UUID | None = None) -> Handoff:
    """Three workers in a row were lost over a run before they committed anything: it is in people's hands, whatever its calls did."""
    run_id = run_id or world.start_run()
    for _ in range(3):
        assert world.claim("1", "2", seconds=1).run.id == run_id
        clock.shift(60)
        assert leases.lapse(run_id)
        if world.head(run_id).status != "blocked":
            wakes.run(run_id)
    found: Handoff = Handoff.objects.of(world.tenant).get(run_id=run_id, state="open")
    assert found.reason == "poisoned" and found.effect_id is None
    return found
