"""What speaks for a request beside its own state: the run's other calls whose outcome is known, each with who said so.

Of a request that was decided, as they stood then: from the entries and reports of the record that were there. What came of them since is told apart.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import OuterRef, Q, Subquery

from approvals.services.cards import Card
from ledger.domain import journal
from ledger.domain.effects import EffectState, LookAnswer, ReportKind
from ledger.models import Effect, EffectReport, JournalEntry

MOST_CALLS = 10
MOST_ENTRIES = 200
SETTLED = (EffectState.COMMITTED, EffectState.FAILED)
ASKED = (ReportKind.LOOKUP, ReportKind.REPLAY)
SURE = (LookAnswer.APPLIED, LookAnswer.REFUSED, LookAnswer.ABSENT)
MOVING = (
    "effect.permit",
    "effect.settle",
    "effect.look",
    "effect.replay",
    "effect.verdict",
    "effect.lapse",
    "lease.lapse",
)
"""Verbs of the entries that say how a call stands."""


@dataclass(frozen=True, slots=True)
class Called:
    """Another call of the run, and how it stood. `confirmed` is when its target, asked by us, said what became of it; None where we have only `said`,
    the kind of somebody's report, the last one `at`."""

    effect: Effect
    state: str
    disputed: bool
    reference: str
    confirmed: datetime | None
    said: str
    at: datetime | None


@dataclass(frozen=True, slots=True)
class Calls:
    """The newest settled calls but the one that is asked about: those that were there to decide on, and what became known `later`."""

    known: tuple[Called, ...]
    later: tuple[Called, ...]


def calls(card: Card) -> Calls:
    """The run's other calls: one query while the request is open, three afterwards."""
    now = _read(card, None)
    if card.over_at is None:
        return Calls(tuple(call for call in now if call.state in SETTLED)[:MOST_CALLS], ())
    stood = _stood(card, {call.effect.pk for call in now}, card.over_at)
    then = [_as_it_stood(call, stood) for call in _read(card, card.over_at)]
    known = tuple(call for call in then if call.state in SETTLED)[:MOST_CALLS]
    was = {call.effect.pk: (call.state, call.disputed, call.reference) for call in known}
    later = [call for call in now if (call.state, call.disputed, call.reference) != was.get(call.effect.pk)]
    told = [call for call in later if call.state in SETTLED or call.effect.pk in was]
    return Calls(known, tuple(told[:MOST_CALLS]))


def _read(card: Card, until: datetime | None) -> list[Called]:
    """The newest calls that anything was said of until then, as they stand by now, with what was said last until then."""
    tenant_id = card.request.tenant_id
    reports = EffectReport.objects.of(tenant_id).filter(effect=OuterRef("pk")).order_by("-ordinal")
    reports = reports if until is None else reports.filter(reported_at__lte=until)
    confirmed = reports.filter(kind__in=ASKED, answer__in=SURE)
    referred = reports.filter(counted=True).exclude(reference="")
    rows = Effect.objects.of(tenant_id).filter(run=card.request.run_id).exclude(pk=card.effect.pk)
    annotated: Any = rows.select_related("target").annotate(
        confirmed=Subquery(confirmed.values("reported_at")[:1]),
        said=Subquery(reports.values("kind")[:1]),
        said_at=Subquery(reports.values("reported_at")[:1]),
        referred=Subquery(referred.values("reference")[:1]),
    )
    newest = annotated.filter(Q(state__in=SETTLED) | Q(said__isnull=False)).order_by("-proposed_at", "-pk")[
        : 2 * MOST_CALLS
    ]
    return [_called(row, row.state, row.disputed) for row in newest]


def _called(row: Any, state: str, disputed: bool) -> Called:
    confirmed = None if disputed else row.confirmed
    return Called(row, state, disputed, row.referred or "", confirmed, row.said or "", row.said_at)


def _as_it_stood(call: Called, stood: Mapping[UUID, Mapping[str, Any]]) -> Called:
    then = stood.get(call.effect.pk, {})
    return _called(call.effect, str(then.get("state", "")), bool(then.get("disputed", False)))


def _stood(card: Card, effects: Collection[UUID], at: datetime) -> dict[UUID, dict[str, Any]]:
    """What the run's entries up to that moment said of these calls."""
    entries = JournalEntry.objects.of(card.request.tenant_id).filter(
        kind="run", stream_id=card.request.run_id, verb__in=MOVING, at__lte=at
    )
    contents = list(entries.order_by("-seq").values_list("content", flat=True)[:MOST_ENTRIES])
    stood: dict[UUID, dict[str, Any]] = {}
    for content in reversed(contents):
        for table, key, fields in journal.told(journal.parsed(bytes(content)) or {"changes": []}):
            if table == "effect" and (pk := UUID(key)) in effects:
                stood.setdefault(pk, {}).update(fields)
    return stood
