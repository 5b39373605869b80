"""Commits and checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field

from ledger.api.parsing import Exact, FenceText, Name, Number
from ledger.api.shapes.effects import CommitSettleBody, EffectJSON, ProposalBody
from ledger.api.shapes.waits import WaitBody
from ledger.domain.commits import ENDS, Next, NextKind
from ledger.domain.errors import LedgerError
from ledger.domain.runs import ClearanceRow, Fence
from ledger.models import Checkpoint
from ledger.services.checkpoints import CommitSpec, Committed


class NextBody(Exact):
    """What comes after this checkpoint: `transition` unless the run ends, `wait` exactly when it waits."""

    kind: Literal["go_on", "give_back", "wait", "complete", "fail"]
    transition: Name | None = None
    wait: WaitBody | None = None
    reason: str = Field(default="", max_length=200, description="Why the run ends, for kinds complete and fail.")

    def next(self) -> Next:
        """The same as a value of the domain. Raises LedgerError `invalid`."""
        kind = NextKind(self.kind)
        if (self.transition is None) != (kind in ENDS):
            raise LedgerError(
                "invalid",
                f"$.next.transition {'is needed' if self.transition is None else 'has no place'} with kind {kind}",
                "Name the next transition unless the run ends.",
            )
        if (self.wait is None) == (kind is NextKind.WAIT):
            raise LedgerError(
                "invalid",
                f"$.next.wait {'is needed' if self.wait is None else 'has no place'} with kind {kind}",
                "Send a wait exactly with kind wait.",
            )
        if self.reason and kind not in ENDS:
            raise LedgerError(
                "invalid", f"$.next.reason has no place with kind {kind}", "Send a reason only where the run ends."
            )
        return Next(kind, self.transition or "", self.wait.spec() if self.wait else None, self.reason)


class CommitBody(Exact):
    """One committed transition: its state, its effects and what comes next, together or not at all."""

    fence: FenceText
    expect_seq: Number = Field(ge=1, description="The last checkpoint's sequence.")
    state: Any
    code_version: str = Field(max_length=80)
    version: str = Field(max_length=40, description="The workflow version that this worker claimed with.")
    next: NextBody
    propose: list[ProposalBody] = Field(default=[], max_length=50)
    settle: list[CommitSettleBody] = Field(default=[], max_length=50)
    withdraw: list[UUID] = Field(default=[], max_length=50)

    def spec(self, key: str, document: Mapping[str, Any]) -> CommitSpec:
        """The same as a value of the services. Raises LedgerError `invalid`, `too-large`."""
        return CommitSpec(
            fence=Fence.parse(self.fence),
            expect_seq=self.expect_seq,
            code_version=self.code_version,
            state=self.state,
            next=self.next.next(),
            idempotency_key=key,
            document=document,
            propose=[proposal.spec() for proposal in self.propose],
            settle=[(settle.effect, settle.report()) for settle in self.settle],
            withdraw=self.withdraw,
            version=self.version,
        )


class ClearanceJSON(BaseModel):
    """Leave to go on with the next transition."""

    id: UUID
    valid_until: str
    targets: list[str]
    tools: list[str]


class CommitAnswer(BaseModel):
    """`fence` is null once the caller no longer holds the run: it gave it back or ended it, or another one took over before a reply was asked for
    again. `clearance` is there where the caller may go on at once."""

    seq: int
    digest: str
    status: str
    fence: str | None
    transition: str
    instance: UUID
    clearance: ClearanceJSON | None
    effects: dict[str, EffectJSON]


def clearance_json(row: ClearanceRow | None) -> dict[str, Any] | None:
    """A `ClearanceJSON`."""
    if row is None:
        return None
    return {"id": row.id, "valid_until": row.valid_until, "targets": row.targets, "tools": row.tools}


def committed_json(made: Committed, effects: Mapping[str, Any]) -> dict[str, Any]:
    """A `CommitAnswer`."""
    return {
        "seq": made.seq,
        "digest": made.digest,
        "status": made.status,
        "fence": None if made.fence is None else str(made.fence),
        "transition": made.transition,
        "instance": made.instance_id,
        "clearance": clearance_json(made.clearance),
        "effects": effects,
    }


class CheckpointJSON(BaseModel):
    seq: int
    kind: str
    digest: str
    previous_digest: str
    last_transition: str
    next_transition: str
    instance: UUID
    version: str
    code_version: str
    state_commitment: str
    created_at: str


class StateJSON(BaseModel):
    """The state exactly as committed: SHA-256 over the salt's bytes and `json` in UTF-8 is the commitment."""

    json_: str = Field(alias="json")
    salt: str
    commitment: str


class CheckpointRead(CheckpointJSON):
    state: StateJSON | None = Field(description="Null where it was erased, or where this key may not see payloads.")


class CheckpointPage(BaseModel):
    checkpoints: list[CheckpointJSON]
    next: str


def checkpoint_json(row: Checkpoint) -> dict[str, Any]:
    """A `CheckpointJSON`."""
    return {
        "seq": row.seq,
        "kind": row.kind,
        "digest": row.digest,
        "previous_digest": row.previous_digest,
        "last_transition": row.last_transition,
        "next_transition": row.next_transition,
        "instance": row.instance_id,
        "version": row.version,
        "code_version": row.code_version,
        "state_commitment": row.state_commitment,
        "created_at": row.created_at,
    }


def state_json(row: Checkpoint) -> dict[str, Any] | None:
    """A `StateJSON` of a checkpoint read with its body."""
    if row.state.content is None or row.state.salt is None:
        return None
    return {
        "json": bytes(row.state.content).decode(),
        "salt": row.state.salt,
        "commitment": row.state_commitment,
    }
