"""History: what happened in the tenant, for people who may audit it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import structlog
from django.http import HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from approvals.services import history_pages
from approvals.services.entry_lines import Line
from approvals.services.history_pages import Entry, Exported, Filter
from approvals.views import errors, newer
from approvals.views.access import TenantRequest, tenant_page
from approvals.views.addresses import tidied
from ledger.domain.errors import LedgerError
from ledger.domain.identity import Verb
from ledger.services import permissions

_log = structlog.get_logger(__name__)
SEARCH = {"since": "from"}
"""A search's own name where the question whether anything is newer needs it."""


@require_safe
@tenant_page
def history(request: TenantRequest) -> HttpResponse:
    """A page of entries, newest first."""
    if shorter := tidied(request):
        return shorter
    asked = Filter.read(request.GET.dict())
    wrong: dict[str, str] = {}
    try:
        found = history_pages.history(request.person, request.tenant, asked)
    except LedgerError as error:
        wrong = errors.at_field(error)
        found = history_pages.unasked(request.person, request.tenant, asked)
    kept = _kept(asked)
    renamed = {SEARCH.get(name, name): text for name, text in kept.items()}
    context = {
        "history": found,
        "newer_url": newer.url(request, "history_newer", renamed, since=found.lines[0].item.at if found.lines else None)
        if not asked.before and not wrong
        else "",
        "wrong": wrong,
        "narrowed": bool(kept),
        "export_url": f"{reverse('history_export', args=[request.tenant.slug])}?{urlencode(kept)}".removesuffix("?"),
        "most": f"{history_pages.MOST_EXPORTED:,}",
        "next_url": f"?{urlencode({**kept, 'before': found.next})}" if found.next else "",
        "first_url": f"?{urlencode(kept)}" if asked.before else "",
    }
    newest = found.checks.newest if found.checks else None
    if newest is not None and newest.faults:
        context["administers"] = permissions.can(request.person, Verb.ADMINISTER, request.tenant)
    return render(request, "history/history.html", context, status=422 if wrong else 200)


@require_safe
@tenant_page
def entry(request: TenantRequest, stream: UUID, seq: int) -> HttpResponse:
    """One entry by itself, under an address by which it can be cited."""
    found = history_pages.entry(request.person, request.tenant, stream, seq)
    context = {"entry": found, "rows": _facts(found), "stream": stream, "before": seq - 1, "after": seq + 1}
    return render(request, "history/entry.html", context)


def _facts(found: Entry) -> list[dict[str, Any]]:
    line = found.line
    return [
        {"label": "When", "value": f"{line.item.at.astimezone(UTC):%-d %b %Y, %H:%M:%S.%f} UTC"},
        {"label": "Who", "value": line.item.actor},
        {"label": "Where", "value": line.task, "href": line.href},
        {"label": "Verb", "value": line.verb, "mono": True},
        {"label": "Digest", "value": line.digest, "mono": True, "copy_text": line.digest},
        {"label": "Digest before", "value": found.previous or "none: it is the first", "mono": bool(found.previous)},
    ]


@require_safe
@tenant_page
def history_export(request: TenantRequest) -> StreamingHttpResponse:
    """What a search finds as JSON Lines, the last of which says that it is the last and whether older entries were left out."""
    asked = Filter.read({**request.GET.dict(), "before": ""})
    steps = history_pages.export(request.person, request.tenant, asked)
    answer = StreamingHttpResponse(_exported(request, steps), content_type="application/jsonl")
    answer["Content-Disposition"] = f'attachment; filename="history-{request.tenant.slug}.jsonl"'
    return answer


def _exported(request: TenantRequest, steps: Iterator[Exported]) -> Iterator[bytes]:
    count, more, whole = 0, False, False
    try:
        for step in steps:
            for line, content in zip(step.lines, step.contents, strict=True):
                yield _jsonl(_document(line, content))
            count, more = count + len(step.lines), step.more
        yield _jsonl({"end": True, "entries": count, "older_left_out": more})
        whole = True
    finally:
        _log.info(
            "history_exported", tenant=request.tenant.slug, person=str(request.person.pk), entries=count, whole=whole
        )


def _document(line: Line, content: bytes) -> dict[str, Any]:
    return {
        "stream": line.stream,
        "seq": line.seq,
        "at": line.item.at.astimezone(UTC).isoformat(),
        "verb": line.verb,
        "who": line.item.actor,
        "title": line.item.title,
        "text": line.item.text,
        "call": line.what,
        "where": line.task,
        "entry": line.entry,
        "digest": line.digest,
        "content": content.decode(errors="replace"),
    }


def _jsonl(document: dict[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


@require_safe
@tenant_page
def history_newer(request: TenantRequest) -> HttpResponse:
    """204 while nothing of this search came after `since`, otherwise the bar that offers it."""
    query = request.GET.dict()
    asked = Filter.read({**query, **{name: query.get(other, "") for name, other in SEARCH.items()}})
    at = newer.since(request)
    href = f"{reverse('history', args=[request.tenant.slug])}?{urlencode(_kept(asked))}"
    return newer.answer(request, history_pages.moved(request.person, request.tenant, asked, at), href)


def _kept(asked: Filter) -> dict[str, str]:
    return {name: value for name, value in asdict(asked).items() if value and name != "before"}
