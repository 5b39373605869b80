"""Journal entries as the history tells them: what was done to which thing, by whom, with an address by which each entry can be cited.

What stands in the arguments of a call is told to who may see the contents of its workflow, and to nobody else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Case, Exists, F, OuterRef, When
from django.urls import reverse

from approvals.domain import entries
from approvals.domain.entries import Told
from approvals.models import ApprovalRequest
from approvals.renderers import Asked, words_for
from approvals.services import actors, timelines, verification_pages
from approvals.services.pieces import Item
from approvals.templatetags.console import visible_text as shown
from ledger.domain import canonical, journal
from ledger.domain.errors import LedgerError
from ledger.domain.identity import Verb
from ledger.models import Effect, EffectReport, Grant, JournalEntry, Run, Tenant, User
from ledger.services import permissions

ABOUT_A_CALL = ("effect.", "request.", "grant.", "lease.lapse")
"""Beginnings of the verbs whose entries say of one call what became of it."""
LARGEST = 16_384
"""Bytes of arguments that are read for a line; larger ones are told by tool and target alone."""


@dataclass(frozen=True, slots=True)
class Line:
    """One entry, with the run that it belongs to. `what` is the call that it is about, in its card's words, or the right and whose it is.

    `item.href` and `href`, the run's, are '' for what this person can't open.
    """

    item: Item
    what: str
    verb: str
    stream: str
    seq: int
    digest: str
    task: str
    href: str
    entry: str
    standing: str
    """What the newest check of its chain says of it; '' where that isn't told."""


@dataclass(frozen=True, slots=True)
class _Run:
    """A run's task, and whether this person sees the run and may see its contents."""

    task: str
    sees: bool
    reads: bool


@dataclass(frozen=True, slots=True)
class _Facts:
    """What lines need beside their entries: the runs by id; the calls by their own id and by those of a request or a grant for them; the requests by
    their own id and by that of a grant; references by report."""

    runs: Mapping[UUID, _Run]
    effects: Mapping[str, Mapping[str, Any]]
    requests: Mapping[str, str]
    references: Mapping[str, str]


def lines(user: User, tenant: Tenant, rows: Sequence[JournalEntry]) -> tuple[Line, ...]:
    """The entries as lines, in their order: nine queries at most, however many there are."""
    documents = [timelines.document(row) for row in rows]
    facts = _facts(user, tenant, rows, documents)
    workers = actors.workers(tenant.pk, documents)
    told = [entries.read(document, facts.effects, workers, facts.references) for document in documents]
    whom = {actor for entry in told for _, actor, _ in entries.rights(entry)}
    name = actors.names(tenant.pk, {entry.actor for entry in told} | whom)
    standing = verification_pages.standings(tenant, rows)
    return tuple(
        _line(tenant, row, each, name, facts, standing.get(row.pk, "")) for row, each in zip(rows, told, strict=True)
    )


def _line(
    tenant: Tenant, row: JournalEntry, told: Told, name: Callable[[str], str], facts: _Facts, standing: str
) -> Line:
    item = timelines.item(row, told, name, tenant.slug)
    run = facts.runs.get(row.stream_id)
    page = reverse("run", args=[tenant.slug, row.stream_id]) if run is not None and run.sees else ""
    return Line(
        item=Item(
            at=item.at,
            title=item.title,
            text=item.text,
            state=item.state,
            actor=item.actor,
            href=_place(tenant, told, item.href, page, facts),
        ),
        what=_what(told, facts) or _right(told, name),
        verb=row.verb,
        stream=f"{row.kind}:{row.stream_id}",
        seq=row.seq,
        digest=bytes(row.digest).hex(),
        task=shown(run.task) if run is not None else "Administration" if row.kind == "tenant" else "Event",
        href=page,
        entry=reverse("entry", args=[tenant.slug, row.stream_id, row.seq]),
        standing=standing,
    )


def _place(tenant: Tenant, told: Told, href: str, page: str, facts: _Facts) -> str:
    """Where what the entry is about is shown: the request, the call, the handoff, or its part of the run's page."""
    if not page:
        return ""
    request = next((facts.requests[key] for key in entries.leave_of(told) if key in facts.requests), "")
    if request and told.verb.startswith(("request.", "grant.")):
        return reverse("approval", args=[tenant.slug, request])
    return f"{page}{href}" if href.startswith("#") else href or page


