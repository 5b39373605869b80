"""Journal entries as a timeline: newest first, keyset paged, names resolved, links to rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

from django.urls import reverse

from approvals.domain import entries
from approvals.domain.entries import Told
from approvals.services import actors
from approvals.services.pieces import Item
from approvals.templatetags.console import span
from approvals.templatetags.console import visible_text as shown
from ledger.domain import journal
from ledger.models import JournalEntry, Tenant

SHOWN = 25
LONG = timedelta(minutes=5)
"""From here on a timeline says how much time passed between two entries."""
QUIET = ("wake.begin",)
"""Verbs that tell nothing which the next entry doesn't: the history has them, a run's timeline hasn't."""

ANCHORS = {"wake.": "#wakes", "checkpoint.": "#checkpoints", "request.": "#authority", "grant.": "#authority"}


def of_run(
    tenant: Tenant, run_id: UUID, effects: Mapping[str, Mapping[str, str]], before: int | None = None
) -> tuple[tuple[Item, ...], int | None]:
    """A page of a run's timeline, and the sequence before which the next page goes on."""
    rows = JournalEntry.objects.of(tenant).filter(stream_id=run_id, kind="run").exclude(verb__in=QUIET)
    if before is not None:
        rows = rows.filter(seq__lt=before)
    found = list(rows.order_by("-seq")[: SHOWN + 1])
    more, found = len(found) > SHOWN, found[:SHOWN]
    return spaced(folded(items(tenant, found, effects))), found[-1].seq if more else None


HOLDING = ("run.claim", "run.release", "lease.lapse", "effect.refuse")
"""Verbs by which workers come to hold a run and cease to."""
MOST_HOLDING = 8


def claims(tenant: Tenant, run_id: UUID, until: datetime) -> tuple[Item, ...]:
    """Who held a run last, up to a moment, and how they lost it; newest first."""
    rows = JournalEntry.objects.of(tenant).filter(stream_id=run_id, kind="run", verb__in=HOLDING, at__lte=until)
    return items(tenant, list(rows.order_by("-seq")[:MOST_HOLDING]), {})


def folded(lines: Sequence[Item]) -> tuple[Item, ...]:
    """Neighbours that say the same are one line that says how often; the newest stands for them. Lines come newest first."""
    told: list[tuple[Item, int]] = []
    for line in lines:
        if told and replace(line, at=told[-1][0].at) == told[-1][0]:
            told[-1] = (told[-1][0], told[-1][1] + 1)
        else:
            told.append((line, 1))
    return tuple(_often(line, times) for line, times in told)


def spaced(lines: Sequence[Item]) -> tuple[Item, ...]:
    """The same lines, each with the time that had passed since the one before it, where it was long enough to tell. Lines come newest first."""
    passed = [newer.at - older.at for newer, older in pairwise(lines)]
    gaps = [span(time.total_seconds()) if time >= LONG else "" for time in passed]
    return tuple(replace(line, gap=gap) for line, gap in zip(lines, [*gaps, ""], strict=True)) if lines else ()


def _often(line: Item, times: int) -> Item:
    if times == 1:
        return line
    return replace(line, text=" · ".join(part for part in (line.text, f"{times} times, this is the last") if part))


def items(tenant: Tenant, rows: Sequence[JournalEntry], effects: Mapping[str, Mapping[str, str]]) -> tuple[Item, ...]:
    """Entries as items, in their order."""
    documents = [document(row) for row in rows]
    workers = actors.workers(tenant.pk, documents)
    told = [(row, entries.read(each, effects, workers)) for row, each in zip(rows, documents, strict=True)]
    name = actors.names(tenant.pk, {entry.actor for _, entry in told})
    return tuple(item(row, entry, name, tenant.slug) for row, entry in told)


def document(row: JournalEntry) -> dict[str, Any]:
    """An entry's document; one that somebody made unreadable is still told of, by its columns: verification says what is wrong with it."""
    return journal.parsed(bytes(row.content)) or {"seq": row.seq, "actor": row.actor, "verb": row.verb, "changes": []}


def item(row: JournalEntry, told: Told, name: Callable[[str], str], slug: str) -> Item:
    """An entry that was read as an item, with the address of what it is about."""
    says = entries.sentence(told)
    return Item(
        at=row.at,
        title=shown(says.title),
        text=shown(says.text),
        state=says.state,
        actor=name(told.actor),
        href=_link(told, slug),
    )


def _link(told: Told, slug: str) -> str:
    """Where the row that this is about is shown."""
    for table in ("permit", "effect_report"):
        effect_id = told.first(table).get("effect_id")
        if effect_id:
            return reverse("effect", args=[slug, effect_id])
    handoff = next(told.of("handoff"), None)
    if handoff is not None:
        return reverse("handoff", args=[slug, handoff.key])
    return next((anchor for prefix, anchor in ANCHORS.items() if told.verb.startswith(prefix)), "")
