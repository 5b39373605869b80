"""The demonstration's small tenant: people, an agent with a key, targets at the sandbox, a policy, and a few runs.

Everything goes through the services that any deployment uses. A second call finds what the first one made; only the sandbox's address may differ.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from ledger.domain.errors import LedgerError
from ledger.domain.identity import ALL, Caller, Emit, Scope, Verb
from ledger.domain.runs import ENDED
from ledger.domain.starts import StartSpec
from ledger.domain.targets import TargetSpec
from ledger.models import Agent, Run, RunHead, Tenant, User
from ledger.services import administration, authority, identity, runs, targets

SLUG: Final = "harbour"
PEOPLE: Final = (
    ("ada", "Ada Approver", "approver"),
    ("omar", "Omar Operator", "operator"),
    ("iris", "Iris Auditor", "auditor"),
    ("zoe", "Zoe Admin", "admin"),
)
RIGHTS: Final = {
    "approver": (Verb.SEE, Verb.SEE_PAYLOADS, Verb.APPROVE),
    "operator": (Verb.SEE, Verb.SEE_PAYLOADS, Verb.OPERATE),
    "auditor": (Verb.SEE, Verb.SEE_PAYLOADS, Verb.AUDIT),
    "admin": (Verb.SEE, Verb.AUDIT, Verb.ADMINISTER),
}
SCOPES: Final = (Scope.WORKFLOWS_REGISTER, Scope.RUNS_START, Scope.RUNS_WORK, Scope.RUNS_READ, Scope.EVENTS_EMIT)
POLICY: Final = [
    {"tool": "payments.*", "verdict": "approve", "group": "refunds", "quorum": 1, "decide_by": 86_400, "use_by": 3_600},
    {"tool": "wires.*", "verdict": "allow"},
]
ORDERS: Final = (
    ("1001", "Imke Sand", 4_200, 4_200),
    ("1002", "Noor Haddad", 12_950, 12_950),
    ("1003", "Tomasz Zieliński", 8_700, 3_000),
    ("1004", "Wren Okafor", 56_000, 56_000),
)
INVOICES: Final = (
    ("2001", "Quayside Timber Ltd", 250_000, 250_000),
    ("2002", "Lantern Freight GmbH", 118_400, 118_400),
)


@dataclass(frozen=True, slots=True)
class SignIn:
    role: str
    email: str
    password: str


@dataclass(frozen=True, slots=True)
class Kept:
    """What the demonstration remembers beside the database, in a file that only its owner reads."""

    sign_ins: tuple[SignIn, ...]
    key: str


def seed(var: Path, payments_url: str) -> Kept:
    """Make the tenant, or find it, with its targets at `payments_url`. Its runs come with `start_runs`, once workers have registered.

    All of the tenant is there or nothing, and its passwords are written down before: whoever is killed here can start again.
    Raises LedgerError `invalid` where the tenant is there and its passwords aren't.
    """
    tenant = Tenant.objects.filter(slug=SLUG).first()
    path = var / "demonstration.json"
    if tenant is None:
        with transaction.atomic():
            tenant = identity.open_tenant(SLUG, "Harbour Shop")
            kept = _people(administration.command_line(tenant.pk), tenant)
            _write(path, kept)
    elif path.exists():
        kept = _read(path)
    else:
        raise LedgerError(
            "invalid",
            f"the demonstration is there, and its passwords in {path.name} aren't",
            f"Put the file back, or start over: remove {var}, and empty the database that DATABASE_URL names, if it names one.",
        )
    caller = administration.command_line(tenant.pk)
    for spec in _targets(payments_url):
        targets.register(caller, spec)
    return kept


def _people(caller: Caller, tenant: Tenant) -> Kept:
    sign_ins = []
    users: dict[str, User] = {}
    for login, name, role in PEOPLE:
        password = secrets.token_urlsafe(9)
        users[role] = identity.add_person(caller, f"{login}@harbour.example", name, password)
        for verb in RIGHTS[role]:
            identity.grant_permission(caller, users[role], verb, tenant)
        sign_ins.append(SignIn(role, f"{login}@harbour.example", password))
    team = identity.add_team(caller, "refunds", "Refund approvers")
    identity.add_to_team(caller, team, users["approver"])
    authority.publish_policy(caller, POLICY)
    agent_id = identity.add_agent(caller, "refund-agent", users["admin"])
    issued = identity.issue_key(
        caller,
        "demonstration workers",
        SCOPES,
        workflows=[ALL],
        emits=[Emit("*", "/demonstration/*")],
        agent_id=agent_id,
    )
    return Kept(tuple(sign_ins), issued.secret)


def _targets(payments_url: str) -> Iterator[TargetSpec]:
    yield TargetSpec(
        name="payments",
        base_url=payments_url,
        private=True,
        keyed=True,
        first_result_replayed=True,
        key_retention=86_400,
        call_limit=20,
        lookup={
            "by": "key",
            "path": "/refunds?key={key}",
            "list": "/refunds",
            "status": "/status",
            "answers": {
                "settled": "applied",
                "pending": "in_progress",
                "in_progress": "in_progress",
                "refused": "refused",
            },
            "compare": [["/amount_minor", "/amount_minor"], ["/currency", "/currency"]],
            "reference": "/id",
        },
        observe={"path": "/orders/{resource}", "version": "etag", "strip": "orders/"},
    )
    yield TargetSpec(name="wires", base_url=payments_url, private=True, keyed=False, call_limit=10)


def start_runs() -> list[UUID]:
    """Start the demonstration's runs; a repeat finds them under their keys."""
    tenant = Tenant.objects.get(slug=SLUG)
    agent = Agent.objects.of(tenant).get(name="refund-agent")
    caller = Caller(tenant.pk, f"agent:{agent.pk}", frozenset(SCOPES), agent_id=agent.pk)
    started = []
    for order, customer, _, refund in ORDERS:
        task = f"Refund order {order} for {customer}"
        started.append(_start(caller, "refunds", order, task, refund, customer))
    for order, customer, amount, _ in INVOICES:
        started.append(_start(caller, "wires", order, f"Pay invoice {order} of {customer}", amount, customer))
    return started