def _what(told: Told, facts: _Facts) -> str:
    effect = facts.effects.get(entries.effect_of(told))
    if effect is None or not told.verb.startswith(ABOUT_A_CALL):
        return ""
    asked = Asked(effect["tool"], effect["target"], effect["resource"], effect["arguments"])
    return shown(words_for(asked).headline)


def _right(told: Told, name: Callable[[str], str]) -> str:
    """Which right was given or taken, whose, and where."""
    rights = (
        f"{verb}: {name(actor) if actor else 'a team'}, {'the whole tenant' if whole else 'one workflow'}"
        for verb, actor, whole in entries.rights(told)
    )
    return "; ".join(rights)


def _facts(user: User, tenant: Tenant, rows: Sequence[JournalEntry], documents: Iterable[Mapping[str, Any]]) -> _Facts:
    runs = _runs(user, tenant, {row.stream_id for row in rows if row.kind == "run"})
    effects, leave, reports = _named(documents)
    requests = ApprovalRequest.objects.of(tenant).filter(pk__in=leave).values_list("pk", "subject_id", F("pk"))
    grants = Grant.objects.of(tenant).filter(pk__in=leave).values_list("pk", "subject_id", "request_id")
    asked = list(requests.union(grants, all=True))
    calls = _calls(tenant, effects | {of for _, of, _ in asked}, [pk for pk, run in runs.items() if run.reads])
    told = EffectReport.objects.of(tenant).filter(pk__in=reports).values_list("pk", "reference") if reports else ()
    return _Facts(
        runs=runs,
        effects=calls | {str(pk): calls[str(of)] for pk, of, _ in asked if str(of) in calls},
        requests={str(pk): str(request) for pk, _, request in asked if request},
        references={str(pk): shown(reference) for pk, reference in told},
    )


def _runs(user: User, tenant: Tenant, ids: Iterable[UUID]) -> dict[UUID, _Run]:
    """These runs, with what this person may see of each. One query."""
    sees, reads, approves = (
        Exists(permissions.visible(user, verb).filter(pk=OuterRef("workflow_id")))
        for verb in (Verb.SEE, Verb.SEE_PAYLOADS, Verb.APPROVE)
    )
    rows = Run.objects.of(tenant).filter(pk__in=list(ids)).annotate(sees=sees, reads=reads | approves)
    return {pk: _Run(*told) for pk, *told in rows.values_list("pk", "task", "sees", "reads")}


def _named(documents: Iterable[Mapping[str, Any]]) -> tuple[set[UUID], set[UUID], set[UUID]]:
    """What entries name: effects, requests and grants, and reports with a reference."""
    effects, leave, reports = set(), set(), set()
    for document in documents:
        for table, key, fields in journal.told(document):
            effects |= {key if table == "effect" else "", fields.get("effect_id"), fields.get("subject_id")}
            leave |= {key if table in ("approval_request", "grant") else "", fields.get("request_id")}
            reports |= {key if table == "effect_report" and fields.get("reference") else ""}
    return _ids(effects), _ids(leave), _ids(reports)


def _ids(texts: Iterable[Any]) -> set[UUID]:
    """What of these is an id: an entry that somebody altered may say anything."""
    return {row for row in map(actors.row_id, filter(None, texts)) if row is not None}


def _calls(tenant: Tenant, ids: set[UUID], readable_runs: Sequence[UUID]) -> dict[str, dict[str, Any]]:
    """These effects by their id, with the arguments of those runs' alone."""
    readable = When(run__in=readable_runs, request__size__lte=LARGEST, then=F("request__content"))
    rows = Effect.objects.of(tenant).filter(pk__in=ids).annotate(content=Case(readable, default=None))
    return {
        str(pk): {"name": name, "tool": tool, "target": target, "resource": resource, "arguments": _arguments(content)}
        for pk, name, tool, target, resource, content in rows.values_list(
            "pk", "name", "tool", "target__name", "resource", "content"
        )
    }


def _arguments(content: Any) -> Any:
    try:
        return canonical.parse(bytes(content)) if content is not None else None
    except LedgerError:
        return None
