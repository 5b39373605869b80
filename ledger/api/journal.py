"""Read, verify and export a run's journal."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from ninja import Query, Router

from ledger.api import auth
from ledger.api.answers import answer, encode
from ledger.api.parsing import known_query
from ledger.api.shapes.journal import EntryPage, VerifyAnswer, entry_json, report_json
from ledger.api.shapes.runs import PageQuery
from ledger.services import reads, verify

router = Router(tags=["record"])

JSON_LINES = "application/jsonl"
_LINES = {
    "responses": {
        200: {"content": {JSON_LINES: {"schema": {"type": "string", "description": "One EntryJSON a line."}}}}
    }
}


@router.get("/runs/{uuid:run_id}/journal", auth=auth.READ, response=EntryPage)
def list_entries(request: HttpRequest, run_id: UUID, query: Query[PageQuery]) -> HttpResponse:
    """A run's entries in order."""
    known_query(request, PageQuery)
    page = reads.journal(auth.caller(request), run_id, query.after, query.limit)
    return answer({"entries": [entry_json(row) for row in page.items], "next": page.next})


@router.get("/runs/{uuid:run_id}/verify", auth=auth.READ, response=VerifyAnswer)
def verify_run(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Recompute a run's chain, checkpoints and bodies, and replay its journal against its rows. Nothing is repaired."""
    caller = auth.caller(request)
    reads.run(caller, run_id)
    return answer(report_json(verify.run(run_id, caller.tenant_id)))


@router.get("/runs/{uuid:run_id}/export", auth=auth.READ, response={200: None}, openapi_extra=_LINES)
def export_run(request: HttpRequest, run_id: UUID) -> StreamingHttpResponse:
    """All entries as JSON Lines: enough to verify the chain offline."""
    rows = reads.export(auth.caller(request), run_id)
    response = StreamingHttpResponse((encode(entry_json(row)) + b"\n" for row in rows), content_type=JSON_LINES)
    response["Content-Disposition"] = f'attachment; filename="run-{run_id}.jsonl"'
    return response
