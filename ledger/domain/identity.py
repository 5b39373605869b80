"""Who calls: keys, their scopes and what narrows them, verbs. No clock, no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID

from ledger.domain.errors import LedgerError
from ledger.domain.workflows import NAME

ALL = "*"
"""Instead of a key's list of workflow types: every one."""
MOST_LEAVES = 50
LONGEST_PATTERN = 200


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
class Emit:
    """Leave to emit events of a type from a source; each is exact, or ends with `*` and covers whatever begins so."""

    type: str
    source: str

    def covers(self, type_: str, source: str) -> bool:
        """Is an event of this type from this source covered?"""
        return _fits(self.type, type_) and _fits(self.source, source)


def _fits(pattern: str, text: str) -> bool:
    return text.startswith(pattern[:-1]) if pattern.endswith("*") else text == pattern


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is behind a call: an agent's or a person's key, a signed-in person, or the system itself.

    `workflows` are the types that the key is for (`*`: all); without a key they narrow nothing. `emits` is all that the key may emit.
    """

    tenant_id: UUID
    actor: str
    scopes: frozenset[str] = frozenset()
    key_id: UUID | None = None
    agent_id: UUID | None = None
    person_id: UUID | None = None
    workflows: frozenset[str] = frozenset()
    emits: tuple[Emit, ...] = ()

    def needs(self, scope: Scope) -> None:
        """Raises LedgerError `scope-missing`."""
        if scope not in self.scopes:
            raise LedgerError(
                "scope-missing",
                f"this key may not do that: it lacks the scope {scope}",
                "Ask an administrator for a key with it.",
                scope=str(scope),
            )

    @property
    def narrowed(self) -> bool:
        """Is this a key that isn't for every workflow type?"""
        return self.key_id is not None and ALL not in self.workflows

    def reaches(self, workflow: str) -> bool:
        """May the caller know of this type's runs at all?"""
        return not self.narrowed or workflow in self.workflows

    def needs_workflow(self, name: str) -> None:
        """For calls that name a type; decided from the key alone, so it tells nothing of what there is. Raises LedgerError `workflow-not-allowed`."""
        if not self.reaches(name):
            raise LedgerError(
                "workflow-not-allowed",
                "this key isn't for this workflow type",
                "Ask an administrator for a key that is: `manage.py create_key … --workflow NAME`.",
            )

    def needs_emit(self, type_: str, source: str) -> None:
        """Raises LedgerError `event-not-allowed`."""
        if not any(emit.covers(type_, source) for emit in self.emits):
            raise LedgerError(
                "event-not-allowed",
                "this key may not emit events of this type from this source",
                "Ask an administrator for a key that may: `manage.py create_key … --scope events:emit --emit TYPE SOURCE`.",
            )


# What a key is issued with ----------------------------------------------------------------------


def check_scopes(scopes: Iterable[str], of_person: bool) -> list[str]:
    """A key's scopes in order. Raises LedgerError `invalid` for unknown ones, and for what this kind of owner can't have."""
    wanted = sorted({str(scope) for scope in scopes})
    known = {str(scope) for scope in Scope}
    if not wanted or not known.issuperset(wanted):
        raise _invalid("a key has one or more known scopes", f"Choose from: {', '.join(sorted(known))}.")
    if Scope.RUNS_WORK in wanted and of_person:
        raise _invalid("a person's key doesn't work on runs: whoever asks must not decide", "Issue it to an agent.")
    if Scope.OPERATE in wanted and not of_person:
        raise _invalid("only a person's key may operate", "Issue it to a person, or leave 'operate' out.")
    return wanted


def check_workflows(names: Iterable[str]) -> list[str]:
    """The workflow types that a key is for, in order. Nobody gets all of them by saying nothing. Raises LedgerError `invalid`."""
    wanted = sorted(set(names))
    if not wanted:
        raise _invalid("a key says which workflow types it is for", "Name them, or say * for every one.")
    if wanted != [ALL] and not all(NAME.fullmatch(name) for name in wanted):
        raise _invalid(
            "a key's workflow types are names, or only *", "Name each type; patterns aren't known for workflow types."
        )
    if len(wanted) > MOST_LEAVES:
        raise _invalid(f"a key names at most {MOST_LEAVES} workflow types", "Issue a key for each group of them.")
    return wanted


def check_emits(emits: Sequence[Emit], scopes: Sequence[str]) -> list[dict[str, Any]]:
    """What a key may emit, as it is kept. Nothing said is nothing allowed. Raises LedgerError `invalid`."""
    if emits and Scope.EVENTS_EMIT not in scopes:
        raise _invalid("what a key may emit says nothing without the scope events:emit", "Add the scope.")
    if len(emits) > MOST_LEAVES:
        raise _invalid(f"a key has at most {MOST_LEAVES} leaves to emit", "Issue a key for each source.")
    for pattern in (text for emit in emits for text in (emit.type, emit.source)):
        if not 0 < len(pattern) <= LONGEST_PATTERN or "*" in pattern[:-1]:
            raise _invalid(
                f"a type or source to emit has 1 to {LONGEST_PATTERN} characters and a * at its end only",
                "Write it out, or end it with *: order.paid, order.*, https://shop.example/*.",
            )
    return [{"type": emit.type, "source": emit.source} for emit in dict.fromkeys(emits)]


def _invalid(reason: str, remedy: str) -> LedgerError:
    return LedgerError("invalid", reason, remedy)
