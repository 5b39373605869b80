"""What sequences play on: one tenant for all of them, a workflow of their own for each, and its runs, driven through the services."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from typing import Any
from uuid import UUID, uuid4

from approvals.domain.decisions import EntryPoint, Receipt
from approvals.models import ApprovalRequest
from approvals.services.decisions import DecisionAnswer, decide
from ledger.domain.commits import Next, NextKind
from ledger.domain.effects import EffectRow, ProposalSpec
from ledger.domain.identity import Caller, Verb
from ledger.domain.leases import Offer
from ledger.domain.runs import Fence, Status
from ledger.domain.starts import StartSpec
from ledger.domain.views import RunView
from ledger.domain.waits import MemberKind, MemberSpec, OnDeadline, SetMode, WaitSpec
from ledger.domain.workflows import VersionSpec
from ledger.engine import proposals
from ledger.models import User
from ledger.services import authority, events, facts, identity, keys, leases, runs, targets, workflows
from ledger.services.checkpoints import CommitSpec
from ledger.services.events import EventSpec
from ledger.services.facts import Part
from ledger.services.leases import LOOKED_AT
from ledger.services.targets import TargetSpec
from ledger.services.views import run_view
from tests.documents import LOOKUP, OBSERVE, REQUEST, SCHEMA, STATE
from tests.sequences.leave import POLICIES, Book
from tests.sequences.shop import Target
from tests.world import ANYTHING, EVERYTHING, World

TRANSITIONS: Mapping[str, Any] = {
    "assess": {"targets": [], "tools": [], "on_conflict": ["ask_again"]},
    "issue": {"targets": ["payments", "notes"], "tools": [], "on_conflict": ["ask_again"]},
    "think": {"targets": [], "tools": []},
}
PROPOSALS = {
    "pay": ProposalSpec("pay", "payments.refund", "payments", "order/17", REQUEST),
    "note": ProposalSpec("note", "notes.add", "notes", "", b'{"text":"hello"}'),
}
"""A payment that a person has to approve, at a target with a look-up; a note that policy allows, at one that can't be asked."""

FRESH_SECONDS = 20
RECEIPT = Receipt(b"\x01" * 32, "card/1")
_NAMES = count(1)


class Stage:
    """The tenant that all sequences share: rights are in the tenant, since each sequence brings a workflow of its own. `book` is what the model
    knows of the tenant's authority, which each sequence finds as the first one did."""

    def __init__(self, target: Target) -> None:
        self.world = World()
        self.target = target
        self.book = Book()
        self.caller = self.world.caller
        world = self.world
        for verb in (Verb.SEE, Verb.SEE_PAYLOADS, Verb.APPROVE):
            identity.grant_permission(world.admin, world.approvers, verb, world.tenant)
        for verb in (Verb.SEE, Verb.OPERATE):
            identity.grant_permission(world.admin, world.charlie, verb, world.tenant)
        spec = TargetSpec(
            name="payments",
            base_url=f"http://127.0.0.1:{target.server_port}",
            keyed=True,
            key_retention=86_400,
            freshness=FRESH_SECONDS,
            private=True,
            lookup=LOOKUP,
            observe=OBSERVE,
        )
        targets.register(world.admin, spec)
        authority.publish_policy(world.admin, POLICIES[self.book.policy].rules())
        self.operator = Caller(world.tenant.pk, f"person:{world.charlie.pk}", person_id=world.charlie.pk)

    def begin(self) -> None:
        """Authority as it was at the first sequence's beginning, with a new book."""
        if self.book.policy != Book().policy:
            self.publish(Book().policy)
        for person in Book().team - self.book.team:
            self.joins(person)
        self.book = Book(revoked=self.book.revoked)
        self.target.tell = self.hear

    def hear(self, version: str) -> None:
        self.book.heard.append(version)

    def person(self, name: str) -> User:
        found: User = getattr(self.world, name)
        return found

    def publish(self, policy: str) -> None:
        authority.publish_policy(self.world.admin, POLICIES[policy].rules())
        self.book.policy = policy

    def leaves(self, person: str) -> None:
        identity.remove_from_team(self.world.admin, self.world.approvers, self.person(person))
        self.book.team.remove(person)

    def joins(self, person: str) -> None:
        identity.add_to_team(self.world.admin, self.world.approvers, self.person(person))
        self.book.team.add(person)

    def revoke_key(self) -> None:
        """The agent's key ends; it gets another."""
        assert self.caller.key_id is not None
        identity.revoke_key(self.world.admin, self.caller.key_id)
        self.book.revoked.add(self.caller.key_id)
        issued = identity.issue_key(self.world.admin, "refunds", EVERYTHING, agent_id=self.world.agent_id, **ANYTHING)
        self.caller = keys.authenticate(f"Bearer {issued.secret}")

    def workflow(self) -> str:
        """A workflow of its own in two versions, the second taking over from the first."""
        name = f"sequence-{next(_NAMES)}-{uuid4().hex[:6]}"
        for version, before in (("1", ()), ("2", ("1",))):
            workflows.register(self.caller, name, version, VersionSpec(SCHEMA, "assess", TRANSITIONS, before))
        return name

    def start(self, workflow: str) -> UUID:
        spec = StartSpec(workflow, "1", "a sequence", dict(STATE), {}, "", str(uuid4()))
        return runs.start(self.caller, spec).run_id

    def view(self, run_id: UUID) -> tuple[RunView, dict[UUID, EffectRow]]:
        """The run as of now, with all effects that it ever had."""
        every = Part("effect", "t.run_id = %s", (run_id,), many=True, order="t.proposed_at, t.name")
        view = run_view(run_id, self.world.tenant.pk, every=every)
        return view, {row["id"]: facts.load(EffectRow, row) for row in view.extras["every"]}

    def event(self, workflow: str, name: str) -> None:
        events.receive(self.caller, EventSpec("/outside", name, "order.paid", workflow))

    def decide(self, person: User, request: ApprovalRequest, choice: str) -> DecisionAnswer:
        """This person's vote on the request as it is now."""
        return decide(
            person,
            request.pk,
            choice,
            "seen",
            seen_digest=bytes(request.digest),
            seen_revision=request.revision,
            entry_point=EntryPoint.PAGE,
            receipt=RECEIPT,
        )

    def request(self, run_id: UUID) -> ApprovalRequest | None:
        rows = ApprovalRequest.objects.of(self.world.tenant).filter(run_id=run_id, state="pending")
        found: ApprovalRequest | None = rows.order_by("opened_at").first()
        return found


