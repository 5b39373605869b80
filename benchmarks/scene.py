"""A tenant for measurements, and golden runs at each point from which a verb is measured; all made by services alone."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from uuid import UUID, uuid4

from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore

from approvals.domain.decisions import EntryPoint, Receipt
from approvals.models import ApprovalRequest
from approvals.services.decisions import decide
from benchmarks.loader import WORD
from ledger.domain.commits import Next, NextKind
from ledger.domain.effects import ProposalSpec
from ledger.domain.identity import ALL, Emit, Scope, Verb
from ledger.domain.leases import Offer
from ledger.domain.runs import Fence
from ledger.domain.starts import StartSpec
from ledger.domain.targets import TargetSpec
from ledger.domain.waits import MemberKind, MemberSpec, SetMode, WaitSpec
from ledger.domain.workflows import VersionSpec
from ledger.engine import wakes
from ledger.models import RunHead, User, WorkflowType
from ledger.services import (
    administration,
    authority,
    checkpoints,
    identity,
    keys,
    leases,
    runs,
    targets,
    waits,
    workflows,
)

VERSION: Final = "1"
WORKFLOW: Final = "bench"
EVENT_TYPE: Final = "bench.paid"
PAYLOAD: Final = b'{"amount_minor":4200,"currency":"EUR","order":"17"}'
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["order", "amount_minor", "currency", "lines"],
    "properties": {
        "order": {"type": "string"},
        "amount_minor": {"type": "integer"},
        "currency": {"type": "string"},
        "lines": {"type": "array", "items": {"type": "object", "required": ["id", "amount"]}},
    },
}
TRANSITIONS: Final[dict[str, Any]] = {"step": {}, "issue": {"targets": ["payments", "notes"]}}
POLICY: Final = [
    {
        "tool": "payments.*",
        "verdict": "approve",
        "group": "approvers",
        "quorum": 1,
        "decide_by": 604_800,
        "use_by": 3_600,
    },
    {"tool": "*", "verdict": "allow"},
]


def document(size: int) -> dict[str, Any]:
    """A state of about so many bytes of JSON."""
    state: dict[str, Any] = {"order": WORD, "amount_minor": 4200, "currency": "EUR", "lines": []}
    length = 75
    for number in range(size):
        line = {"id": f"line-{number:04d}", "amount": number * 100, "note": "x" * 40}
        length += 83
        if length > size:
            break
        state["lines"].append(line)
    return state


@dataclass(frozen=True, slots=True)
class Seat:
    """What a client needs to act: an agent's key, and a signed-in person's session with its CSRF token."""

    tenant_id: UUID
    slug: str
    secret: str
    person_id: UUID
    session: str
    token: str

    @property
    def agent(self) -> dict[str, str]:
        """Headers of an agent's requests."""
        return {"Authorization": f"Bearer {self.secret}"}

    @property
    def person(self) -> dict[str, str]:
        """Headers of a person's requests."""
        return {"Cookie": f"resumeapp_session={self.session}; resumeapp_csrf={self.token}", "X-CSRFToken": self.token}


