"""A run that waits for an approval, stacked on a claimed one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from approvals.domain.decisions import EntryPoint, Receipt
from approvals.models import ApprovalRequest, Vote
from approvals.services.decisions import DecisionAnswer, decide
from ledger.domain.commits import Next, NextKind
from ledger.domain.effects import ProposalSpec
from ledger.domain.waits import MemberKind, MemberSpec, OnDeadline, SetMode, WaitSpec
from ledger.models import Effect, Grant, Tenant, User, WaitMember
from ledger.services import facts
from tests.documents import REQUEST
from tests.world import World

RECEIPT = Receipt(b"\x01" * 32, "card/1")


@dataclass(frozen=True)
class Asked:
    """One request with what it is about."""

    tenant: Tenant
    run_id: UUID
    request_id: UUID
    effect_id: UUID

    @property
    def request(self) -> ApprovalRequest:
        found: ApprovalRequest = ApprovalRequest.objects.of(self.tenant).get(pk=self.request_id)
        return found

    @property
    def effect(self) -> Effect:
        found: Effect = Effect.objects.of(self.tenant).get(pk=self.effect_id)
        return found

    @property
    def member(self) -> WaitMember:
        found: WaitMember = WaitMember.objects.of(self.tenant).get(run_id=self.run_id, effect_id=self.effect_id)
        return found

    @property
    def votes(self) -> list[Vote]:
        return list(Vote.objects.of(self.tenant).filter(request_id=self.request_id).order_by("voted_at"))

    @property
    def grants(self) -> list[Grant]:
        return list(Grant.objects.of(self.tenant).filter(subject_id=self.effect_id).order_by("approved_at"))

    def decide(self, user: User, choice: object = "approve", reason: str = "", **more: Any) -> DecisionAnswer:
        """Decide on the request as it is now, unless told otherwise."""
        if "seen_digest" not in more or "seen_revision" not in more:
            now = self.request
            more = {"seen_digest": bytes(now.digest), "seen_revision": now.revision, **more}
        return decide(user, self.request_id, choice, reason, entry_point=EntryPoint.PAGE, receipt=RECEIPT, **more)


def rule(group: str = "approvers", **more: Any) -> dict[str, Any]:
    return {"tool": "payments.*", "verdict": "approve", "group": group, **more}


def asked(world: World, *rules: dict[str, Any], seconds: float = 86_400, run_id: UUID | None = None) -> Asked:
    """A run that proposed a payment and waits for its approval until `seconds` from now; of a new run, unless one that is ready is named."""
    if rules:
        world.policy(rules)
    spec = ProposalSpec("pay", "payments.refund", "payments", "", REQUEST)
    member = MemberSpec(MemberKind.APPROVAL, effect="pay")
    deadline = facts.read().now + timedelta(seconds=seconds)
    wait = WaitSpec(SetMode.ANY, (member,), deadline, OnDeadline.WAKE)
    packet = world.claimed_run() if run_id is None else world.claim()
    run_id = packet.run.id
    world.commit(packet, Next(NextKind.WAIT, "issue", wait), propose=(spec,))
    effect = world.effect(run_id)
    request = ApprovalRequest.objects.of(world.tenant).get(subject_id=effect.pk)
    assert request.state == "pending"
    return Asked(world.tenant, run_id, request.pk, effect.pk)
