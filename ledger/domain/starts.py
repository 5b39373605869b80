"""How a run begins: its first checkpoint, its first transition, and whether it may be claimed at once. No clock, no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from ledger.domain.canonical import Body
from ledger.domain.checkpoints import CheckpointFields, CheckpointKind, VersionRow, insert_checkpoint
from ledger.domain.drafts import Draft
from ledger.domain.errors import LedgerError
from ledger.domain.runs import ClearanceState, Cleared, Fence, Intent, Status, clear, open_instance
from ledger.domain.wakes import WakeState


@dataclass(frozen=True, slots=True)
class StartSpec:
    """What a caller asks for: `state` is parsed and fits the version's schema; `task` and `text` are for people's search."""

    workflow: str
    version: str
    task: str
    state: Any
    attributes: Mapping[str, Any]
    text: str
    idempotency_key: str
    on_behalf_of_id: UUID | None = None
    trace: UUID | None = None


@dataclass(frozen=True, slots=True)
class Beginning:
    """Ids and bodies for a new run."""

    run_id: UUID
    workflow_id: UUID
    agent_id: UUID | None
    epoch: int
    about: Body
    state: Body


NOTHING_BEFORE = bytes(32)


def on_own_behalf(spec: StartSpec, person_id: UUID | None) -> StartSpec:
    """What a person's key starts is started on that person's behalf, so that they never decide what it asks. Raises LedgerError `forbidden`."""
    if person_id is None:
        return spec
    if spec.on_behalf_of_id not in (None, person_id):
        raise LedgerError(
            "forbidden",
            "a person starts runs on their own behalf only",
            "Leave `on_behalf_of` out, or use an agent's key.",
        )
    return replace(spec, on_behalf_of_id=person_id)


def start(draft: Draft, spec: StartSpec, version: VersionRow, versions: tuple[str, ...], new: Beginning) -> Status:
    """Write a run with its first checkpoint. It is ready if its first transition names no target, else it must wake first."""
    draft.body(new.about)
    draft.body(new.state)
    draft.insert(
        "run",
        id=new.run_id,
        workflow_id=new.workflow_id,
        lineage_id=new.run_id,
        task=spec.task,
        attributes=dict(spec.attributes),
        text=spec.text,
        about_id=new.about.id,
        about_commitment=new.about.commitment,
        agent_id=new.agent_id,
        on_behalf_of_id=spec.on_behalf_of_id,
        idempotency_key=spec.idempotency_key,
        trace=spec.trace,
        created_at=draft.at,
    )
    draft.head(
        run_id=new.run_id,
        tenant_id=draft.stream.tenant,
        workflow_id=new.workflow_id,
        intent=Intent.NONE,
        fence_epoch=new.epoch,
        fence_count=0,
        version=version.version,
        clearance_id=None,
        claims_since_commit=0,
        asks=0,
        moved_at=draft.at,
    )
    instance_id = open_instance(draft, new.run_id, version.initial, 1)
    insert_checkpoint(
        draft,
        CheckpointFields(
            run_id=new.run_id,
            seq=1,
            kind=CheckpointKind.START,
            previous_digest=NOTHING_BEFORE,
            last_transition="",
            next_transition=version.initial,
            instance_id=instance_id,
            version=version.version,
            code_version="",
            fence=Fence(new.epoch, 0),
            state_commitment=new.state.commitment,
        ),
        state_id=new.state.id,
    )
    return _first_status(draft, version, versions, new.run_id, instance_id)


def _first_status(
    draft: Draft, version: VersionRow, versions: tuple[str, ...], run_id: UUID, instance_id: UUID
) -> Status:
    if version.targets(version.initial):
        draft.head(status=Status.WAKING)
        draft.insert(
            "wake",
            id=draft.mint(),
            run_id=run_id,
            state=WakeState.QUEUED,
            reasons=["started"],
            due_at=draft.at,
            opened_at=draft.at,
        )
        return Status.WAKING
    cleared = Cleared(version.initial, instance_id, versions, (), tuple(version.tools(version.initial)))
    clear(draft, run_id, cleared, ClearanceState.LIVE)
    draft.head(status=Status.READY)
    return Status.READY
