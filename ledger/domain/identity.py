"""Who calls: keys, scopes, verbs. No clock, no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from ledger.domain.errors import LedgerError


class Scope(StrEnum):
    """What a key may do."""

    WORKFLOWS_REGISTER = "workflows:register"
    RUNS_START = "runs:start"
    RUNS_WORK = "runs:work"
    RUNS_READ = "runs:read"
    EVENTS_EMIT = "events:emit"
    OPERATE = "operate"


class Verb(StrEnum):
    """What a person may do, on a workflow type or in a whole tenant."""

    SEE = "see"
    SEE_PAYLOADS = "see_payloads"
    APPROVE = "approve"
    OPERATE = "operate"
    AUDIT = "audit"
    ADMINISTER = "administer"
    BREAK_GLASS = "break_glass"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is behind a call: an agent's or a person's key, a signed-in person, or the system itself."""

    tenant_id: UUID
    actor: str
    scopes: frozenset[str] = frozenset()
    key_id: UUID | None = None
    agent_id: UUID | None = None
    person_id: UUID | None = None

    def needs(self, scope: Scope) -> None:
        """Raises LedgerError `scope-missing`."""
        if scope not in self.scopes:
            raise LedgerError(
                "scope-missing",
                f"this key may not do that: it lacks the scope {scope}",
                "Ask an administrator for a key with it.",
                scope=str(scope),
            )
