"""Requests for approval as the product itself opens them: a run that waits, with its proposal and what was seen of the target."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.test import Client
from django.urls import reverse

from approvals.models import ApprovalRequest
from ledger.domain import canonical
from ledger.domain.commits import Next, NextKind
from ledger.domain.effects import ProposalSpec, SeenVersion
from ledger.domain.identity import Verb
from ledger.domain.waits import MemberKind, MemberSpec, SetMode, WaitSpec
from ledger.models import User
from ledger.services import checkpoints, facts, identity
from ledger.services.ids import new_body
from tests.documents import REQUEST, STATE
from tests.world import World

HIDDEN = re.compile(r'name="(revision|digest|receipt)"(?: id="receipt")? value="([^"]*)"')


@dataclass(frozen=True)
class Asking:
    """What to ask for: the tool, its arguments, and the order as the target showed it (None: nobody looked)."""

    tool: str = "payments.refund"
    arguments: bytes = REQUEST
    order: Mapping[str, Any] | None = None
    hours: float = 20
    state: Mapping[str, Any] | None = None


def ask(world: World, asking: Asking | None = None, **changes: Any) -> ApprovalRequest:
    """Open a request by committing a wait for an approval."""
    wanted = replace(asking or Asking(), **changes)
    packet = world.claimed_run()
    now = facts.read().now
    deadline = now + timedelta(hours=wanted.hours)
    wait = WaitSpec(SetMode.ALL, (MemberSpec(MemberKind.APPROVAL, effect="pay"),), deadline)
    proposal = ProposalSpec("pay", wanted.tool, "payments", "order/17", wanted.arguments)
    seen = {}
    if wanted.order is not None:
        target_id = world.target_ids["payments"]
        body = new_body(canonical.canonical(dict(wanted.order)), now)
        seen[("payments", "order/17")] = SeenVersion(target_id, "order/17", "v1", now, "test", body)
    spec = checkpoints.CommitSpec(
        fence=packet.fence,
        expect_seq=packet.checkpoint["seq"],
        code_version="code-1",
        state=dict(wanted.state or STATE),
        next=Next(NextKind.WAIT, "issue", wait),
        idempotency_key=str(packet.run.id),
        document={"run": str(packet.run.id)},
        propose=(proposal,),
    )
    checkpoints.commit_transition(world.caller, packet.run.id, spec, seen)
    request: ApprovalRequest = ApprovalRequest.objects.of(world.tenant).get(run_id=packet.run.id)
    assert request.state == "pending"
    return request


def client_of(person: User) -> Client:
    """A browser's requests, signed in as this person."""
    client = Client()
    client.force_login(person)
    return client


def address(world: World, request: ApprovalRequest, name: str = "approval") -> str:
    return reverse(name, args=[world.tenant.slug, request.pk])


def form_of(page: str) -> dict[str, str]:
    """What the card's form would send beside decision and reason."""
    found = dict(HIDDEN.findall(page))
    assert set(found) == {"revision", "digest", "receipt"}
    return found


def receipt_of(page: str) -> dict[str, str]:
    """What a form of a call's page says that was read on it; empty where the page has no form."""
    return {name: value for name, value in HIDDEN.findall(page) if name == "receipt"}


def decide(
    client: Client, world: World, request: ApprovalRequest, decision: str, reason: str = "", *, htmx: bool = False
) -> Any:
    """Open the card and send its form."""
    form = form_of(client.get(address(world, request)).content.decode())
    headers = {"HX-Request": "true"} if htmx else {}
    data = {**form, "decision": decision, "reason": reason}
    return client.post(address(world, request, "approval_decide"), data, headers=headers)


def votes(request: ApprovalRequest) -> list[tuple[UUID, str]]:
    return list(request.votes.of(request.tenant_id).values_list("voter_id", "choice"))


def person_with(world: World, *verbs: Verb) -> User:
    """A member with these rights on the workflow, in no team."""
    person = world.person("eve")
    for verb in verbs:
        identity.grant_permission(world.admin, person, verb, world.workflow)
    return person