@dataclass(frozen=True)
class Given:
    """A permit as its worker keeps it."""

    effect_id: UUID
    key: str
    attempt: int
    send_by: datetime
    answer_by: datetime


@dataclass
class Held:
    """A claim as its worker keeps it, long after it was lost too, with the permits that it got."""

    run_id: UUID
    worker: UUID
    fence: Fence
    caller: Caller
    permits: list[Given] = field(default_factory=list)

    def holds(self, view: RunView) -> bool:
        return view.head.fence == self.fence and view.head.status is Status.RUNNING


def claim(stage: Stage, workflow: str, version: str) -> Held | None:
    """The next ready run of the workflow, in a new worker's hands."""
    worker = UUID(
        int=next(_NAMES) * LOOKED_AT
    )  # so that the worker begins with the first candidate, each time it is played
    offer = Offer(worker, "sequences", "digest", {workflow: (version,)}, 1, 60)
    packets = leases.claim(stage.caller, offer)
    return Held(packets[0].run.id, worker, packets[0].fence, stage.caller) if packets else None


def commit(stage: Stage, held: Held, seq: int, next_: Next, *propose: ProposalSpec) -> None:
    spec = CommitSpec(
        fence=held.fence,
        expect_seq=seq,
        code_version="code-1",
        state=dict(STATE),
        next=next_,
        idempotency_key=str(uuid4()),
        document={},
        propose=propose,
    )
    proposals.commit(stage.caller, held.run_id, spec)


def waiting(view: RunView, workflow: str, kinds: list[MemberKind], mode: SetMode, on_deadline: OnDeadline) -> Next:
    """Wait for these kinds of things, for an hour at most."""
    members = {
        MemberKind.TIMER: MemberSpec(MemberKind.TIMER, at=view.now + timedelta(seconds=90)),
        MemberKind.EVENT: MemberSpec(MemberKind.EVENT, type="order.paid", subject=workflow),
        MemberKind.APPROVAL: MemberSpec(MemberKind.APPROVAL, effect="pay"),
        MemberKind.EFFECT: MemberSpec(MemberKind.EFFECT, effect="pay"),
    }
    deadline = view.now + timedelta(hours=1)
    return Next(NextKind.WAIT, "issue", WaitSpec(mode, tuple(members[kind] for kind in kinds), deadline, on_deadline))
