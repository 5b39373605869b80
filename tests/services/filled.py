"""Runs that leave rows in every table whose rows are never rewritten."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

from approvals.domain.decisions import EntryPoint
from approvals.models import ApprovalRequest
from approvals.services.decisions import decide
from ledger.domain.commits import Next, NextKind
from ledger.domain.effects import ProposalSpec, SeenVersion, Settled, SettleSpec
from ledger.domain.waits import MemberKind, MemberSpec, OnDeadline, SetMode, WaitSpec
from ledger.engine import wakes
from ledger.services import checkpoints, effects, events, facts
from ledger.services.checkpoints import CommitSpec
from ledger.services.events import EventSpec
from tests.approvals.asking import RECEIPT
from tests.documents import REQUEST, STATE
from tests.world import World

PAID = SettleSpec(1, Settled.COMMITTED, reference="rf_1", result=b'{"id":"rf_1"}')
WAIT = WaitSpec(
    SetMode.ALL,
    (MemberSpec(MemberKind.APPROVAL, effect="pay"), MemberSpec(MemberKind.EVENT, type="order.paid", subject="17")),
    timedelta(hours=1),
    OnDeadline.WAKE,
)


def fill(world: World) -> None:
    """A run that was asked about, told of an event, woken, permitted and settled; and one whose order was seen at its target."""
    _paid(world)
    _seen(world)


def _paid(world: World) -> None:
    run_id = world.waiting_run(WAIT, propose=(ProposalSpec("pay", "payments.refund", "payments", "", REQUEST),))
    request = ApprovalRequest.objects.of(world.tenant).get(run_id=run_id)
    word = (request.pk, "approve", "seen", bytes(request.digest), request.revision)
    decide(world.alice, *word, EntryPoint.PAGE, RECEIPT)
    events.receive(world.caller, EventSpec("/shop", str(uuid4()), "order.paid", "17"))
    assert str(wakes.run(run_id)) == "resume"
    packet = world.claim()
    effect = world.effect(run_id)
    effects.permit(world.caller, effect.pk, packet.fence)
    effects.settle(world.caller, effect.pk, PAID, packet.fence)


def _seen(world: World) -> None:
    packet = world.claimed_run()
    order = "order/17"
    spec = CommitSpec(
        fence=packet.fence,
        expect_seq=1,
        code_version="code-1",
        state=dict(STATE),
        next=Next(NextKind.WAIT, "issue", WAIT),
        idempotency_key=str(uuid4()),
        document={"state": dict(STATE)},
        propose=(ProposalSpec("pay", "payments.refund", "payments", order, REQUEST),),
    )
    seen = SeenVersion(world.target_ids["payments"], order, '"v1"', facts.read().now, "system:test")
    checkpoints.commit_transition(world.caller, packet.run.id, spec, {("payments", order): seen})