@dataclass(frozen=True, slots=True)
class Waiting:
    """How many of the demonstration's own runs haven't come to their end: there is something to decide or to find out."""

    refunds: int
    wires: int


def waiting() -> Waiting:
    """What is left to try of what `start_runs` started."""
    tenant = Tenant.objects.get(slug=SLUG)
    live = (
        RunHead.objects.of(tenant).exclude(status__in=ENDED).filter(run__idempotency_key__startswith="demonstration/")
    )
    return Waiting(*(live.filter(workflow__name=name).count() for name in ("refunds", "wires")))


def _start(caller: Caller, workflow: str, order: str, task: str, amount_minor: int, customer: str) -> UUID:
    state: dict[str, Any] = {"order": order, "amount_minor": amount_minor, "currency": "EUR", "receipt": None}
    key = f"demonstration/{workflow}/{order}"
    known = Run.objects.of(caller.tenant_id).filter(idempotency_key=key).first()
    if known is not None:
        return UUID(str(known.pk))
    text = f"{customer} wrote that the parcel never arrived; the carrier confirms the loss."
    spec = StartSpec(workflow, "1", task, state, {"order": order, "customer": customer}, text, key)
    return runs.start(caller, spec).run_id


def _read(path: Path) -> Kept:
    document = json.loads(path.read_text())
    return Kept(tuple(SignIn(**one) for one in document["sign_ins"]), document["key"])


def _write(path: Path, kept: Kept) -> None:
    document = {
        "sign_ins": [{"role": s.role, "email": s.email, "password": s.password} for s in kept.sign_ins],
        "key": kept.key,
    }
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(document, file, indent=1)
