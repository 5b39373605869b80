"""A tenant of its own for each test of people: committed rows, nothing is flushed, triggers stay on."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from uuid import UUID

import pytest

from ledger.domain.identity import Caller, Verb
from ledger.models import TeamProfile, Tenant, User, WorkflowType
from ledger.services import administration, identity


@dataclass(frozen=True)
class People:
    """Alice and Bob approve refunds, Dora administers; Mallory belongs to another tenant."""

    tenant: Tenant
    admin: Caller
    workflow: WorkflowType
    team: TeamProfile
    alice: User
    bob: User
    dora: User
    mallory: User
    agent_id: UUID


def add_workflow(caller: Caller, name: str) -> WorkflowType:
    """A workflow type as a row of the tenant's stream."""
    with administration.act(caller, "workflow.open") as draft:
        workflow_id = draft.mint()
        draft.insert("workflow_type", id=workflow_id, name=name, created_at=draft.at)
    found: WorkflowType = WorkflowType.objects.of(caller.tenant_id).get(pk=workflow_id)
    return found


@pytest.fixture
def people(committed: None) -> People:
    word = secrets.token_hex(4)
    tenant = identity.open_tenant(f"acme-{word}", "Acme")
    other = identity.open_tenant(f"rival-{word}", "Rival")
    admin = administration.command_line(tenant.pk)
    person = {
        name: identity.add_person(admin, f"{name}-{word}@example.com", name.title())
        for name in ("alice", "bob", "dora")
    }
    mallory = identity.add_person(administration.command_line(other.pk), f"mallory-{word}@example.com", "Mallory")
    workflow = add_workflow(admin, "refund")
    team = identity.add_team(admin, "refunds-approvers", "Refunds approvers")
    for name in ("alice", "bob"):
        identity.add_to_team(admin, team, person[name])
    for verb in (Verb.SEE, Verb.APPROVE):
        identity.grant_permission(admin, team, verb, workflow)
    identity.grant_permission(admin, person["dora"], Verb.ADMINISTER, tenant)
    agent_id = identity.add_agent(admin, "refunder", person["dora"])
    return People(tenant, admin, workflow, team, mallory=mallory, agent_id=agent_id, **person)
