"""Journal entries and verification."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from pydantic import BaseModel

from ledger.models import JournalEntry
from ledger.services.verify import Report


class EntryJSON(BaseModel):
    """`content` is what was hashed, byte for byte: SHA-256 over the previous entry's digest and these bytes in UTF-8 is `digest`."""

    seq: int
    digest: str
    content: str


class EntryPage(BaseModel):
    entries: list[EntryJSON]
    next: str


class FaultJSON(BaseModel):
    seq: int | None
    object: str | None
    code: str
    reason: str


class VerifyAnswer(BaseModel):
    run: UUID
    intact: bool
    entries: int
    rows: int
    faults: list[FaultJSON]


def entry_json(row: JournalEntry) -> dict[str, Any]:
    """An `EntryJSON`."""
    return {"seq": row.seq, "digest": row.digest, "content": bytes(row.content).decode(errors="replace")}


def report_json(report: Report) -> dict[str, Any]:
    """A `VerifyAnswer`."""
    return {
        "run": report.run_id,
        "intact": report.intact,
        "entries": report.entries,
        "rows": report.rows,
        "faults": [
            {"seq": fault.seq, "object": fault.object, "code": fault.code, "reason": fault.reason}
            for fault in report.faults
        ],
    }