class Scene:
    """One tenant: an approver who may see and audit everything, an agent with a key, a workflow, two targets, a policy."""

    def __init__(self) -> None:
        tenant = identity.open_tenant(f"bench-{secrets.token_hex(4)}", "Benchmark")
        admin = administration.command_line(tenant.pk)
        owner = identity.add_person(admin, f"{secrets.token_hex(6)}@example.org", "Owner")
        person = identity.add_person(admin, f"{secrets.token_hex(6)}@example.org", "Approver")
        team = identity.add_team(admin, "approvers", "Approvers")
        identity.add_to_team(admin, team, person)
        agent_id = identity.add_agent(admin, "bench", owner)
        scopes = (Scope.WORKFLOWS_REGISTER, Scope.RUNS_START, Scope.RUNS_WORK, Scope.RUNS_READ, Scope.EVENTS_EMIT)
        key = identity.issue_key(admin, "bench", scopes, workflows=(ALL,), emits=(Emit(ALL, ALL),), agent_id=agent_id)
        for name in ("payments", "notes"):
            spec = TargetSpec(name, "http://127.0.0.1:9", True, key_retention=86_400, private=True)
            targets.register(admin, spec)
        authority.publish_policy(admin, POLICY)
        self.caller = keys.authenticate(f"Bearer {key.secret}")
        workflows.register(self.caller, WORKFLOW, VERSION, VersionSpec(SCHEMA, "step", TRANSITIONS, own_events=True))
        workflow = WorkflowType.objects.of(tenant).get(name=WORKFLOW)
        for verb in (Verb.SEE, Verb.SEE_PAYLOADS, Verb.APPROVE, Verb.OPERATE, Verb.AUDIT):
            identity.grant_permission(admin, person, verb, workflow)
        for verb in (Verb.SEE, Verb.AUDIT):
            identity.grant_permission(admin, person, verb, tenant)
        self.seat = Seat(tenant.pk, tenant.slug, key.secret, person.pk, _session(person), secrets.token_hex(16))

    # Golden runs --------------------------------------------------------------------------------

    def ready(self, size: int) -> UUID:
        """Started, and nobody's."""
        key = f"{uuid4().hex}-{WORD}"
        spec = StartSpec(WORKFLOW, VERSION, f"settle {WORD}", document(size), {"order": WORD}, "", key)
        return runs.start(self.caller, spec).run_id

    def running(self, size: int) -> UUID:
        """In a worker's hands."""
        run_id = self.ready(size)
        self._claim(run_id)
        return run_id

    def proposed(self, size: int) -> UUID:
        """In a worker's hands, cleared for a transition with targets, with an effect that the policy allows."""
        run_id = self.running(size)
        self._commit(run_id, size, NextKind.GO_ON, "issue", None, _proposal("notes.add", "notes"))
        if str(wakes.run(run_id)) != "resume":
            raise AssertionError("the golden run wasn't cleared")
        self._claim(run_id)
        return run_id

    def waiting(self, size: int) -> UUID:
        """Waits for an event whose subject is its word."""
        return self._waits(size, MemberSpec(MemberKind.EVENT, type=EVENT_TYPE, subject=WORD))

    def timed(self, size: int) -> UUID:
        """Waits for a timer in an hour."""
        return self._waits(size, MemberSpec(MemberKind.TIMER, at=timedelta(hours=1)))

    def waking(self, size: int) -> UUID:
        """Its timer is over: a wake is due."""
        run_id = self._waits(size, MemberSpec(MemberKind.TIMER, at=timedelta(0)))
        waits.expire_due(run_id)
        return run_id

    def asked(self, size: int) -> UUID:
        """Waits for the approval of a payment."""
        proposal = _proposal("payments.refund", "payments")
        return self._waits(size, MemberSpec(MemberKind.APPROVAL, effect="note"), proposal)

    def voted(self, size: int) -> UUID:
        """Its payment is approved: a wake is due."""
        run_id = self.asked(size)
        request = ApprovalRequest.objects.of(self.seat.tenant_id).get(run_id=run_id)
        digest, person = bytes(request.digest), User.objects.get(pk=self.seat.person_id)
        decide(person, request.pk, "approve", "", digest, request.revision, EntryPoint.API, Receipt(digest, "api/1"))
        return run_id

    def approved(self, size: int) -> UUID:
        """In a worker's hands, cleared for a transition with targets, with a payment that a person approved."""
        run_id = self.voted(size)
        if str(wakes.run(run_id)) != "resume":
            raise AssertionError("the golden run wasn't cleared")
        self._claim(run_id)
        return run_id

    def _waits(self, size: int, member: MemberSpec, *propose: ProposalSpec) -> UUID:
        run_id = self.running(size)
        wait = WaitSpec(SetMode.ANY, (member,), timedelta(days=7))
        self._commit(run_id, size, NextKind.WAIT, "issue" if propose else "step", wait, *propose)
        return run_id

    def _claim(self, run_id: UUID) -> None:
        offer = Offer(uuid4(), "bench", "bench", {WORKFLOW: (VERSION,)}, 1, 3600)
        if [packet.run.id for packet in leases.claim(self.caller, offer)] != [run_id]:
            raise AssertionError("another run was ready")

    def _commit(
        self, run_id: UUID, size: int, kind: NextKind, transition: str, wait: WaitSpec | None, *propose: ProposalSpec
    ) -> None:
        head = RunHead.objects.of(self.seat.tenant_id).get(run_id=run_id)
        spec = checkpoints.CommitSpec(
            Fence(head.fence_epoch, head.fence_count),
            head.checkpoint_seq,
            "bench",
            document(size),
            Next(kind, transition, wait),
            uuid4().hex,
            {"golden": True},
            propose,
        )
        checkpoints.commit_transition(self.caller, run_id, spec)


def _proposal(tool: str, target: str) -> ProposalSpec:
    return ProposalSpec("note", tool, target, "", PAYLOAD)


def _session(person: User) -> str:
    """A session as signing in makes one."""
    store = SessionStore()
    store[SESSION_KEY] = str(person.pk)
    store[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    store[HASH_SESSION_KEY] = person.get_session_auth_hash()
    store.save()
    return str(store.session_key)


GOLDEN: Final[dict[str, Callable[[Scene, int], UUID]]] = {
    name: getattr(Scene, name)
    for name in ("ready", "running", "proposed", "waiting", "timed", "waking", "asked", "voted", "approved")
}
