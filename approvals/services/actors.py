"""Who did it: names for the actors that entries and reports hold as `agent:<id>`, `person:<id>` and `system:<what>`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from uuid import UUID

from approvals.templatetags.console import visible_text as shown
from ledger.models import Agent, User, Worker

SYSTEM = {
    "sweep": "resumeapp, sweep",
    "wake": "resumeapp, wake check",
    "reconciler": "resumeapp, reconciler",
    "timer": "resumeapp, timer",
    "admin": "command line",
    "claim": "resumeapp, claim",
    "events": "resumeapp, events",
    "policy": "resumeapp, policy",
    "card": "resumeapp, for an open request",
}


def names(tenant_id: UUID, actors: Iterable[str]) -> Callable[[str], str]:
    """A function from actor to name, for these actors: one query, however many there are."""
    kinds: dict[str, set[UUID]] = {"agent": set(), "person": set()}
    for actor in actors:
        kind, _, row = actor.partition(":")
        if kind in kinds and (found := row_id(row)) is not None:
            kinds[kind].add(found)
    agents = Agent.objects.of(tenant_id).filter(pk__in=kinds["agent"]).values_list("pk", "name")
    people = User.objects.filter(pk__in=kinds["person"], memberships__tenant_id=tenant_id).values_list("pk", "name")
    known = (
        dict(agents.union(people)) if kinds["agent"] and kinds["person"] else dict(agents if kinds["agent"] else people)
    )

    def name(actor: str) -> str:
        kind, _, row = actor.partition(":")
        found = row_id(row)
        if kind == "agent":
            return f"agent {shown(known[found])}" if found in known else "an agent"
        if kind == "person":
            return shown(known[found]) if found in known else "a person"
        return SYSTEM.get(row, f"resumeapp, {shown(row)}") if kind == "system" else shown(actor)

    return name


def workers(tenant_id: UUID, documents: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Names of the worker processes that these entries gave leases to, by id as text: one query."""
    changes = [change for document in documents for change in document["changes"]]
    ids = {change["fields"].get("worker_id") for change in changes if change["object"].startswith("lease:")}
    rows = Worker.objects.of(tenant_id).filter(pk__in=[row for row in ids if row])
    return {str(pk): shown(name) for pk, name in rows.values_list("pk", "name")}


def row_id(text: object) -> UUID | None:
    """The id that a text of an entry is; None for anything else."""
    try:
        return UUID(str(text))
    except ValueError:
        return None
