"""Checkpoints: what their digest covers, and what a commit may do next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID

from ledger.domain.canonical import digest
from ledger.domain.drafts import Draft
from ledger.domain.journal import committed
from ledger.domain.runs import Fence


class CheckpointKind(StrEnum):
    START = "start"
    COMMIT = "commit"
    PROPOSAL = "proposal"
    END = "end"
    REPLAN = "replan"
    MIGRATION = "migration"


@dataclass(frozen=True, slots=True)
class CheckpointFields:
    """All that a checkpoint's digest covers."""

    run_id: UUID
    seq: int
    kind: CheckpointKind
    previous_digest: bytes
    last_transition: str
    next_transition: str
    instance_id: UUID
    version: str
    code_version: str
    fence: Fence
    state_commitment: bytes
    artifacts: tuple[str, ...] = ()


def checkpoint_digest(fields: CheckpointFields, salt: bytes | None) -> bytes:
    """SHA-256 over every field of a checkpoint, its texts as the journal has them: commitments under the salt of the run's stream. 32 bytes."""
    return committed_digest(fields, committed(fields.code_version, salt), committed(list(fields.artifacts), salt))


def committed_digest(fields: CheckpointFields, code: str | None, artifacts: str | None) -> bytes:
    """The same from the commitments of its texts as an entry has them: for a checkpoint whose run's salt is erased."""
    return digest(
        "checkpoint/2",
        {
            "run": fields.run_id,
            "seq": fields.seq,
            "kind": str(fields.kind),
            "previous": fields.previous_digest,
            "last": fields.last_transition,
            "next": fields.next_transition,
            "instance": fields.instance_id,
            "schema": fields.version,
            "code": code,
            "fence": str(fields.fence),
            "state": fields.state_commitment,
            "artifacts": artifacts,
        },
    )


@dataclass(frozen=True, slots=True)
class VersionRow:
    """A registered workflow version as rules read it; `transitions` maps a name to its declaration. `own_events`: its waits take events of agents
    that have held the run too."""

    id: UUID
    version: str
    state_schema: Mapping[str, Any]
    initial: str
    transitions: Mapping[str, Mapping[str, Any]]
    takes_over_from: list[str]
    digest: bytes
    own_events: bool = False

    def declares(self, transition: str) -> bool:
        return transition in self.transitions

    def targets(self, transition: str) -> list[str]:
        return list(self.transitions.get(transition, {}).get("targets", []))

    def tools(self, transition: str) -> list[str]:
        return list(self.transitions.get(transition, {}).get("tools", []))

    def on_conflict(self, transition: str) -> tuple[str, str]:
        """(`ask_again` | `replan` | `hand_off`, the transition that a replan goes to)."""
        declared = self.transitions.get(transition, {}).get("on_conflict", ["ask_again"])
        return declared[0], declared[1] if len(declared) > 1 else ""


def insert_checkpoint(
    draft: Draft,
    fields: CheckpointFields,
    *,
    state_id: UUID,
    idempotency_key: str | None = None,
    request_commitment: bytes | None = None,
    note_id: UUID | None = None,
) -> bytes:
    """Write a checkpoint and make it the head's; `note_id` is the body that says why the run ended with it. Answers its digest."""
    digest_ = checkpoint_digest(fields, draft.stream.salt)
    draft.insert(
        "checkpoint",
        id=draft.mint(),
        run_id=fields.run_id,
        seq=fields.seq,
        kind=fields.kind,
        previous_digest=fields.previous_digest,
        digest=digest_,
        last_transition=fields.last_transition,
        next_transition=fields.next_transition,
        instance_id=fields.instance_id,
        version=fields.version,
        code_version=fields.code_version,
        fence_epoch=fields.fence.epoch,
        fence_count=fields.fence.count,
        state_id=state_id,
        state_commitment=fields.state_commitment,
        artifacts=list(fields.artifacts),
        idempotency_key=idempotency_key,
        request_commitment=request_commitment,
        note_id=note_id,
        created_at=draft.at,
    )
    draft.head(checkpoint_seq=fields.seq, checkpoint_digest=digest_, version=fields.version)
    return digest_


def accepted_versions(versions: Iterable[VersionRow], of: str) -> tuple[str, ...]:
    """The versions that may go on from a checkpoint of version `of`: itself and every one that takes over from it."""
    return tuple(sorted(row.version for row in versions if row.version == of or of in row.takes_over_from))


def able_versions(versions: Iterable[VersionRow], of: str, transition: str) -> tuple[str, ...]:
    """Those of them that declare the transition that comes next: no other could do it."""
    return accepted_versions([row for row in versions if row.declares(transition)], of)


def current_version(versions: Sequence[VersionRow]) -> str:
    """The version that new code is meant to be: of those that no other one takes over from, the one registered last.

    `versions` are newest first. Old workers may register after new ones: the order of registering alone says little. Versions that take over from
    each other, so that a run may go back too, are as new as each other.
    """
    reached = {row.version: _reached(versions, row.version) for row in versions}
    return next((row.version for row in versions if not _older(row.version, reached)), "")


def _reached(versions: Sequence[VersionRow], start: str) -> frozenset[str]:
    """Every version that this one takes over from, by way of others too."""
    before = {row.version: row.takes_over_from for row in versions}
    found: set[str] = set()
    ahead = [start]
    while ahead:
        new = set(before.get(ahead.pop(), ())) - found
        found |= new
        ahead += new
    return frozenset(found)


def _older(version: str, reached: Mapping[str, frozenset[str]]) -> bool:
    """Does another version take over from this one, and not this one from it?"""
    return any(
        version in below and newer not in reached[version] for newer, below in reached.items() if newer != version
    )
