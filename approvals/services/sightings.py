"""What was seen of a target's resource, as cards show it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from ledger.domain import canonical
from ledger.domain.errors import LedgerError
from ledger.models import Body, Effect, Observation


@dataclass(frozen=True, slots=True)
class Seen:
    """The target's resource as somebody saw it. `state` is None when only its version is known."""

    id: UUID
    version: str
    state: Any
    source: str
    at: datetime
    run_id: UUID
    """Whose record holds it."""


def newest(effect: Effect, reads: bool, **where: Any) -> Seen | None:
    """The newest such observation of the effect's tenant; its contents only for who `reads` payloads."""
    rows = Observation.objects.of(effect.tenant_id).filter(**where).select_related("body").order_by("-observed_at")
    found = rows.first() if effect.resource else None
    if found is None:
        return None
    content = content_of(found.body) if reads and found.body else None
    return Seen(found.pk, found.version, _loose(content), found.source, found.observed_at, found.run_id)


def content_of(body: Body) -> bytes | None:
    """A body's bytes; None when they were erased."""
    return None if body.content is None else bytes(body.content)


def _loose(content: bytes | None) -> Any:
    if content is None:
        return None
    try:
        return canonical.parse(content)
    except LedgerError:
        return content.decode("utf-8", "replace")
