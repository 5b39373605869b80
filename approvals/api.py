"""Read approval requests; decide as a signed-in person. No bearer key decides, whatever it may do elsewhere."""

from __future__ import annotations

from typing import Any, Literal, cast
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Router
from ninja.security.base import AuthBase
from ninja.utils import check_csrf
from pydantic import BaseModel, Field

from approvals.domain.decisions import LONGEST_REASON, EntryPoint, Receipt
from approvals.models import ApprovalRequest
from approvals.services import decisions
from approvals.services.refusals import reasons
from ledger.api import auth
from ledger.api.answers import answer
from ledger.api.parsing import Exact, Number
from ledger.domain.errors import LedgerError
from ledger.models import User
from ledger.services import reads

router = Router(tags=["approvals"])
RENDERER = "api/1"
"""What showed the subject to whoever decides by this call: the JSON of these routes."""


class Session(AuthBase):
    """A signed-in person's session with the CSRF token. Raises LedgerError `agents-never-decide`, `unauthenticated`, `forbidden`."""

    openapi_type = "apiKey"
    openapi_in = "cookie"
    openapi_name = "resumeapp_session"

    def __call__(self, request: HttpRequest) -> User:
        if "Authorization" in request.headers:
            raise LedgerError(
                "agents-never-decide",
                "a key never decides, whoever's it is",
                "A signed-in person decides, in the inbox or by this call with their session.",
            )
        user = request.user
        if not isinstance(user, User):
            raise LedgerError("unauthenticated", "nobody is signed in", "Sign in at /sign-in/.")
        if check_csrf(request) is not None:
            raise LedgerError(
                "forbidden", "the CSRF token is missing or wrong", "Send the cookie's token as X-CSRFToken."
            )
        return user


class DecisionBody(Exact):
    """A vote on exactly what was read: `revision` and `digest` are those of the card."""

    decision: Literal["approve", "deny"]
    reason: str = Field(default="", max_length=LONGEST_REASON)
    revision: Number = Field(ge=1)
    digest: str = Field(pattern=r"^[0-9a-f]{64}$")


class DecisionAnswer(BaseModel):
    """What came of the vote; `missing` says which teams still have to vote, with how many."""

    state: str
    grant: UUID | None
    missing: dict[str, int]


class ApprovalJSON(BaseModel):
    id: UUID
    run: UUID | None
    subject_kind: str
    subject: UUID
    state: str
    cause: str
    revision: int
    digest: str
    decide_by: str
    opened_at: str
    closed_at: str | None
    reason: str | None = Field(description="Of a denied one: what whoever denied it said, for who may see payloads.")


@router.post("/approvals/{uuid:request_id}/decision", auth=Session(), response=DecisionAnswer)
def decide_approval(request: HttpRequest, request_id: UUID, body: DecisionBody) -> HttpResponse:
    """Approve or deny, as the person who is signed in; the same rules as on the page."""
    digest = bytes.fromhex(body.digest)
    made = decisions.decide(
        user=cast(User, request.user),
        request_id=request_id,
        choice=body.decision,
        reason=body.reason,
        seen_digest=digest,
        seen_revision=body.revision,
        entry_point=EntryPoint.API,
        receipt=Receipt(digest, RENDERER),
    )
    return answer({"state": made.state, "grant": made.grant_id, "missing": dict(made.missing)}, replayed=made.repeated)


@router.get("/approvals/{uuid:request_id}", auth=auth.READ, response=ApprovalJSON)
def read_approval(request: HttpRequest, request_id: UUID) -> HttpResponse:
    """One request for approval."""
    caller = auth.caller(request)
    rows = ApprovalRequest.objects.of(caller.tenant_id)
    if not reads.sees_all(caller):
        rows = rows.filter(workflow__in=reads.workflows(caller))
    row: ApprovalRequest | None = rows.filter(pk=request_id).first()
    if row is None:
        raise reads.missing("approval")
    shown = row.workflow_id is not None and reads.sees_payloads(caller, row.workflow_id)
    return answer(_approval_json(row, reasons(row.tenant_id, [row.subject_id]).get(row.subject_id) if shown else None))


def _approval_json(row: ApprovalRequest, reason: str | None) -> dict[str, Any]:
    return {
        "id": row.pk,
        "run": row.run_id,
        "subject_kind": row.subject_kind,
        "subject": row.subject_id,
        "state": row.state,
        "cause": row.cause,
        "revision": row.revision,
        "digest": row.digest,
        "decide_by": row.decide_by,
        "opened_at": row.opened_at,
        "closed_at": row.closed_at,
        "reason": reason,
    }
