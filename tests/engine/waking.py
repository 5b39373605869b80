"""Runs that sleep and wake, stacked on the world: an effect on an order of the shop, waiting for its approval."""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from approvals.domain.decisions import EntryPoint, Receipt
from approvals.models import ApprovalRequest
from approvals.services.decisions import decide
from ledger.domain.commits import Next, NextKind
from ledger.domain.effects import ProposalSpec
from ledger.domain.waits import MemberKind, MemberSpec, OnDeadline, SetMode, WaitSpec
from ledger.domain.workflows import VersionSpec
from ledger.engine import proposals, wakes
from ledger.models import Decision, User, WaitSet, WakeCheck
from ledger.services import facts, leases, verify, workflows
from ledger.services.checkpoints import CommitSpec
from ledger.services.packets import Packet
from tests.documents import REQUEST, SCHEMA, STATE, TRANSITIONS
from tests.world import World

DAY = 86_400.0


def pay(target: str = "shop", resource: str = "17", tool: str = "payments.refund", name: str = "pay") -> ProposalSpec:
    return ProposalSpec(name, tool, target, resource, REQUEST, secrets.token_hex(8))


def commit(world: World, packet: Packet, next_: Next, *propose: ProposalSpec) -> UUID:
    """Commit as an agent does: targets are observed first, early events looked for afterwards."""
    spec = CommitSpec(
        fence=packet.fence,
        expect_seq=packet.checkpoint["seq"],
        code_version="code-1",
        state=dict(STATE),
        next=next_,
        idempotency_key=str(uuid4()),
        document={},
        propose=propose,
    )
    proposals.commit(world.caller, packet.run.id, spec)
    return packet.run.id


def approval(seconds: float = DAY, on_deadline: OnDeadline = OnDeadline.WAKE) -> Next:
    """Wait for leave to pay."""
    deadline = facts.read().now + timedelta(seconds=seconds)
    member = MemberSpec(MemberKind.APPROVAL, effect="pay")
    return Next(NextKind.WAIT, "issue", WaitSpec(SetMode.ANY, (member,), deadline, on_deadline))


def timer(seconds: float, deadline: float = DAY, on_deadline: OnDeadline = OnDeadline.WAKE) -> Next:
    """Wait for a time."""
    now = facts.read().now
    member = MemberSpec(MemberKind.TIMER, at=now + timedelta(seconds=seconds))
    return Next(
        NextKind.WAIT, "issue", WaitSpec(SetMode.ANY, (member,), now + timedelta(seconds=deadline), on_deadline)
    )


def asking(world: World, next_: Next | None = None, proposal: ProposalSpec | None = None) -> UUID:
    """A run that proposed a payment on the shop's order 17 and waits for its approval."""
    run_id = commit(world, world.claimed_run(), next_ or approval(), proposal or pay())
    assert world.head(run_id).status == "waiting"
    return run_id


def replanning(world: World) -> Packet:
    """A claimed run of a version whose `issue` is planned anew when its target moves."""
    moved = {**TRANSITIONS, "issue": {**TRANSITIONS["issue"], "on_conflict": ["replan", "assess"]}}
    workflows.register(world.caller, "refund", "3", VersionSpec(SCHEMA, "assess", moved, ("1", "2")))
    world.start_run(version="3")
    return world.claim("3")


def say(world: World, user: User, run_id: UUID, choice: str = "approve") -> None:
    """Decide on the run's newest request as it is now."""
    answer(world, user, ApprovalRequest.objects.of(world.tenant).filter(run_id=run_id).latest("opened_at"), choice)


def answer(world: World, user: User, request: ApprovalRequest, choice: str = "approve") -> None:
    """Decide on this request as it is now."""
    decide(
        user,
        request.pk,
        choice,
        "no" if choice == "deny" else "",
        seen_digest=bytes(request.digest),
        seen_revision=request.revision,
        entry_point=EntryPoint.PAGE,
        receipt=Receipt(b"\x01" * 32, "card/1"),
    )


def wake(world: World, run_id: UUID) -> Decision:
    """Wake the run; its decision."""
    assert wakes.run(run_id) is not None
    found: Decision = Decision.objects.of(world.tenant).filter(run_id=run_id).latest("decided_at")
    assert verify.run(run_id).intact
    return found


def check(world: World, decision: Decision, name: str) -> WakeCheck:
    found: WakeCheck = WakeCheck.objects.of(world.tenant).get(decision=decision, name=name)
    return found


def last_wait(world: World, run_id: UUID) -> WaitSet:
    found: WaitSet = WaitSet.objects.of(world.tenant).filter(run_id=run_id).latest("opened_at")
    return found


def claim(world: World, run_id: UUID, *versions: str) -> Packet:
    """The run's packet in another worker's hands."""
    packets: list[Any] = leases.claim(world.caller, world.offer(*(versions or ("1",)), limit=10))
    return next(packet for packet in packets if packet.run.id == run_id)
