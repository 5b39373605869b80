"""A tenant for one line of trials: Alice approves, Dora owns the agent, the sandbox is the target."""

import secrets
from typing import Any
from uuid import UUID

from ledger.domain.identity import Emit, Scope, Verb
from ledger.domain.targets import TargetSpec
from ledger.models import WorkflowType
from ledger.services import administration, identity, keys, targets, workflows

PASSWORD = "correct horse battery staple"
SCOPES = (Scope.WORKFLOWS_REGISTER, Scope.RUNS_START, Scope.RUNS_WORK, Scope.RUNS_READ, Scope.EVENTS_EMIT)
LOOKUP: dict[str, Any] = {
    "by": "key",
    "path": "/refunds?key={key}",
    "list": "/refunds",
    "status": "/status",
    "answers": {"settled": "applied", "refused": "refused", "pending": "in_progress", "in_progress": "in_progress"},
    "compare": [["/order", "/order"], ["/amount_minor", "/amount_minor"], ["/currency", "/currency"]],
    "reference": "/id",
    "by_reference": "/refunds/{reference}",
}
OBSERVE = {"path": "/orders/{resource}", "version": "etag", "strip": "orders/"}
RULES: list[dict[str, Any]] = [
    {
        "tool": "payments.refund",
        "verdict": "approve",
        "group": "approvers",
        "quorum": 1,
        "decide_by": 3_600,
        "use_by": 3_600,
    },
    {"tool": "payments.goodwill", "verdict": "allow"},
]


def tenant(payments: str, call_limit: int) -> dict[str, Any]:
    """Make one; answers what a harness needs to act in it."""
    slug = f"c{secrets.token_hex(6)}"
    made = identity.open_tenant(slug, "Crash trials")
    admin = administration.command_line(made.pk)
    email = f"alice-{slug}@example.org"
    alice = identity.add_person(admin, email, "Alice", PASSWORD)
    dora = identity.add_person(admin, f"dora-{slug}@example.org", "Dora", PASSWORD)
    team = identity.add_team(admin, "approvers", "Refund approvers")
    identity.add_to_team(admin, team, alice)
    agent = identity.add_agent(admin, "refunds", dora)
    issued = identity.issue_key(admin, "refunds", SCOPES, workflows=["*"], emits=[Emit("*", "*")], agent_id=agent)
    register_target(made.pk, payments, call_limit, 0)
    _policy(admin)
    _workflow(admin, keys.authenticate(f"Bearer {issued.secret}"), team)
    return {"id": str(made.pk), "slug": slug, "key": issued.secret, "email": email, "password": PASSWORD}


def register_target(
    tenant_id: UUID,
    payments: str,
    call_limit: int,
    visibility_delay: int,
    name: str = "payments",
    key_retention: int = 86_400,
) -> None:
    """Say what the payment service guarantees: what it applied is found at the latest so many seconds after a call's answer is overdue."""
    spec = TargetSpec(
        name=name,
        base_url=payments,
        keyed=True,
        first_result_replayed=True,
        key_retention=key_retention,
        visibility_delay=visibility_delay,
        freshness=60,
        call_limit=call_limit,
        private=True,
        lookup=LOOKUP,
        observe=OBSERVE,
    )
    targets.register(administration.command_line(tenant_id), spec)


def _policy(admin: Any) -> None:
    from ledger.services import authority

    authority.publish_policy(admin, RULES)


def _workflow(admin: Any, agent: Any, team: Any) -> None:
    """Register both versions of both workflows: a clearance names the versions that are known when its wake decides."""
    from ledger.domain.workflows import VersionSpec
    from tests.crash.agents import FLOWS

    for name in ("refunds/1", "refunds/2", "goodwill/1", "goodwill/2-renamed"):
        flow = FLOWS[name]
        spec = flow.spec()
        workflows.register(
            agent,
            flow.type,
            flow.version,
            VersionSpec(spec["state_schema"], spec["initial"], spec["transitions"], tuple(spec["takes_over_from"])),
        )
        kind = WorkflowType.objects.of(agent.tenant_id).get(name=flow.type)
        for verb in (Verb.SEE, Verb.SEE_PAYLOADS, Verb.APPROVE):
            identity.grant_permission(admin, team, verb, kind)
