"""Register workflow versions: immutable, on the tenant's stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ledger.domain import workflows as rules
from ledger.domain.change import Change, Kind, Stream
from ledger.domain.drafts import Draft
from ledger.domain.errors import LedgerError
from ledger.domain.identity import Caller, Scope
from ledger.services import facts, schemas, wakes, writer
from ledger.services.contracts import writes
from ledger.services.facts import Facts, Part
from ledger.services.ids import minter


@dataclass(frozen=True, slots=True)
class VersionAnswer:
    workflow: str
    version: str
    digest: bytes
    created: bool


@writes(
    moves=(
        "Inserts a workflow version, and its type with the first, on the tenant's stream; then what `wakes.reconsider` moves of runs that were "
        "cleared meanwhile."
    ),
    twice="The same content is answered as before, without an entry; other content is refused: `version-exists`.",
    dies="A run that was cleared while the version was written waits for its clearance's time, an hour at most.",
)
def register(caller: Caller, type_name: str, version: str, spec: rules.VersionSpec) -> VersionAnswer:
    """Register a version; the same content again answers as before.

    Raises LedgerError `invalid`, `unknown-field`, `scope-missing`, `workflow-not-allowed`, or `version-exists` when the version has other content.
    """
    caller.needs(Scope.WORKFLOWS_REGISTER)
    caller.needs_workflow(type_name)
    rules.check(type_name, version, spec)
    schemas.check_schema(spec.state_schema)
    digest = spec.digest()

    def rule(read: Facts) -> tuple[Change | None, VersionAnswer]:
        found = read.row("version")
        if found is not None:
            if found["digest"] != digest:
                raise LedgerError(
                    "version-exists",
                    f"{type_name} {version} is registered with other content",
                    "Versions are immutable: register this under a new version.",
                    registered=found["digest"].hex(),
                )
            return None, VersionAnswer(type_name, version, digest, created=False)
        return _change(caller, type_name, version, spec, read), VersionAnswer(type_name, version, digest, created=True)

    answer, written = writer.settle(lambda: _read(caller, type_name, version), rule)
    if written is not None:
        _look_afterwards(caller, type_name, version)
    return answer


def _look_afterwards(caller: Caller, type_name: str, version: str) -> None:
    """Runs that were cleared after the version's time and before anybody could see it: the sweep goes by that time, and would pass them over.

    A run that is cleared after the version was committed is cleared with it: the tenant's sequence has moved on.
    """
    row = _read(caller, type_name, version).row("version")
    if row is not None:
        for run_id in wakes.overlooked(row["workflow_id"], version, row["created_at"]):
            wakes.reconsider(run_id)


def _read(caller: Caller, type_name: str, version: str) -> Facts:
    tenant = caller.tenant_id
    return facts.read(
        tenant=Part("tenant_head", "t.tenant_id = %s", (tenant,)),
        workflow=Part("workflow_type", "t.tenant_id = %s AND t.name = %s", (tenant, type_name)),
        version=Part(
            "workflow_version",
            "t.workflow_id = (SELECT w.id FROM ledger_workflow_type w WHERE w.tenant_id = %s AND w.name = %s) AND t.version = %s",
            (tenant, type_name, version),
        ),
    )


def _change(caller: Caller, type_name: str, version: str, spec: rules.VersionSpec, read: Facts) -> Change:
    tenant = read.row("tenant")
    if tenant is None:
        raise LedgerError("not-found", "there is no such tenant", "Check the key.")
    draft = Draft(
        stream=Stream(Kind.TENANT, caller.tenant_id, caller.tenant_id, tenant["salt"]),
        expect_seq=tenant["head_seq"],
        at=read.now,
        actor=caller.actor,
        verb="workflow.register",
        mint=minter(read.now),
    )
    workflow: dict[str, Any] | None = read.row("workflow")
    workflow_id = workflow["id"] if workflow else draft.mint()
    if workflow is None:
        draft.insert("workflow_type", id=workflow_id, name=type_name, created_at=read.now)
    draft.insert(
        "workflow_version",
        id=draft.mint(),
        workflow_id=workflow_id,
        version=version,
        state_schema=spec.state_schema,
        initial=spec.initial,
        transitions=spec.transitions,
        takes_over_from=sorted(spec.takes_over_from),
        dependencies=dict(spec.dependencies or {}),
        own_events=spec.own_events,
        digest=spec.digest(),
        created_at=read.now,
    )
    return draft.change()
