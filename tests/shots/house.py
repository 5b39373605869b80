"""The tenant of the pictures: people with names, an agent, a workflow in three versions, targets at the shop, a policy."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from django.test import Client
from django.urls import reverse

from approvals.models import ApprovalRequest
from ledger.domain.commits import Next, NextKind
from ledger.domain.effects import ProposalSpec
from ledger.domain.identity import Caller, Verb
from ledger.domain.leases import Offer
from ledger.domain.starts import StartSpec
from ledger.domain.targets import TargetSpec
from ledger.domain.waits import MemberKind, MemberSpec, OnDeadline, SetMode, WaitSpec
from ledger.domain.workflows import VersionSpec
from ledger.engine import proposals, wakes
from ledger.models import Effect, Grant, Handoff, RunHead, Tenant, User, WorkflowType
from ledger.services import administration, authority, identity, keys, leases, runs, targets, workflows
from ledger.services.packets import Packet
from tests.ui.asking import HIDDEN
from tests.world import ANYTHING, EVERYTHING

SCHEMA = {"type": "object", "required": ["order"], "properties": {"order": {"type": "string"}}}
TRANSITIONS = {
    "assess": {"targets": [], "tools": [], "on_conflict": ["ask_again"]},
    "weigh": {"targets": [], "tools": []},
    "issue": {"targets": ["payments", "wires", "notes"], "tools": [], "on_conflict": ["ask_again"]},
    "tell": {"targets": [], "tools": []},
}
POLICY = (
    {
        "tool": "payments.*",
        "verdict": "approve",
        "group": "refunds-leads",
        "quorum": 1,
        "decide_by": 86_400,
        "use_by": 7_200,
    },
    {
        "tool": "big.*",
        "verdict": "approve",
        "group": "refunds-leads",
        "quorum": 2,
        "decide_by": 172_800,
        "use_by": 3_600,
    },
    {
        "tool": "board.*",
        "verdict": "approve",
        "group": "board",
        "quorum": 2,
        "decide_by": 28_800,
        "use_by": 3_600,
    },
    {"tool": "notes.*", "verdict": "allow"},
    {"tool": "wires.*", "verdict": "allow"},
)
LOOKUP = {
    "by": "key",
    "path": "/refunds?key={key}",
    "list": "/refunds",
    "status": "/status",
    "answers": {"settled": "applied", "pending": "in_progress", "refused": "refused"},
    "compare": [["/amount_minor", "/amount_minor"]],
    "reference": "/id",
}


class House:
    """One tenant, ready for runs."""

    def __init__(self, slug: str, name: str, shop: str, workflow: str = "refunds", agent: str = "refund-agent") -> None:
        self.slug, self.shop, self.flow = slug, shop, workflow
        self.tenant: Tenant = identity.open_tenant(slug, name)
        self.admin = administration.command_line(self.tenant.pk)
        self.mara, self.ivo = self._person("Mara Lindqvist"), self._person("Ivo Brandt")
        self.noor, self.dora = self._person("Noor Haddad"), self._person("Dora Engel")
        self.iris = self._person("Iris Lund")
        team = identity.add_team(self.admin, "refunds-leads", "Refund leads")
        for person in (self.mara, self.ivo):
            identity.add_to_team(self.admin, team, person)
        identity.add_team(self.admin, "board", "Board")
        agent_id = identity.add_agent(self.admin, agent, self.dora)
        issued = identity.issue_key(self.admin, "refund workers", EVERYTHING, agent_id=agent_id, **ANYTHING)
        self.caller: Caller = keys.authenticate(f"Bearer {issued.secret}")
        for spec in self._targets():
            targets.register(self.admin, spec)
        authority.publish_policy(self.admin, [dict(rule) for rule in POLICY])
        for version, after in (("6", ()), ("7", ("6",))):
            workflows.register(self.caller, workflow, version, VersionSpec(SCHEMA, "assess", TRANSITIONS, after))
        self.workflow: WorkflowType = WorkflowType.objects.of(self.tenant).get(name=workflow)
        for verb in (Verb.SEE, Verb.SEE_PAYLOADS, Verb.APPROVE):
            identity.grant_permission(self.admin, team, verb, self.workflow)
        for verb in (Verb.SEE, Verb.SEE_PAYLOADS, Verb.OPERATE):
            identity.grant_permission(self.admin, self.noor, verb, self.workflow)
        identity.grant_permission(self.admin, self.mara, Verb.OPERATE, self.workflow)
        for verb in (Verb.SEE, Verb.AUDIT, Verb.ADMINISTER):
            identity.grant_permission(self.admin, self.dora, verb, self.tenant)
        for verb in (Verb.SEE, Verb.SEE_PAYLOADS, Verb.AUDIT):
            identity.grant_permission(self.admin, self.iris, verb, self.tenant)

    def _person(self, name: str) -> User:
        return identity.add_person(self.admin, f"{name.split()[0].lower()}@{self.slug}.example", name)

    def _targets(self) -> tuple[TargetSpec, ...]:
        observe = {"path": "/orders/{resource}", "version": "etag", "strip": "order/"}
        asked = {"keyed": True, "first_result_replayed": True, "key_retention": 86_400, "lookup": LOOKUP}
        more = {"base_url": self.shop, "private": True, "call_limit": 20}
        return (
            TargetSpec(name="payments", observe=observe, **asked, **more),
            TargetSpec(name="notes", **asked, **more),
            TargetSpec(name="wires", keyed=False, **more),
        )

    # Agents -------------------------------------------------------------------------------------

    def start(self, task: str, state: Mapping[str, Any], text: str = "", **attributes: Any) -> UUID:
        """A started run. The first attribute is the order's number."""
        attributes = {"order": state["order"], **attributes}
        spec = StartSpec(self.flow, "6", task, dict(state), attributes, text, str(uuid4()))
        return runs.start(self.caller, spec).run_id

    def claim(self, run_id: UUID, worker: str = "harbour-1", version: str = "6", seconds: int = 60) -> Packet:
        """The run in the hands of a worker; no other run may be ready."""
        code = {"6": "4f1c9a2e70b3", "7": "b82d51e6c904"}[version]
        accepted = ("6",) if version == "6" else ("7", "6")
        offer = Offer(uuid4(), worker, code, {self.flow: accepted}, 1, seconds)
        (packet,) = leases.claim(self.caller, offer)
        assert packet.run.id == run_id, "another run was ready"
        return packet

    def commit(
        self, packet: Packet, step: Next, state: Mapping[str, Any], *propose: ProposalSpec, code: str = "4f1c9a2e70b3"
    ) -> None:
        """Commit as the packet's holder; what the proposals name is observed at the shop."""
        from ledger.services.checkpoints import CommitSpec

        spec = CommitSpec(
            fence=packet.fence,
            expect_seq=self.head(packet.run.id).checkpoint_seq,
            code_version=code,
            state=dict(state),
            next=step,
            idempotency_key=str(uuid4()),
            document={"state": dict(state), "next": str(step.kind), "transition": step.transition},
            propose=propose,
        )
        proposals.commit(self.caller, packet.run.id, spec)

    def go_on(self, packet: Packet, transition: str, state: Mapping[str, Any], *propose: ProposalSpec) -> Packet:
        """Commit and go on; where the wake has to look first, a worker takes the run again after it."""
        self.commit(packet, Next(NextKind.GO_ON, transition), state, *propose)
        if self.head(packet.run.id).status == "running":
            return packet
        self.wake(packet.run.id)
        return self.claim(packet.run.id, "harbour-2", "7")

    def ask(
        self, task: str, state: Mapping[str, Any], hours: float = 20, tool: str = "payments.refund", **more: Any
    ) -> UUID:
        """A run that waits for leave to pay."""
        run_id = self.start(task, state, **more)
        packet = self.claim(run_id)
        self.propose(packet, state, hours, tool)
        return run_id

    def propose(
        self,
        packet: Packet,
        state: Mapping[str, Any],
        hours: float = 20,
        tool: str = "payments.refund",
        *more: ProposalSpec,
    ) -> None:
        """Commit the proposal of a payment, with what else is proposed, and wait for leave."""
        wait = WaitSpec(
            SetMode.ALL,
            (MemberSpec(MemberKind.APPROVAL, effect="pay"),),
            timedelta(hours=hours),
            OnDeadline.CANCEL,
        )
        wanted = {key: state[key] for key in ("amount_minor", "currency", "order", "reason") if key in state}
        request = json.dumps(wanted, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        pay = ProposalSpec("pay", tool, "payments", f"order/{state['order']}", request)
        self.commit(packet, Next(NextKind.WAIT, "issue", wait), state, *more, pay)

    def wake(self, run_id: UUID) -> str:
        return str(wakes.run(run_id))

    def head(self, run_id: UUID) -> RunHead:
        found: RunHead = RunHead.objects.of(self.tenant).get(pk=run_id)
        return found

    def effect(self, run_id: UUID, name: str = "pay") -> Effect:
        found: Effect = Effect.objects.of(self.tenant).filter(run_id=run_id, name=name).order_by("-proposed_at")[0]
        return found

    def request(self, run_id: UUID) -> ApprovalRequest:
        found: ApprovalRequest = ApprovalRequest.objects.of(self.tenant).filter(run_id=run_id).order_by("-opened_at")[0]
        return found

    def grant(self, run_id: UUID) -> UUID:
        found: Grant = Grant.objects.of(self.tenant).filter(run_id=run_id).order_by("-approved_at")[0]
        return found.pk

    def handoff(self, run_id: UUID) -> Handoff:
        found: Handoff = Handoff.objects.of(self.tenant).get(run_id=run_id)
        return found

    # People -------------------------------------------------------------------------------------

    def decide(self, run_id: UUID, person: User, decision: str, reason: str = "") -> None:
        """Open the card as this person, and send its form."""
        client = Client()
        client.force_login(person)
        request = self.request(run_id)
        page = client.get(reverse("approval", args=[self.slug, request.pk])).content.decode()
        form = {**dict(HIDDEN.findall(page)), "decision": decision, "reason": reason}
        answer = client.post(reverse("approval_decide", args=[self.slug, request.pk]), form)
        assert answer.status_code == 302, answer.content.decode()[:2000]

    def person(self, user: User) -> Caller:
        return Caller(self.tenant.pk, f"person:{user.pk}", person_id=user.pk)
