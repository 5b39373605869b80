"""Authority: policies, what they require, and grants. No clock, no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from ledger.domain.machines import Machine


class Verdict(StrEnum):
    """What a policy says of a tool."""

    ALLOW = "allow"
    DENY = "deny"
    APPROVE = "approve"


class GrantState(StrEnum):
    LIVE = "live"
    USED = "used"
    EXPIRED = "expired"
    REVOKED = "revoked"
    VOIDED = "voided"


GRANT: Machine[GrantState] = Machine(
    "grant",
    {
        GrantState.LIVE: {"use": (GrantState.USED,), "expire": (GrantState.EXPIRED,), "revoke": (GrantState.REVOKED,), "void": (GrantState.VOIDED,)},
        GrantState.USED: {"revoke": (GrantState.REVOKED,)},
        GrantState.EXPIRED: {},
        GrantState.REVOKED: {},
        GrantState.VOIDED: {},
    },
)


@dataclass(frozen=True, slots=True)
class GrantRow:
    id: UUID
    subject_kind: str
    subject_id: UUID
    subject_digest: bytes
    requirement_digest: bytes
    request_id: UUID | None
    revision: int
    state: GrantState
    approved_at: datetime
    use_by: datetime
