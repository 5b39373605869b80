"""What a stream's rows and entries refer to: checkpoints by their digests, bodies by their commitments, and what a run's starter said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from ledger.domain.canonical import canonical, commit, parse
from ledger.domain.checkpoints import CheckpointFields, CheckpointKind, checkpoint_digest, committed_digest
from ledger.domain.journal import Fault
from ledger.domain.runs import Fence
from ledger.services import facts
from ledger.services.facts import Part, Row


def checkpoints(run_id: UUID, told: Mapping[str, Mapping[str, Any]], salt: bytes | None) -> list[Fault]:
    """Each hashes to its digest and names the one before. Under an erased salt its texts are what its entry has of them."""
    faults = []
    previous = bytes(32)
    for row in facts.read(rows=Part("checkpoint", "t.run_id = %s", (run_id,), many=True, order="t.seq")).many("rows"):
        if not _hashes(row, previous, told.get(f"checkpoint:{row['id']}", {}), salt):
            faults.append(
                Fault(
                    None,
                    f"checkpoint:{row['id']}",
                    "checkpoint-differs",
                    f"checkpoint {row['seq']} doesn't hash to its digest",
                )
            )
        previous = row["digest"]
    return faults


def fields(row: Row) -> CheckpointFields:
    """What a stored checkpoint's digest covers."""
    return CheckpointFields(
        run_id=row["run_id"],
        seq=row["seq"],
        kind=CheckpointKind(row["kind"]),
        previous_digest=row["previous_digest"],
        last_transition=row["last_transition"],
        next_transition=row["next_transition"],
        instance_id=row["instance_id"],
        version=row["version"],
        code_version=row["code_version"],
        fence=Fence(row["fence_epoch"], row["fence_count"]),
        state_commitment=row["state_commitment"],
        artifacts=tuple(row["artifacts"]),
    )


def _hashes(row: Row, previous: bytes, told: Mapping[str, Any], salt: bytes | None) -> bool:
    if row["kind"] not in set(CheckpointKind):
        return False
    covered = replace(fields(row), previous_digest=previous)
    erased = committed_digest(covered, told.get("code_version"), told.get("artifacts"))
    return bool((erased if salt is None else checkpoint_digest(covered, salt)) == row["digest"])


def bodies(replayed: Mapping[str, dict[str, Any]]) -> list[Fault]:
    """Every body that a stream's entries brought in still has the bytes that its commitment covers, or was erased."""
    faults = []
    told = {UUID(name.partition(":")[2]): fields for name, fields in replayed.items() if name.startswith("body:")}
    for ids in _batches(sorted(told)):
        each = ", ".join(["%s"] * len(ids))
        rows = {
            row["id"]: row
            for row in facts.read(rows=Part("body", f"t.id IN ({each})", tuple(ids), many=True)).many("rows")
        }
        for body_id in ids:
            row = rows.get(body_id)
            if row is None:
                faults.append(Fault(None, f"body:{body_id}", "row-missing", f"body {body_id} isn't there"))
            elif row["erased_at"] is not None and told[body_id].get("erased_at") is None:
                faults.append(
                    Fault(None, f"body:{body_id}", "erasure-unknown", f"body {body_id} was erased past the journal")
                )
            elif not (_as_told(row, told[body_id]) and _whole(row)):
                faults.append(
                    Fault(
                        None,
                        f"body:{body_id}",
                        "body-differs",
                        f"body {body_id}: its bytes don't match their commitment",
                    )
                )
    return faults


def _as_told(row: Row, told: Mapping[str, Any]) -> bool:
    return (row["commitment"].hex(), row["media"], row["size"]) == (
        told.get("commitment"),
        told.get("media"),
        told.get("size"),
    )


def _whole(row: Row) -> bool:
    if row["erased_at"] is not None:
        return True
    if row["salt"] is None or row["content"] is None:
        return False
    return bool(commit(row["salt"], row["content"]) == row["commitment"]) and len(row["content"]) == row["size"]


def said(run_id: UUID, run: Row | None) -> list[Fault]:
    """The run's columns for people's search, which stand in no entry, must say what the caller said: that is a body with a commitment."""
    about = facts.read(about=Part("body", "t.id = %s", (run["about_id"],))).row("about") if run else None
    if run is None or about is None or about["content"] is None or not _whole(about):
        return []  # what is wrong with the body has a fault of its own
    told = parse(about["content"])
    return [
        Fault(None, f"run:{run_id}", "copy-differs", f"the run's {column} isn't what its starter said")
        for column in ("task", "text", "attributes")
        if canonical(told.get(column)) != canonical(run[column])
    ]


def _batches(ids: list[UUID], size: int = 200) -> Iterable[list[UUID]]:
    return (ids[start : start + size] for start in range(0, len(ids), size))
