"""Commit transitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from ledger.domain import commits, effects
from ledger.domain.canonical import canonical, commit
from ledger.domain.change import Change
from ledger.domain.commits import Commit, Next
from ledger.domain.drafts import Draft
from ledger.domain.effects import EffectRow, ProposalSpec, SettleSpec
from ledger.domain.errors import LedgerError
from ledger.domain.identity import Caller, Scope
from ledger.domain.runs import Fence
from ledger.domain.views import RunView
from ledger.services import schemas, writer
from ledger.services.drafts import run_draft
from ledger.services.facts import Part
from ledger.services.ids import new_body
from ledger.services.ports import Ask, approvals
from ledger.services.views import run_view


@dataclass(frozen=True, slots=True)
class CommitSpec:
    """A commit as a caller sends it. `document` is the whole request, for comparing a repeat with the first."""

    fence: Fence
    expect_seq: int
    code_version: str
    state: Any
    next: Next
    idempotency_key: str
    document: Mapping[str, Any]
    propose: Sequence[ProposalSpec] = ()
    settle: Sequence[tuple[UUID, SettleSpec]] = ()
    withdraw: Sequence[UUID] = ()


@dataclass(frozen=True, slots=True)
class Committed:
    """The answer: `fence` only while the caller still holds the run."""

    run_id: UUID
    seq: int
    digest: bytes
    status: str
    fence: Fence | None
    transition: str
    instance_id: UUID
    clearance_id: UUID | None
