"""Workflow versions."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from ledger.api.parsing import Exact, Name
from ledger.domain.workflows import VersionSpec
from ledger.models import WorkflowType, WorkflowVersion


class TransitionBody(Exact):
    """One step of the agent: what it may touch, and what happens when the world moved under it."""

    targets: list[Name] = Field(default=[], max_length=50)
    tools: list[Name] = Field(default=[], max_length=100)
    on_conflict: list[Name] = Field(default=["ask_again"], min_length=1, max_length=2)


class VersionBody(Exact):
    """A version as its worker registers it."""

    state_schema: dict[str, Any]
    initial: Name
    transitions: dict[str, TransitionBody] = Field(max_length=200)
    takes_over_from: list[Name] = Field(default=[], max_length=50)
    dependencies: dict[str, str] = Field(default={}, max_length=200)
    own_events: bool = Field(
        default=False, description="Waits also take events that an agent which has held the run emitted."
    )

    def spec(self) -> VersionSpec:
        """The same as a value of the domain."""
        return VersionSpec(
            state_schema=self.state_schema,
            initial=self.initial,
            transitions={name: each.model_dump() for name, each in self.transitions.items()},
            takes_over_from=tuple(self.takes_over_from),
            dependencies=self.dependencies,
            own_events=self.own_events,
        )


class VersionJSON(BaseModel):
    workflow: str
    version: str
    digest: str


class VersionRead(VersionJSON):
    initial: str
    transitions: dict[str, Any]
    takes_over_from: list[str]
    dependencies: dict[str, str]
    own_events: bool
    state_schema: dict[str, Any]
    created_at: str


class VersionPage(BaseModel):
    versions: list[VersionRead]


class WorkflowJSON(BaseModel):
    id: str
    workflow: str
    created_at: str


class WorkflowPage(BaseModel):
    workflows: list[WorkflowJSON]


def workflow_json(row: WorkflowType) -> dict[str, Any]:
    """A `WorkflowJSON`."""
    return {"id": row.pk, "workflow": row.name, "created_at": row.created_at}


def version_json(workflow: str, row: WorkflowVersion) -> dict[str, Any]:
    """A `VersionRead`."""
    return {
        "workflow": workflow,
        "version": row.version,
        "digest": row.digest,
        "initial": row.initial,
        "transitions": row.transitions,
        "takes_over_from": row.takes_over_from,
        "dependencies": row.dependencies,
        "own_events": row.own_events,
        "state_schema": row.state_schema,
        "created_at": row.created_at,
    }
