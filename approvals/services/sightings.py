"""What was seen of a target's resource, as cards show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from ledger.domain import canonical, material
from ledger.domain.errors import LedgerError
from ledger.models import Body, Effect, Observation
from ledger.services.ids import first_id

MOST_LATER = 5
"""Looks after a decision that its card names."""


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
    found = _looks(effect, **where).first() if effect.resource else None
    return None if found is None else _seen(effect, found, reads)


def by_workflow(effect: Effect, workflow_id: UUID | None, reads: bool, **where: Any) -> Seen | None:
    """The newest look by a run of the workflow; those of other workflows' runs are for who may see them there."""
    return newest(effect, reads, **_of(effect, workflow_id), **where)


def known(effect: Effect, workflow_id: UUID | None, reads: bool, at: datetime) -> Seen | None:
    """The newest look of the same kind that was on record at that moment: one that was under way then isn't."""
    return by_workflow(effect, workflow_id, reads, pk__lt=_after(at))


def later(effect: Effect, workflow_id: UUID | None, reads: bool, at: datetime) -> tuple[Seen, ...]:
    """The newest looks that came on record after that moment, the newest first."""
    if not effect.resource:
        return ()
    rows = _looks(effect, **_of(effect, workflow_id), pk__gte=_after(at))
    return tuple(_seen(effect, row, reads) for row in rows[:MOST_LATER])


def of_card(
    effect: Any, revision: Any, reads: bool, workflow_id: UUID | None, over_at: datetime | None
) -> dict[str, Any]:
    """What the target showed, as the card's fields: of a request that is over what was on record then, and apart from it what came later."""
    of, called_at = (effect, workflow_id, reads), effect.called_at
    proposed = newest(effect, reads, pk=effect.observation_id)
    last = by_workflow(*of, **({} if called_at is None else {"observed_at__lte": called_at}))
    return {
        "before": newest(effect, reads, pk=revision.previous_observation_id),
        "proposed": proposed,
        "newest": last,
        "shown": (known(*of, over_at) if over_at else last) or proposed,
        "later": later(*of, over_at) if over_at else (),
    }


def _after(at: datetime) -> UUID:
    return first_id(at + timedelta(milliseconds=1))


def _of(effect: Effect, workflow_id: UUID | None) -> dict[str, Any]:
    return {"target": effect.target_id, "resource": effect.resource, "run__workflow": workflow_id}


def _looks(effect: Effect, **where: Any) -> QuerySet[Observation]:
    rows: QuerySet[Observation] = Observation.objects.of(effect.tenant_id).filter(**where).select_related("body")
    return rows.order_by("-observed_at")


def _seen(effect: Effect, found: Observation, reads: bool) -> Seen:
    content = content_of(found.body) if found.body else None
    matters = material.fields(effect.target.material, content)
    state = _loose(content if reads else None)
    return Seen(found.pk, found.version, state, found.source, found.observed_at, found.run_id, matters)


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
