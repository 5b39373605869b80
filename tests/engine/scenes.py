"""What tests of the engine do at the payment service: propose, call as a worker would, lose the answer, look it up."""

from __future__ import annotations

import http.client
import json
from typing import Any
from uuid import UUID

from ledger.domain.commits import Next, NextKind
from ledger.domain.effects import LookAnswer, ProposalSpec
from ledger.domain.runs import Status
from ledger.engine import proposals, reconcile, wakes
from ledger.models import Effect, EffectReport
from ledger.services import effects, leases, targets
from ledger.services.checkpoints import CommitSpec
from ledger.services.effects import PermitAnswer
from ledger.services.packets import Packet
from ledger.services.targets import TargetSpec
from tests.clock import Clock
from tests.documents import LOOKUP, OBSERVE, REPLAY, STATE
from tests.sandbox.process import Answer, Caller, Sandbox
from tests.world import World

REQUEST = b'{"amount_minor":1500,"currency":"EUR","order":"17","reason":"broken on arrival"}'
LOST = (OSError, http.client.HTTPException)


def proposal(target: str = "payments", resource: str = "") -> ProposalSpec:
    return ProposalSpec("pay", f"{target}.refund", target, resource, REQUEST)


class Payments:
    """A world with the sandbox as its targets: `payments` (look-up by key), `replayed` (look-up by replay), `wires` (neither)."""

    def __init__(self, world: World, sandbox: Sandbox, caller: Caller) -> None:
        self.world, self.sandbox, self.caller = world, sandbox, caller
        self.url = f"http://{sandbox.host}"
        world.policy(({"tool": "*", "verdict": "allow"},))
        common: dict[str, Any] = {"private": True, "call_limit": 5, "freshness": 300}
        keyed: dict[str, Any] = {**common, "keyed": True, "key_retention": 86_400, "observe": OBSERVE}
        targets.register(world.admin, TargetSpec("payments", self.url, lookup=LOOKUP, visibility_delay=2, **keyed))
        targets.register(world.admin, TargetSpec("wires", self.url, keyed=False, **common))
        # `notes` is the world's third target that its transition names: here it is looked up by replay.
        replayed = TargetSpec("notes", self.url, lookup=REPLAY, first_result_replayed=True, **keyed)
        targets.register(world.admin, replayed)

    def issuing(self, spec: ProposalSpec) -> Packet:
        """A run in `issue` with the effect proposed, in a worker's hands."""
        packet = self.world.claimed_run()
        commit = CommitSpec(
            fence=packet.fence,
            expect_seq=packet.checkpoint["seq"],
            code_version="code-1",
            state=dict(STATE),
            next=Next(NextKind.GO_ON, "issue"),
            idempotency_key=str(packet.run.id),
            document={"state": dict(STATE)},
            propose=(spec,),
        )
        proposals.commit(self.world.caller, packet.run.id, commit)
        return self.reclaim(packet.run.id)

    def reclaim(self, run_id: UUID) -> Packet:
        wakes.run(run_id)
        assert self.world.head(run_id).status == Status.READY
        return self.world.claim()

    def permitted(self, spec: ProposalSpec | None = None) -> tuple[Packet, UUID, PermitAnswer]:
        packet = self.issuing(spec or proposal())
        effect_id: UUID = self.world.effect(packet.run.id).pk
        return packet, effect_id, proposals.permit(self.world.caller, effect_id, packet.fence)

    def pay(self, given: PermitAnswer, path: str = "/refunds") -> Answer:
        """The worker's call, with the recorded bytes, key and precondition."""
        headers = {"Idempotency-Key": given.key}
        if given.precondition:
            headers["If-Match"] = given.precondition
        caller = self.sandbox.caller()
        caller.connection.request("POST", path, given.request, headers)
        return caller.read()

    def lapse(self, clock: Clock, run_id: UUID) -> None:
        """The worker is gone: its lease runs out."""
        clock.shift(61)
        assert leases.lapse(run_id)

    def look(self, effect_id: UUID) -> tuple[LookAnswer, Effect]:
        answer = reconcile.reconcile(effect_id)
        return answer, self.effect(effect_id)

    def effect(self, effect_id: UUID) -> Effect:
        found: Effect = Effect.objects.of(self.world.tenant).get(pk=effect_id)
        return found

    def reports(self, effect_id: UUID) -> list[tuple[str, str, str, bool]]:
        rows = EffectReport.objects.of(self.world.tenant).filter(effect_id=effect_id).order_by("ordinal")
        return list(rows.values_list("kind", "answer", "cause", "counted"))

    def counted(self, key: str) -> tuple[int, int]:
        """(mutating requests, applied changes) of a key, by the service's own log."""
        found = self.caller.counted(key)
        return found["mutating"], found["applied"]

    def change_order(self, amount_minor: int = 11_000) -> None:
        answer = self.caller.call("PATCH", "/orders/17", {"amount_minor": amount_minor})
        assert answer.status == 200, answer


def evidence(payments: Payments, effect_id: UUID) -> list[Any]:
    """What the reports of an effect refer to, parsed."""
    seen = effects.get(payments.world.tenant.pk, effect_id)
    found = [seen.evidence.get(report.evidence_id) for report in seen.reports if report.evidence_id]
    return [json.loads(content) for content in found if content]
