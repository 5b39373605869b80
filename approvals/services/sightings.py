"""What was seen of a target's resource, as cards show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from ledger.domain import canonical, material
from ledger.domain.errors import LedgerError
from ledger.models import Body, Effect, Observation


@dataclass(frozen=True, slots=True)
class Seen:
    """The target's resource as somebody saw it. `state` is None when only its version is known, `matters` when none of the fields that matter is."""

    id: UUID
    version: str
    state: Any
    source: str
    at: datetime
    run_id: UUID
    """Whose record holds it."""
    matters: Mapping[str, bytes] | None = None


def newest(effect: Effect, reads: bool, **where: Any) -> Seen | None:
    """The newest such observation of the effect's tenant; its contents only for who `reads` payloads."""
    rows = Observation.objects.of(effect.tenant_id).filter(**where).select_related("body").order_by("-observed_at")
    found = rows.first() if effect.resource else None
    if found is None:
        return None
    content = content_of(found.body) if found.body else None
    matters = material.fields(effect.target.material, content)
    return Seen(
        found.pk,
        found.version,
        _loose(content if reads else None),
        found.source,
        found.observed_at,
        found.run_id,
        matters,
    )


def moved(effect: Effect, before: Seen, now: Seen) -> bool:
    """Did the target's resource move: in its version, or in the fields that matter, where its target names some?"""
    return before.version != now.version and (not effect.target.material or bool(fields_moved(effect, before, now)))


def fields_moved(effect: Effect, before: Seen, now: Seen) -> tuple[str, ...]:
    """The fields that matter, as pointers, that aren't as they were."""
    return material.differ(effect.target.material, before.matters, now.matters)


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
