"""Whose leave a call has: the model's own book of policies, teams, votes, versions and keys, which the ledger is held against. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID


@dataclass(frozen=True)
class Policy:
    """What it requires of a payment: `requirement` names what leave is bound to, and is the same where only something else was changed."""

    requirement: str
    quorum: int
    use_by: int
    notes: str = "allow"

    def rules(self) -> list[dict[str, Any]]:
        paying: dict[str, Any] = {"tool": "payments.*", "verdict": "deny"}
        if self.quorum:
            paying |= {"verdict": "approve", "group": "approvers", "quorum": self.quorum}
            paying |= {"decide_by": 86_400, "use_by": self.use_by}
        return [paying, {"tool": "notes.*", "verdict": self.notes}, {"tool": "wires.*", "verdict": "allow"}]


POLICIES = {
    "one": Policy("one", 1, 3_600),
    "no notes": Policy("one", 1, 3_600, "deny"),
    "brief": Policy("brief", 1, 60),
    "two": Policy("two", 2, 3_600),
    "none": Policy("none", 0, 0),
}

Content = tuple[UUID, bytes]
"""An effect and the digest of all that its leave is bound to."""


@dataclass
class Book:
    """What is so now in the tenant, and what was decided in this sequence."""

    policy: str = "one"
    team: set[str] = field(default_factory=lambda: {"alice", "bob"})
    revoked: set[UUID | None] = field(default_factory=set)
    heard: list[str] = field(default_factory=list)
    """The versions that the target told anybody in this step."""
    told: dict[str, datetime] = field(default_factory=dict)
    """When it last told each."""
    asked: dict[Hashable, str] = field(default_factory=dict)
    """A request's revision → what the policy required when it was opened."""
    votes: dict[Content, set[str]] = field(default_factory=lambda: defaultdict(set))
    approved: dict[tuple[Content, str], datetime] = field(default_factory=dict)

    def opened(self, revision: Hashable) -> None:
        """A revision that wasn't there before this step was opened under the policy that is in force."""
        self.asked.setdefault(revision, POLICIES[self.policy].requirement)

    def voted(self, person: str, content: Content, revision: Hashable, decided: bool, now: datetime) -> None:
        """Somebody approved; `decided` when that was enough."""
        self.votes[content].add(person)
        if decided:
            self.approved[content, self.asked[revision]] = now

    def withdrew(self, person: str, content: Content) -> None:
        self.votes[content].discard(person)

    def against_call(self, tool: str, key_id: UUID | None) -> str:
        """What stands against any call of this tool, whoever approved it: 7."""
        policy = POLICIES[self.policy]
        if key_id in self.revoked:
            return "the key was revoked"
        if tool.startswith("notes.") and policy.notes != "allow":
            return "the policy denies notes"
        return "the policy denies payments" if tool.startswith("payments.") and not policy.quorum else ""

    def against_payment(self, content: Content, bound_to: str, now: datetime, fresh: timedelta) -> str:
        """What stands against this very payment: 7 and 8. Leave is for exactly this content, of people who may still give it, and has its time."""
        policy = POLICIES[self.policy]
        good = self.votes[content] & self.team
        approved_at = self.approved.get((content, policy.requirement))
        if approved_at is None:
            return "nobody approved this content under what the policy requires now"
        if len(good) < policy.quorum:
            return f"of {policy.quorum} votes only those of {sorted(good)} still count"
        if now >= approved_at + timedelta(seconds=policy.use_by):
            return "its use-by is over"
        if any(version != bound_to for version in self.heard):
            return f"it was approved at {bound_to!r}, the target just said {self.heard}"
        seen = self.told.get(bound_to)
        return "" if seen and now < seen + fresh else f"nobody was told for {fresh} that the target is at {bound_to!r}"
