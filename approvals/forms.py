"""Forms of the console."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.http import QueryDict

from approvals import receipts
from approvals.domain.decisions import Receipt

_DIGEST = re.compile("[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision as the form brought it. Who may decide, state and risk are never read from a form; `seen` is None when the form was incomplete."""

    choice: str
    reason: str
    seen: tuple[int, bytes, Receipt] | None

    @classmethod
    def read(cls, data: QueryDict, request_id: UUID, person_id: UUID) -> Decision:
        """Read a posted form."""
        return cls(
            choice=str(data.get("decision", "")),
            reason=str(data.get("reason", "")),
            seen=_seen(data, request_id, person_id),
        )


def _seen(data: QueryDict, request_id: UUID, person_id: UUID) -> tuple[int, bytes, Receipt] | None:
    revision, digest, sealed = (_text(data.get(name)) for name in ("revision", "digest", "receipt"))
    receipt = receipts.read(sealed, request_id, person_id)
    if receipt is None or not (revision.isascii() and revision.isdigit() and len(revision) < 9):
        return None
    return (int(revision), bytes.fromhex(digest), receipt) if _DIGEST.fullmatch(digest) else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
