"""What the server answers, typed. Unknown fields are ignored: a newer server may say more."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Record(BaseModel):
    """A frozen answer."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Explanation(Record):
    """Why a run is where it is, in one sentence and a list."""

    sentence: str = ""
    items: list[Any] = Field(default_factory=list)


class Run(Record):
    """A run as the ledger knows it."""

    id: str
    workflow: str
    version: str
    task: str
    status: str
    intent: str | None = None
    fence: str | None = None
    seq: int
    transition: str
    instance: str | None = None
    created_at: datetime | None = None
    moved_at: datetime | None = None
    explanation: Explanation | None = None


class Effect(Record):
    """An effect; `id` is empty while its proposal rides with the coming commit. `carried_from` and `carried_to` are the transitions that proposed and
    called it, where that was under the plan before this one; '' for any other."""

    id: str = ""
    name: str
    key: str | None = None
    state: str = "proposed"
    cause: str | None = None
    attempt: int = 0
    tool: str
    target: str
    resource: str | None = None
    tool_digest: str | None = None
    observed_version: str | None = None
    disputed: bool = False
    held: str = ""
    accepted: bool = False
    carried_from: str = ""
    carried_to: str = ""
    reference: str | None = None
    result: Any = None
    due_at: datetime | None = None
    request: Any = None


class Proposed(Effect):
    """The answer to a proposal outside a commit: such a proposal is a checkpoint of its own, with a sequence."""

    seq: int | None = None


class StateBody(Record):
    """Canonical text with the salt and the commitment, SHA-256(salt ‖ text), that it must match."""

    json_text: str = Field(alias="json")
    salt: str
    commitment: str


class Checkpoint(Record):
    """The checkpoint that a run goes on from."""

    seq: int
    digest: str
    code_version: str | None = None
    version: str | None = None
    state: StateBody


class Clearance(Record):
    """The wake's leave to go on with one transition."""

    id: str
    valid_until: datetime | None = None
    targets: list[str] = Field(default_factory=list)
    tools: list[str] = Field(default_factory=list)


class EventSeen(Record):
    """The event that met a wait."""

    source: str
    id: str
    type: str
    subject: str | None = None
    data: Any = None


class MemberSeen(Record):
    """One member of the last wait and how it ended."""

    kind: str
    outcome: str | None = None
    effect: str | None = None
    event: EventSeen | None = None
    reason: str | None = None


class WaitSeen(Record):
    """The last wait of the run."""

    state: str
    cause: str | None = None
    members: list[MemberSeen] = Field(default_factory=list)


class Packet(Record):
    """All that a worker needs to go on with a run it claimed: `effects` of this transition instance by name, `earlier` those of earlier
    instances whose outcome is still open."""

    run: Run
    fence: str
    lease_expires_at: datetime | None = None
    lease_seconds: float | None = None
    transition: str
    instance: str | None = None
    version: str
    checkpoint: Checkpoint
    clearance: Clearance | None = None
    decision: dict[str, Any] | None = None
    effects: dict[str, Effect] = Field(default_factory=dict)
    earlier: list[Effect] = Field(default_factory=list)
    wait: WaitSeen | None = None


class Committed(Record):
    """The answer to a commit; ownership goes on only where it hands the fence back."""

    seq: int
    digest: str
    status: str
    fence: str | None = None
    transition: str | None = None
    instance: str | None = None
    clearance: Clearance | None = None
    effects: dict[str, Effect] = Field(default_factory=dict)


class Directive(Record):
    """What a heartbeat says about one run: `go_on`, `stop_after_call` or `stop`, and why."""

    run: str
    directive: str
    reason: str | None = None
    lease_expires_at: datetime | None = None


class Permit(Record):
    """Leave for one call: sent by `send_by`, answered by `answer_by` (monotonic deadlines beside them), with `key` and `precondition`.

    `verbatim` where the ledger may send the request itself, to ask what became of the call: it must have been sent as it is."""

    attempt: int
    key: str
    send_by: datetime
    answer_by: datetime
    precondition: str | dict[str, str] | None = None
    request: Any = None
    verbatim: bool = False
    send_before: float = 0.0
    answer_before: float = 0.0


class Settled(Record):
    """The answer to a settle; `counted` is false where the report was only kept as evidence."""

    effect: Effect
    counted: bool = True


class EventAnswer(Record):
    """What became of an emitted event: `matched`, `kept`, `duplicate` or `late`."""

    status: str
    deliveries: int = 0


class VersionAnswer(Record):
    """A registered workflow version."""

    workflow: str
    version: str
    digest: str
