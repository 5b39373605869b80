"""A tenant of its own for each test: Alice and Bob approve, Charlie operates, Dora administers, Mallory is somebody else's.

Rows are committed and stay; nothing is flushed; the record's triggers are on. Factories stack: a started run, a claimed one, a committed one.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from math import lcm
from typing import Any
from uuid import UUID, uuid4

from ledger.domain.commits import Next, NextKind
from ledger.domain.drafts import Draft
from ledger.domain.effects import ProposalSpec
from ledger.domain.identity import ALL, Caller, Emit, Scope, Verb
from ledger.domain.leases import Offer
from ledger.domain.runs import Fence
from ledger.domain.starts import StartSpec
from ledger.domain.waits import WaitSpec
from ledger.domain.workflows import VersionSpec
from ledger.models import Checkpoint, Effect, RunHead, Tenant, User, WorkflowType
from ledger.services import administration, checkpoints, identity, keys, leases, runs, workflows
from ledger.services.checkpoints import CommitSpec, Committed
from ledger.services.packets import Packet
from tests.documents import SCHEMA, STATE, TRANSITIONS, target_row

PASSWORD = "correct horse battery staple"
ANYTHING: dict[str, Any] = {"workflows": [ALL], "emits": [Emit("*", "*")]}
EVERYTHING = (Scope.WORKFLOWS_REGISTER, Scope.RUNS_START, Scope.RUNS_WORK, Scope.RUNS_READ, Scope.EVENTS_EMIT)
RULES: tuple[dict[str, Any], ...] = (
    {
        "tool": "payments.*",
        "verdict": "approve",
        "group": "approvers",
        "quorum": 1,
        "decide_by": 86_400,
        "use_by": 3_600,
    },
    {"tool": "notes.*", "verdict": "allow"},
    {"tool": "wires.*", "verdict": "allow"},
)


def first_served() -> UUID:
    """A new worker's id that begins with the run longest ready, however many are looked at."""
    every = lcm(*range(1, leases.LOOKED_AT + 1))
    return UUID(int=uuid4().int // every * every)


class World:
    """One tenant with its people, an agent with a key, the workflow `refund` in versions 1 and 2, targets and a policy."""

    def __init__(self, payments_url: str = "http://127.0.0.1:9") -> None:
        slug = f"t{secrets.token_hex(6)}"
        self.tenant: Tenant = identity.open_tenant(slug, f"Tenant {slug}")
        self.admin = administration.command_line(self.tenant.pk)
        self.alice = self.person("alice")
        self.bob = self.person("bob")
        self.charlie = self.person("charlie")
        self.dora = self.person("dora")
        self.approvers = identity.add_team(self.admin, "approvers", "Refund approvers")
        for user in (self.alice, self.bob):
            identity.add_to_team(self.admin, self.approvers, user)
        self.agent_id = identity.add_agent(self.admin, "refunds", self.dora)
        issued = identity.issue_key(self.admin, "refunds", EVERYTHING, agent_id=self.agent_id, **ANYTHING)
        self.secret = issued.secret
        self.caller: Caller = keys.authenticate(f"Bearer {issued.secret}")
        self.target_ids = self._targets(payments_url)
        self.policy(RULES)
        for version, takes_over_from in (("1", ()), ("2", ("1",))):
            # One agent works and emits in most tests; what an agent may not tell its own runs has tests of its own.
            spec = VersionSpec(SCHEMA, "assess", TRANSITIONS, takes_over_from, own_events=True)
            workflows.register(self.caller, "refund", version, spec)
        self.workflow: WorkflowType = WorkflowType.objects.of(self.tenant).get(name="refund")
        self._rights()

    def person(self, name: str) -> User:
        email = f"{name}-{secrets.token_hex(6)}@example.org"
        return identity.add_person(self.admin, email, name.capitalize(), PASSWORD)

    def _rights(self) -> None:
        for verb in (Verb.SEE, Verb.SEE_PAYLOADS, Verb.APPROVE):
            identity.grant_permission(self.admin, self.approvers, verb, self.workflow)
        for verb in (Verb.SEE, Verb.SEE_PAYLOADS, Verb.OPERATE):
            identity.grant_permission(self.admin, self.charlie, verb, self.workflow)
        for verb in (Verb.SEE, Verb.AUDIT, Verb.ADMINISTER):
            identity.grant_permission(self.admin, self.dora, verb, self.tenant)

    def _targets(self, payments_url: str) -> dict[str, UUID]:
        ids = {}
        with administration.act(self.admin, "target.register") as draft:
            for name, lookup in (("payments", True), ("wires", False), ("notes", True)):
                ids[name] = draft.mint()
                draft.insert("target", **target_row(ids[name], name, payments_url, draft.at, lookup))
        return ids

    def policy(self, rules: tuple[Mapping[str, Any], ...]) -> None:
        """Publish a policy as the next version."""
        from ledger.models import PolicyVersion

        with administration.act(self.admin, "policy.publish") as draft:
            number = PolicyVersion.objects.of(self.tenant).count() + 1
            self._insert_policy(draft, number, rules)

    def _insert_policy(self, draft: Draft, number: int, rules: tuple[Mapping[str, Any], ...]) -> None:
        draft.insert(
            "policy_version",
            id=draft.mint(),
            number=number,
            rules=[dict(rule) for rule in rules],
            digest=secrets.token_bytes(32),
            author=draft.actor,
            created_at=draft.at,
        )

    # Runs ---------------------------------------------------------------------------------------

    def start_run(self, state: Mapping[str, Any] = STATE, version: str = "1", key: str | None = None) -> UUID:
        """A started run; its first transition names no target, so it is ready."""
        spec = StartSpec("refund", version, "refund order 17", dict(state), {"order": "17"}, "", key or str(uuid4()))
        run_id = runs.start(self.caller, spec).run_id
        assert self.head(run_id).status == "ready"
        return run_id

    def offer(self, *versions: str, worker: UUID | None = None, seconds: int = 60, limit: int = 1) -> Offer:
        return Offer(worker or uuid4(), "worker", "digest", {"refund": versions or ("1",)}, limit, seconds)

    def claim(self, *versions: str, worker: UUID | None = None, seconds: int = 60) -> Packet:
        """The packet of the run that was longest ready, unless the worker named begins further down."""
        packets = leases.claim(self.caller, self.offer(*versions, worker=worker or first_served(), seconds=seconds))
        assert len(packets) == 1
        return packets[0]

    def claimed_run(self, *versions: str, seconds: int = 60) -> Packet:
        """A new run in the hands of a worker."""
        run_id = self.start_run()
        packet = self.claim(*versions, seconds=seconds)
        assert packet.run.id == run_id and packet.head.status == "running"
        return packet

    def commit(
        self,
        packet: Packet,
        next_: Next,
        *,
        propose: tuple[ProposalSpec, ...] = (),
        state: Mapping[str, Any] = STATE,
        key: str | None = None,
        seq: int | None = None,
        fence: Fence | None = None,
    ) -> Committed:
        """Commit as the packet's holder."""
        spec = CommitSpec(
            fence=fence or packet.fence,
            expect_seq=packet.checkpoint["seq"] if seq is None else seq,
            code_version="code-1",
            state=dict(state),
            next=next_,
            idempotency_key=key or str(uuid4()),
            document={"state": dict(state), "next": str(next_.kind), "transition": next_.transition},
            propose=propose,
        )
        return checkpoints.commit_transition(self.caller, packet.run.id, spec)[0]

    def waiting_run(self, wait: WaitSpec, propose: tuple[ProposalSpec, ...] = ()) -> UUID:
        """A run that has committed `assess` and waits."""
        packet = self.claimed_run()
        committed = self.commit(packet, Next(NextKind.WAIT, "issue", wait), propose=propose)
        assert committed.fence is None
        return packet.run.id

    def head(self, run_id: UUID) -> RunHead:
        head: RunHead = RunHead.objects.of(self.tenant).get(pk=run_id)
        return head

    def effect(self, run_id: UUID, name: str = "pay") -> Effect:
        effect: Effect = Effect.objects.of(self.tenant).get(run_id=run_id, name=name)
        return effect

    def checkpoints(self, run_id: UUID) -> list[Checkpoint]:
        return list(Checkpoint.objects.of(self.tenant).filter(run_id=run_id).order_by("seq"))
