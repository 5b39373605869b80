"""Runs."""

from __future__ import annotations

from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field

from ledger.api.parsing import Exact, Name, Number
from ledger.domain.explain import Explanation, Item
from ledger.domain.runs import Head
from ledger.domain.starts import StartSpec
from ledger.domain.views import RunRow
from ledger.models import Run, RunHead
from ledger.services.runs import Started


class StartBody(Exact):
    """A new run. `task` and `text` are for people's search; `attributes` are small facts to filter by."""

    workflow: Name
    version: str = Field(
        default="",
        max_length=40,
        description="Left out: the current one, which of those that no other takes over from was registered last.",
    )
    task: str = Field(min_length=1, max_length=200)
    state: Any
    attributes: dict[str, Any] = Field(default={}, max_length=50)
    text: str = Field(default="", max_length=10_000)
    on_behalf_of: UUID | None = None

    def spec(self, key: str) -> StartSpec:
        """The same as a value of the domain."""
        return StartSpec(
            self.workflow, self.version, self.task, self.state, self.attributes, self.text, key, self.on_behalf_of
        )


class RunQuery(BaseModel):
    """Filters of the list; each narrows it."""

    status: Literal["", "running", "waiting", "waking", "ready", "blocked", "completed", "failed", "cancelled"] = ""
    workflow: str = Field(default="", max_length=80)
    version: str = Field(default="", max_length=40)
    task: str = Field(default="", max_length=200)
    text: str = Field(default="", max_length=100, description="Looked for in task and text, without regard to case.")
    health: Literal[
        "", "unverified", "blocked", "disputed", "unknown", "overdue", "lease", "unclaimed", "unchecked", "no_approvers"
    ] = Field(
        default="",
        description="What is wrong: a person is needed, accounts contradict each other, an outcome is unknown, or something is late.",
    )
    owner: str = Field(
        default="",
        max_length=200,
        description="Who has it: the name or id of the worker that holds it, or the id of the person who took its handoff.",
    )
    attribute: list[str] = Field(
        default=[],
        max_length=5,
        description="`name:value`, once for each: the run has all of them. 17 is the number and the text.",
    )
    after: str = Field(default="", max_length=200, description="`next` of the page before.")
    limit: int = Field(default=50, ge=1, le=200)


class PageQuery(BaseModel):
    """Where a page begins and how long it is."""

    after: str = Field(default="", max_length=200, description="`next` of the page before.")
    limit: int = Field(default=50, ge=1, le=200)


class ItemJSON(BaseModel):
    code: str
    text: str
    at: str | None


class ExplanationJSON(BaseModel):
    """Why the run isn't moving: one sentence, and what it rests on."""

    sentence: str
    items: list[ItemJSON]


class RunJSON(BaseModel):
    id: UUID
    workflow: str
    version: str
    task: str
    status: str
    intent: str
    seq: Number = Field(description="The last checkpoint's sequence: `expect_seq` of the next commit.")
    transition: str
    instance: UUID
    created_at: str
    moved_at: str
    attributes: dict[str, Any] | None = None
    trace: str | None = Field(default=None, description="The W3C trace id of the call that started it.")
    explanation: ExplanationJSON | None = None


class RunAnswer(BaseModel):
    run: RunJSON


class RunPage(BaseModel):
    runs: list[RunJSON]
    next: str


def run_json(run: Run, told: Explanation | None = None) -> dict[str, Any]:
    """A `RunJSON` of a row with its head and workflow. The fence isn't in it: only a claim hands that out."""
    head: RunHead = run.head
    return {
        "id": run.pk,
        "workflow": run.workflow.name,
        "version": head.version,
        "task": run.task,
        "status": head.status,
        "intent": head.intent,
        "seq": head.checkpoint_seq,
        "transition": head.transition,
        "instance": head.instance_id,
        "created_at": run.created_at,
        "moved_at": head.moved_at,
        "attributes": run.attributes,
        "trace": run.trace and run.trace.hex,
        "explanation": told and {"sentence": told.sentence, "items": [_item_json(item) for item in told.items]},
    }


def started_json(started: Started) -> dict[str, Any]:
    """A `RunJSON` of what starting it wrote or found."""
    run, head = started.run, started.head
    return {
        "id": started.run_id,
        "workflow": started.workflow,
        "version": head["version"],
        "task": run["task"],
        "status": head["status"],
        "intent": head["intent"],
        "seq": head["checkpoint_seq"],
        "transition": head["transition"],
        "instance": head["instance_id"],
        "created_at": run["created_at"],
        "moved_at": head["moved_at"],
        "attributes": run["attributes"],
        "trace": run["trace"] and run["trace"].hex,
        "explanation": None,
    }


def _item_json(item: Item) -> dict[str, Any]:
    return {"code": item.code, "text": item.text, "at": item.at}


def claimed_json(run: RunRow, workflow: str, version: str, head: Head) -> dict[str, Any]:
    """A `RunJSON` from what a claim read."""
    return {
        "id": run.id,
        "workflow": workflow,
        "version": version,
        "task": run.task,
        "status": head.status,
        "intent": head.intent,
        "seq": head.checkpoint_seq,
        "transition": head.transition,
        "instance": head.instance_id,
        "created_at": run.created_at,
        "moved_at": head.moved_at,
        "explanation": None,
    }
