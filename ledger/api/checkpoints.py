"""Commit transitions; read checkpoints and resume packets."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router

from ledger.api import auth, markdown
from ledger.api.answers import answer
from ledger.api.edge import trace
from ledger.api.effects import effects_json
from ledger.api.parsing import KEYED, check_size, document, idempotency_key, known_query
from ledger.api.shapes.checkpoints import (
    CheckpointPage,
    CheckpointRead,
    CommitAnswer,
    CommitBody,
    checkpoint_json,
    committed_json,
    state_json,
)
from ledger.api.shapes.leases import PacketJSON, packet_json
from ledger.api.shapes.runs import PageQuery
from ledger.domain.identity import Caller
from ledger.engine import proposals
from ledger.services import packets, reads
from ledger.services.packets import Packet

router = Router(tags=["runs"], by_alias=True)

_MARKDOWN = {"responses": {200: {"content": {"text/markdown": {"schema": {"type": "string"}}}}}}


@router.post(
    "/runs/{uuid:run_id}/checkpoints",
    auth=auth.WORK,
    response={201: CommitAnswer, 200: CommitAnswer},
    openapi_extra=KEYED,
)
def commit_transition(request: HttpRequest, run_id: UUID, body: CommitBody) -> HttpResponse:
    """Commit a transition: state, effects, wait and next step together. Needs an Idempotency-Key; a repeat is answered with 200."""
    caller = auth.caller(request)
    key = idempotency_key(request)
    check_size("the state", body.state)
    spec = body.spec(key, document(request))
    traced = tuple(replace(proposal, trace=trace(request)) for proposal in spec.propose)
    made, repeated = proposals.commit(caller, run_id, replace(spec, propose=traced))
    return answer(committed_json(made, effects_json(made.effects)), 200 if repeated else 201, replayed=repeated)


@router.get("/runs/{uuid:run_id}/checkpoints", auth=auth.READ, response=CheckpointPage)
def list_checkpoints(request: HttpRequest, run_id: UUID, query: Query[PageQuery]) -> HttpResponse:
    """A run's checkpoints in order, without their states."""
    known_query(request, PageQuery)
    page = reads.checkpoints(auth.caller(request), run_id, query.after, query.limit)
    return answer({"checkpoints": [checkpoint_json(row) for row in page.items], "next": page.next})


@router.get("/runs/{uuid:run_id}/checkpoints/{int:seq}", auth=auth.READ, response=CheckpointRead)
def read_checkpoint(request: HttpRequest, run_id: UUID, seq: int) -> HttpResponse:
    """One checkpoint with its state, exactly as committed."""
    caller = auth.caller(request)
    row = reads.checkpoint(caller, run_id, seq)
    shown = reads.sees_payloads(caller, reads.run(caller, run_id).workflow_id)
    return answer({**checkpoint_json(row), "state": state_json(row) if shown else None})


@router.get("/runs/{uuid:run_id}/resume-packet", auth=auth.READ, response=PacketJSON)
def read_packet(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """What the next owner would be told now. Its fence is null: only a claim hands one out."""
    return answer(packet_json(_packet(auth.caller(request), run_id), holder=False))


@router.get("/runs/{uuid:run_id}/resume-packet.md", auth=auth.READ, response={200: None}, openapi_extra=_MARKDOWN)
def read_packet_markdown(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """The same for a model's context: byte-identical for the same checkpoint and clearance; what came from outside is fenced as data."""
    packet = _packet(auth.caller(request), run_id)
    return HttpResponse(markdown.packet(packet), content_type="text/markdown; charset=utf-8")


def _packet(caller: Caller, run_id: UUID) -> Packet:
    run = reads.run(caller, run_id)
    if not reads.sees_payloads(caller, run.workflow_id):
        raise reads.missing("resume packet")
    return packets.of(caller.tenant_id, [run_id])[0]
