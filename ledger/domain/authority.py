"""Authority: policies, what they require, and grants. No clock, no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any
from uuid import UUID

from ledger.domain.canonical import digest
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
        GrantState.LIVE: {
            "use": (GrantState.USED,),
            "expire": (GrantState.EXPIRED,),
            "revoke": (GrantState.REVOKED,),
            "void": (GrantState.VOIDED,),
        },
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


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """A policy version: its rules in order, as stored."""

    id: UUID
    number: int
    rules: list[dict[str, Any]]
    digest: bytes


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a policy: what it says of the tools that its pattern matches. Windows are in seconds."""

    tool: str
    verdict: Verdict
    group: str = ""
    quorum: int = 1
    decide_by: int = 86_400
    use_by: int = 3_600

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Rule:
        return cls(**{**document, "verdict": Verdict(document["verdict"])})


@dataclass(frozen=True, slots=True)
class Requirement:
    """What the policy wants for one tool. `rules` are those that must each be met when the verdict is `approve`."""

    verdict: Verdict
    rules: tuple[Rule, ...] = ()

    @property
    def decide_by(self) -> timedelta:
        """The shortest window of the rules."""
        return timedelta(seconds=min(rule.decide_by for rule in self.rules))

    @property
    def use_by(self) -> timedelta:
        """How long a grant may be used, from its approval."""
        return timedelta(seconds=min(rule.use_by for rule in self.rules))

    def digest(self) -> bytes:
        """Covers what is required and nothing else of the policy, so that an unrelated edit voids nothing."""
        return digest(
            "requirement/1",
            {
                "verdict": str(self.verdict),
                "rules": sorted([rule.group, rule.quorum, rule.decide_by, rule.use_by] for rule in self.rules),
            },
        )


DENY = Requirement(Verdict.DENY)


def requirement(policy: PolicyRow | None, tool: str) -> Requirement:
    """What the policy in force wants for a tool. A matching `deny` wins; then every matching `approve` rule must be met; then `allow`.

    No policy, or no rule that matches, denies.
    """
    rules: Sequence[Rule] = [Rule.from_document(document) for document in policy.rules] if policy else []
    matching = [rule for rule in rules if fnmatchcase(tool, rule.tool)]
    if not matching or any(rule.verdict is Verdict.DENY for rule in matching):
        return DENY
    asking = tuple(rule for rule in matching if rule.verdict is Verdict.APPROVE)
    return Requirement(Verdict.APPROVE, asking) if asking else Requirement(Verdict.ALLOW)
