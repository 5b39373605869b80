"""Read waits."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router

from ledger.api import auth
from ledger.api.answers import answer
from ledger.api.parsing import known_query
from ledger.api.shapes.runs import PageQuery
from ledger.api.shapes.waits import WaitPage, wait_json
from ledger.services import reads

router = Router(tags=["record"])


@router.get("/runs/{uuid:run_id}/waits", auth=auth.READ, response=WaitPage)
def list_waits(request: HttpRequest, run_id: UUID, query: Query[PageQuery]) -> HttpResponse:
    """What a run waits and waited for, newest first."""
    known_query(request, PageQuery)
    caller = auth.caller(request)
    page = reads.waits(caller, run_id, query.after, query.limit)
    members = reads.members(caller, page.items)
    reasons = reads.reasons(caller, run_id, members)
    waits = [wait_json(row, members.get(row.pk, []), reasons) for row in page.items]
    return answer({"waits": waits, "next": page.next})
