"""The effect protocol: propose, permit, settle, withdraw; and reading effects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router

from ledger.api import auth
from ledger.api.answers import answer, stored
from ledger.api.edge import trace
from ledger.api.parsing import KEYED, idempotency_key, known_query
from ledger.api.shapes.effects import (
    EffectJSON,
    EffectPage,
    EffectQuery,
    FenceBody,
    PermitAnswer,
    ProposalBody,
    ProposeBody,
    ProposedJSON,
    SettleAnswer,
    SettleBody,
    effect_json,
)
from ledger.domain.errors import LedgerError
from ledger.domain.identity import Caller
from ledger.domain.runs import Fence
from ledger.engine import proposals
from ledger.models import Effect
from ledger.services import effects, reads
from ledger.services.packets import EffectFacts

router = Router(tags=["effects"])


def effects_json(shown: Sequence[EffectFacts]) -> dict[str, Any]:
    """Effects by name."""
    return {each.row.name: _one(each) for each in shown}


@router.post(
    "/runs/{uuid:run_id}/effects", auth=auth.WORK, response={201: ProposedJSON, 200: ProposedJSON}, openapi_extra=KEYED
)
def propose_effect(request: HttpRequest, run_id: UUID, body: ProposeBody) -> HttpResponse:
    """Propose an effect outside a commit (a checkpoint of its own), or `accept` a recorded outcome by name. Needs an Idempotency-Key."""
    caller = auth.caller(request)
    key = idempotency_key(request)
    fence = Fence.parse(body.fence)
    if body.accept is not None:
        return answer(_one(effects.accept(caller, run_id, body.accept, fence)))
    proposal, expect_seq = _proposal(body)
    made = proposals.propose(caller, run_id, fence, expect_seq, replace(proposal.spec(key), trace=trace(request)), key)
    return answer({**_one(made.shown), "seq": made.seq}, 201 if made.new else 200, replayed=not made.new)


def _proposal(body: ProposeBody) -> tuple[ProposalBody, int]:
    """A body without `accept` is a whole proposal. Raises LedgerError `invalid`."""
    wanted = {"expect_seq": body.expect_seq, "name": body.name, "tool": body.tool, "target": body.target}
    absent = [name for name, value in wanted.items() if value is None]
    if "request" not in body.model_fields_set:
        absent.append("request")
    if absent or body.name is None or body.tool is None or body.target is None or body.expect_seq is None:
        raise LedgerError(
            "invalid",
            f"a proposal needs {', '.join(absent)}",
            "Send a whole proposal with expect_seq, or only fence and accept.",
            fields=[f"$.{name}" for name in absent],
        )
    proposal = ProposalBody(
        name=body.name,
        tool=body.tool,
        target=body.target,
        resource=body.resource,
        request=body.request,
        tool_digest=body.tool_digest,
    )
    return proposal, body.expect_seq


def _one(shown: EffectFacts) -> dict[str, Any]:
    return effect_json(shown.row, shown.target, shown.request, shown.result)


@router.post("/effects/{uuid:effect_id}/permit", auth=auth.WORK, response=PermitAnswer)
def permit_effect(request: HttpRequest, effect_id: UUID, body: FenceBody) -> HttpResponse:
    """Leave for one attempt, written before the call. Asking again under the same fence answers the same permit."""
    given = proposals.permit(auth.caller(request), effect_id, Fence.parse(body.fence))
    return answer(
        {
            "now": given.now,
            "permit": {
                "attempt": given.attempt,
                "key": given.key,
                "send_by": given.send_by,
                "answer_by": given.answer_by,
                "precondition": given.precondition,
                "request": stored(given.request),
                "verbatim": given.verbatim,
            },
            "effect": _one(given.shown),
        }
    )


@router.post("/effects/{uuid:effect_id}/settle", auth=auth.REPORT, response=SettleAnswer)
def settle_effect(request: HttpRequest, effect_id: UUID, body: SettleBody) -> HttpResponse:
    """What a permitted call came to. A stale worker's word is kept as evidence and doesn't count."""
    settled = effects.settle(auth.caller(request), effect_id, body.report(), Fence.parse(body.fence))
    return answer({"effect": _one(settled.shown), "counted": settled.counted})


@router.post("/effects/{uuid:effect_id}/withdraw", auth=auth.WORK, response=EffectJSON)
def withdraw_effect(request: HttpRequest, effect_id: UUID, body: FenceBody) -> HttpResponse:
    """Take a proposed effect back."""
    return answer(_one(effects.withdraw(auth.caller(request), effect_id, Fence.parse(body.fence))))


@router.get("/effects", auth=auth.READ, response=EffectPage)
def list_effects(request: HttpRequest, query: Query[EffectQuery]) -> HttpResponse:
    """Effects, newest first."""
    known_query(request, EffectQuery)
    caller = auth.caller(request)
    page = reads.effects(caller, query.run, query.state, query.after, query.limit)
    return answer({"effects": _rows_json(caller, page.items), "next": page.next})


@router.get("/effects/{uuid:effect_id}", auth=auth.READ, response=EffectJSON)
def read_effect(request: HttpRequest, effect_id: UUID) -> HttpResponse:
    """One effect as recorded."""
    caller = auth.caller(request)
    return answer(_rows_json(caller, [reads.effect(caller, effect_id)])[0])


def _rows_json(caller: Caller, rows: Sequence[Effect]) -> list[dict[str, Any]]:
    types = {row.run.workflow_id for row in rows}
    open_types = {each for each in types if reads.sees_payloads(caller, each)}
    results = reads.bodies(caller, [row.result_id for row in rows if row.run.workflow_id in open_types])
    shown = []
    for row in rows:
        content = row.request.content if row.run.workflow_id in open_types else None
        request = None if content is None else bytes(content)
        result = results.get(row.result_id) if row.result_id else None
        shown.append(effect_json(row, row.target.name, request, result))
    return shown
