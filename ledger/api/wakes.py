"""Read wakes and decisions."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router

from ledger.api import auth
from ledger.api.answers import answer
from ledger.api.parsing import known_query
from ledger.api.shapes.runs import PageQuery
from ledger.api.shapes.wakes import DecisionPage, WakePage, decision_json, wake_json
from ledger.services import reads

router = Router(tags=["record"])


@router.get("/runs/{uuid:run_id}/wakes", auth=auth.READ, response=WakePage)
def list_wakes(request: HttpRequest, run_id: UUID, query: Query[PageQuery]) -> HttpResponse:
    """A run's wakes, newest first."""
    known_query(request, PageQuery)
    page = reads.wakes(auth.caller(request), run_id, query.after, query.limit)
    return answer({"wakes": [wake_json(row) for row in page.items], "next": page.next})


@router.get("/runs/{uuid:run_id}/decisions", auth=auth.READ, response=DecisionPage)
def list_decisions(request: HttpRequest, run_id: UUID, query: Query[PageQuery]) -> HttpResponse:
    """What its wakes decided, newest first, with every check."""
    known_query(request, PageQuery)
    caller = auth.caller(request)
    page = reads.decisions(caller, run_id, query.after, query.limit)
    checks = reads.checks(caller, page.items)
    return answer({"decisions": [decision_json(row, checks.get(row.pk, [])) for row in page.items], "next": page.next})
