"""Start runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from ledger.domain import starts
from ledger.domain.canonical import Body, canonical, commit
from ledger.domain.change import Change, Kind, Stream
from ledger.domain.checkpoints import VersionRow, able_versions, current_version
from ledger.domain.drafts import Draft
from ledger.domain.errors import LedgerError
from ledger.domain.identity import Caller, Scope
from ledger.domain.starts import StartSpec
from ledger.services import facts, permissions, schemas, writer
from ledger.services.contracts import writes
from ledger.services.facts import Facts, Part
from ledger.services.ids import minter, new_body, new_id, new_salt


@dataclass(frozen=True, slots=True)
class Started:
    """`run` and `head` are rows by column, as the call left them or as a repeat found them; `workflow` is a name."""

    run_id: UUID
    created: bool
    workflow: str
    run: Mapping[str, Any]
    head: Mapping[str, Any]


@writes(
    moves="Inserts a run with its first checkpoint and transition instance: ready, or waking where its first transition names a target.",
    twice="The same key and content is answered from the row; other content is refused: `key-reused`.",
    dies="The run is there; the caller sends the call again with its key.",
)
def start(caller: Caller, spec: StartSpec) -> Started:
    """Start a run; the same key and content again answers the same run.

    Raises LedgerError `scope-missing`, `workflow-not-allowed`, `forbidden` (a person on behalf of another), `not-found` (workflow or version),
    `schema-mismatch`, `key-reused`, `invalid` (on behalf of somebody who is no member).
    """
    caller.needs(Scope.RUNS_START)
    caller.needs_workflow(spec.workflow)
    spec = starts.on_own_behalf(spec, caller.person_id)

    def rule(read: Facts) -> tuple[Change | None, Started]:
        if known := _replay(caller, read, spec):
            return None, known
        _check_person(caller, spec)
        versions = read.all("versions", VersionRow)
        version = _chosen(versions, spec)
        schemas.check_state(version.digest, version.state_schema, spec.state)
        draft = _draft(caller, read)
        able = able_versions(versions, version.version, version.initial)
        starts.start(draft, spec, version, able, _beginning(caller, read, draft, spec))
        change = draft.change()
        run = next(insert.row for insert in change.inserts if insert.table == "run")
        return change, Started(draft.stream.id, True, spec.workflow, run, change.head)

    answer, _ = writer.settle(lambda: _read(caller, spec), rule, again=frozenset({"run_key_unique"}))
    return answer


def _read(caller: Caller, spec: StartSpec) -> Facts:
    tenant = caller.tenant_id
    by_key = "(SELECT r.{} FROM ledger_run r WHERE r.tenant_id = %s AND r.idempotency_key = %s)"
    return facts.read(
        tenant=Part("tenant_head", "t.tenant_id = %s", (tenant,)),
        run=Part("run", "t.tenant_id = %s AND t.idempotency_key = %s", (tenant, spec.idempotency_key)),
        head=Part("run_head", f"t.run_id = {by_key.format('id')}", (tenant, spec.idempotency_key)),
        workflow_of_run=Part("workflow_type", f"t.id = {by_key.format('workflow_id')}", (tenant, spec.idempotency_key)),
        about=Part("body", f"t.id = {by_key.format('about_id')}", (tenant, spec.idempotency_key)),
        workflow=Part("workflow_type", "t.tenant_id = %s AND t.name = %s", (tenant, spec.workflow)),
        versions=Part(
            "workflow_version",
            "t.workflow_id = (SELECT w.id FROM ledger_workflow_type w WHERE w.tenant_id = %s AND w.name = %s)",
            (tenant, spec.workflow),
            many=True,
            order="t.created_at DESC, t.version DESC",
        ),
    )


def _replay(caller: Caller, read: Facts, spec: StartSpec) -> Started | None:
    run, about, head, workflow = (read.row(part) for part in ("run", "about", "head", "workflow_of_run"))
    if run is None or about is None or head is None or workflow is None:
        return None
    if about["erased_at"] is None and commit(about["salt"], _about(spec)) != about["commitment"]:
        raise LedgerError(
            "key-reused",
            "this Idempotency-Key started a run with other content",
            "Send the first content again, or use a new key for a new run.",
            **({"run": str(run["id"])} if caller.reaches(workflow["name"]) else {}),
        )
    return Started(run["id"], False, workflow["name"], run, head)


def _check_person(caller: Caller, spec: StartSpec) -> None:
    """Nobody acts for a stranger. What is read here is guarded by the tenant's version."""
    person = spec.on_behalf_of_id
    if person is not None and not permissions.member(person, caller.tenant_id):
        raise LedgerError("invalid", "`on_behalf_of` is no active member here", "Name an active member of the tenant.")


def _about(spec: StartSpec) -> bytes:
    """All that the caller said, in one canonical document: what a repeat of the call is compared with."""
    return canonical(
        {
            "workflow": spec.workflow,
            "version": spec.version,
            "task": spec.task,
            "state": spec.state,
            "attributes": dict(spec.attributes),
            "text": spec.text,
            "on_behalf_of": str(spec.on_behalf_of_id) if spec.on_behalf_of_id else None,
        }
    )


def _chosen(versions: Sequence[VersionRow], spec: StartSpec) -> VersionRow:
    wanted = spec.version or current_version(versions)
    for version in versions:
        if version.version == wanted:
            return version
    raise LedgerError(
        "not-found",
        f"no version {spec.version or '(any)'} of the workflow {spec.workflow[:80]} is registered",
        "Register it first; a worker does so when it starts.",
    )


def _draft(caller: Caller, read: Facts) -> Draft:
    tenant = read.row("tenant")
    if tenant is None:
        raise LedgerError("not-found", "there is no such tenant", "Check the key.")
    return Draft(
        stream=Stream(Kind.RUN, new_id(read.now), caller.tenant_id, new_salt()),
        expect_seq=0,
        at=read.now,
        actor=caller.actor,
        verb="run.start",
        mint=minter(read.now),
        tenant_seq=tenant["head_seq"],
    )


def _beginning(caller: Caller, read: Facts, draft: Draft, spec: StartSpec) -> starts.Beginning:
    workflow, tenant = read.row("workflow"), read.row("tenant")
    if workflow is None or tenant is None:
        raise ValueError("a version was chosen, so its workflow and tenant exist")
    return starts.Beginning(
        run_id=draft.stream.id,
        workflow_id=workflow["id"],
        agent_id=caller.agent_id,
        epoch=tenant["epoch"],
        about=new_body(_about(spec), read.now),
        state=_state(spec, read),
    )


def _state(spec: StartSpec, read: Facts) -> Body:
    return new_body(canonical(spec.state), read.now)
