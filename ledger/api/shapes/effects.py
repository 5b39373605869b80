"""Effects, permits and settles."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, Protocol
from uuid import UUID

from pydantic import BaseModel, Field

from ledger.api.answers import stored
from ledger.api.parsing import Exact, FenceText, Name, Number, check_size
from ledger.domain.effects import ProposalSpec, Settled, SettleSpec

Outcome = Literal["committed", "failed", "unknown", "accepted"]
A_WEEK = 7 * 86_400
TOOL = "What the call does, as the policy names it: it decides by the tool whether a person has to approve."
TARGET = "The name under which the deployment registered the system that is called."
RESOURCE = "What it changes there: the target is asked for its version, and an approval is for that version."
CAUSE = "With `failed`, and only there: `not_dispatched` (nothing was sent), `throttled` or `rejected`. Anything less certain is `unknown`."


class ProposalBody(Exact):
    """An effect that the agent wants, under an explicit name: the same name and content is the same effect for ever."""

    name: Name
    tool: str = Field(min_length=1, max_length=120, description=TOOL)
    target: Name = Field(description=TARGET)
    resource: str = Field(default="", max_length=200, description=RESOURCE)
    request: Any
    tool_digest: str = Field(default="", max_length=80)

    def spec(self, call_key: str | None = None) -> ProposalSpec:
        """The same as a value of the domain. Raises LedgerError `too-large`."""
        request = check_size(f"the request of {self.name[:80]!r}", self.request)
        return ProposalSpec(self.name, self.tool, self.target, self.resource, request, call_key, self.tool_digest)


class ProposeBody(Exact):
    """Propose an effect outside a commit (all fields of a proposal and `expect_seq`), or take a recorded outcome (`accept`)."""

    fence: FenceText
    accept: Name | None = None
    expect_seq: Number | None = Field(default=None, ge=1)
    name: Name | None = None
    tool: str | None = Field(default=None, min_length=1, max_length=120)
    target: Name | None = None
    resource: str = Field(default="", max_length=200)
    request: Any = None
    tool_digest: str = Field(default="", max_length=80)


class FenceBody(Exact):
    fence: FenceText


class ReportBody(Exact):
    """What a permitted call came to. `reference` is the target's own name for what it did."""

    attempt: Number = Field(ge=1)
    outcome: Outcome
    cause: str = Field(default="", max_length=24, description=CAUSE)
    reference: str = Field(default="", max_length=200)
    result: Any = None
    ask_after_seconds: Number | None = Field(default=None, ge=1, le=A_WEEK)

    def report(self) -> SettleSpec:
        """The same as a value of the domain. Raises LedgerError `too-large`."""
        return SettleSpec(
            attempt=self.attempt,
            outcome=Settled(self.outcome),
            cause=self.cause,
            reference=self.reference,
            result=None if self.result is None else check_size("the result", self.result),
            ask_after=self.ask_after_seconds,
        )


class SettleBody(ReportBody):
    fence: FenceText


class CommitSettleBody(ReportBody):
    """A settle that rides in a commit."""

    effect: UUID


class EffectQuery(BaseModel):
    """Filters of the list; each narrows it."""

    run: UUID | None = None
    state: Literal["", "proposed", "in_flight", "committed", "failed", "unknown", "withdrawn", "written_off"] = ""
    after: str = Field(default="", max_length=200, description="`next` of the page before.")
    limit: int = Field(default=50, ge=1, le=200)


class EffectJSON(BaseModel):
    id: UUID
    run: UUID
    name: str
    key: str
    state: str
    cause: str
    attempt: int
    tool: str
    target: str
    resource: str
    tool_digest: str
    observed_version: str
    disputed: bool
    held: str = Field(description="After a dispute: the account that a person found to hold, `committed` or `failed`.")
    accepted: bool
    carried_from: str = Field(
        description="Of a call of the plan before this one: the transition that proposed it. '' for any other."
    )
    carried_to: str = Field(
        description="Of a call of the plan before this one: the transition that called it. `accept` it by its name, and propose any further act"
        " under another: the name is taken until a holder who has accepted it leaves that transition again. '' for any other."
    )
    reference: str
    result: Any
    due_at: str | None
    trace: str | None = Field(description="The W3C trace id of the call that proposed it.")
    request: Any


class ProposedJSON(EffectJSON):
    seq: int | None = Field(
        default=None, description="The run's last checkpoint afterwards: a proposal is one of its own."
    )


class EffectPage(BaseModel):
    effects: list[EffectJSON]
    next: str


class PermitJSON(BaseModel):
    """Leave for one attempt. The call isn't sent after `send_by`, carries `key`, and carries `precondition` as If-Match where there is one."""

    attempt: int
    key: str = Field(description="The call's `Idempotency-Key` header, or whatever else the target takes for one.")
    send_by: str
    answer_by: str
    precondition: str
    request: Any
    verbatim: bool = Field(
        description=(
            "The call must send `request` in the very bytes of this answer (RFC 8785): the target is asked what became of it by sending those again."
        )
    )


class PermitAnswer(BaseModel):
    now: str = Field(description="The server's clock: compare it with yours before you judge `send_by`.")
    permit: PermitJSON
    effect: EffectJSON


class SettleAnswer(BaseModel):
    effect: EffectJSON
    counted: bool = Field(description="False: kept as evidence, the effect didn't move.")


class Shown(Protocol):
    """An effect, as a row of the database or as rules read it."""

    id: UUID
    run_id: UUID
    name: str
    key: str
    state: str
    cause: str
    attempt: int
    tool: str
    resource: str
    tool_digest: str
    observed_version: str
    disputed: bool
    held: str
    accepted: bool
    carried_from: str
    carried_to: str
    reference: str
    due_at: datetime | None
    trace: UUID | None


def effect_json(row: Any, target: str, request: bytes | None, result: bytes | None) -> dict[str, Any]:
    """An `EffectJSON` of a `Shown`; request and result are stored canonical JSON, None where erased or not for this reader."""
    shown: Shown = row
    return {
        "id": shown.id,
        "run": shown.run_id,
        "name": shown.name,
        "key": shown.key,
        "state": shown.state,
        "cause": shown.cause,
        "attempt": shown.attempt,
        "tool": shown.tool,
        "target": target,
        "resource": shown.resource,
        "tool_digest": shown.tool_digest,
        "observed_version": shown.observed_version,
        "disputed": shown.disputed,
        "held": shown.held,
        "accepted": shown.accepted,
        "carried_from": shown.carried_from,
        "carried_to": shown.carried_to,
        "reference": shown.reference,
        "result": stored(result),
        "due_at": shown.due_at,
        "trace": shown.trace and shown.trace.hex,
        "request": stored(request),
    }
