"""Start runs, search them, read one."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router

from ledger.api import auth
from ledger.api.answers import answer
from ledger.api.edge import trace
from ledger.api.parsing import KEYED, check_size, idempotency_key, known_query
from ledger.api.shapes.runs import RunAnswer, RunPage, RunQuery, StartBody, run_json, started_json
from ledger.services import reads, runs
from ledger.services.explain import explain
from ledger.services.reads import RunFilter

router = Router(tags=["runs"])


@router.post("/runs", auth=auth.START, response={201: RunAnswer, 200: RunAnswer}, openapi_extra=KEYED)
def start_run(request: HttpRequest, body: StartBody) -> HttpResponse:
    """Start a run. Needs an Idempotency-Key: the same key and content again answers the same run with 200."""
    caller = auth.caller(request)
    key = idempotency_key(request)
    check_size("the state", body.state)
    check_size("attributes", body.attributes)
    started = runs.start(caller, replace(body.spec(key), trace=trace(request)))
    return answer({"run": started_json(started)}, 201 if started.created else 200, replayed=not started.created)


@router.get("/runs", auth=auth.READ, response=RunPage)
def list_runs(request: HttpRequest, query: Query[RunQuery]) -> HttpResponse:
    """Search runs, newest first. A page may be short and still have a `next`."""
    known_query(request, RunQuery)
    wanted = RunFilter(
        query.status,
        query.workflow,
        query.version,
        query.task,
        query.text,
        query.health,
        query.owner,
        tuple(query.attribute),
    )
    page = reads.runs(auth.caller(request), wanted, query.after, query.limit)
    return answer({"runs": [run_json(run) for run in page.items], "next": page.next})


@router.get("/runs/{uuid:run_id}", auth=auth.READ, response=RunAnswer)
def read_run(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """One run with its explanation, which names teams and no people. The ETag is its version: it changes with every entry of its journal."""
    caller = auth.caller(request)
    run = reads.run(caller, run_id)
    response = answer({"run": run_json(run, explain(run_id, caller.tenant_id, names=False))})
    response["ETag"] = f'"{run.head.head_seq}"'
    return response
