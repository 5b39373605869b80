"""Worker processes as they show themselves: one row per start of a process, for people to look at. Nothing is decided from it."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import connection

from ledger.domain.identity import Caller
from ledger.domain.leases import Offer
from ledger.models import Worker
from ledger.services import facts
from ledger.services.contracts import writes
from ledger.services.facts import to_sqlite

NOTED_EVERY: Final = 30.0
"""Seconds between two writes about the same worker in one process of ours: a polling worker isn't a write a second."""
KNOWN_AT_MOST: Final = 10_000
NEWEST: Final = 200
"""Worker processes among which it is looked who offered what."""
_noted: dict[object, float] = {}


@writes(
    moves="A worker process's row, once in half a minute at most. No entry.",
    twice="Within the time nothing is written.",
    dies="Nothing is decided from the row.",
)
def note(caller: Caller, offer: Offer) -> None:
    """Keep a worker's row: what it is called, which code it runs, what it offers, and when it was last seen."""
    now = time.monotonic()
    if now - _noted.get(offer.worker_id, -NOTED_EVERY) < NOTED_EVERY or caller.key_id is None:
        return
    if len(_noted) >= KNOWN_AT_MOST:
        _noted.clear()
    at = facts.clock()
    offers = facts.json_text({name: list(versions) for name, versions in offer.versions.items()})
    cast = "::jsonb" if connection.vendor == "postgresql" else ""
    values: list[Any] = [offer.worker_id, caller.tenant_id, caller.key_id, offer.name, offer.code_digest, offers]
    params = values if connection.vendor == "postgresql" else [to_sqlite(value) for value in values]
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO ledger_worker (id, tenant_id, key_id, name, code_digest, offers, started_at, seen_at)"
            f" VALUES (%s, %s, %s, %s, %s, %s{cast}, {at}, {at})"
            f" ON CONFLICT (id) DO UPDATE SET seen_at = {at}, offers = excluded.offers"
            " WHERE ledger_worker.tenant_id = excluded.tenant_id",
            params,
        )
    _noted[offer.worker_id] = now


Wanted = tuple[str, tuple[str, ...]]
"""A workflow's name, and the versions of it that would do."""


def heard(tenant_id: UUID, wanted: Collection[Wanted]) -> Mapping[Wanted, datetime]:
    """When a worker that offers one of the versions was seen last, for each that any of the `NEWEST` processes does. At most one query."""
    if not wanted:
        return {}
    newest = Worker.objects.of(tenant_id).order_by("-seen_at").values_list("offers", "seen_at")[:NEWEST]
    found: dict[Wanted, datetime] = {}
    for offers, seen_at in newest:
        for workflow, versions in wanted:
            if set(offers.get(workflow, ())) & set(versions):
                found.setdefault((workflow, versions), seen_at)
    return found
