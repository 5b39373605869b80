"""What was asked and decided before about the same thing: the revision before, or an earlier request of the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import OuterRef, Q, QuerySet

from approvals.domain.requests import EFFECT, RequestState
from approvals.models import ApprovalRequest, Revision, Vote
from approvals.services import actors, sightings
from approvals.services.sightings import Seen
from ledger.domain import canonical
from ledger.domain.authority import GrantState
from ledger.domain.effects import DONE, EffectState, FailCause
from ledger.models import Effect, Grant, JournalEntry, WakeCheck

OVER = frozenset({EffectState.COMMITTED, EffectState.WITHDRAWN, EffectState.WRITTEN_OFF})
"""States of effects that nothing is called for any more."""
MOST_RELATED = 20
TAKEN_BACK = ("grant.revoke", "request.withdraw_vote")


@dataclass(frozen=True, slots=True)
class Earlier:
    """An asking that came before. `state` is the request's then, '' when it was asked again undecided.

    `taken_back_by` is the name of who took leave or a vote back, '' when nobody did. `arguments` is None for who may not see them.
    """

    request: ApprovalRequest
    revision: Revision
    state: str
    votes: Sequence[Vote]
    grant: Grant | None
    effect: Effect
    arguments: Any
    seen: Seen | None
    taken_back_by: str


def of(
    request: ApprovalRequest,
    effect: Effect,
    revisions: Sequence[Revision],
    related: Sequence[ApprovalRequest],
    reads: bool,
) -> Earlier | None:
    """The asking before the request's current one: `revisions` are the request's, `related` others about the same resource. One whose call was made
    comes before any newer one: it is what an approver must know."""
    if request.revision > 1:
        last = next((row for row in revisions if row.number == request.revision - 1), None)
        return _read(request, last, effect, reads) if last else None
    before = [row for row in related if row.run_id == request.run_id and row.opened_at < request.opened_at]
    if not before:
        return None
    ids = [row.subject_id for row in before]
    asked = Effect.objects.of(request.tenant_id).select_related("request", "target").filter(pk__in=ids)
    effects = {row.pk: row for row in asked}
    found = max(before, key=lambda row: (called(effects[row.subject_id]), row.opened_at))
    own = effects[found.subject_id]
    revision = Revision.objects.of(request.tenant_id).get(request=found, number=found.revision)
    return _read(found, revision, own, reads, str(found.state))


def related(effect: Effect, request: ApprovalRequest) -> list[ApprovalRequest]:
    """Other requests about the same resource of the same target, newest first, among those of the same workflow."""
    if not effect.resource:
        return []
    same = Effect.objects.of(effect.tenant_id).filter(target=effect.target_id, resource=effect.resource)
    rows = ApprovalRequest.objects.of(effect.tenant_id).filter(
        Q(subject_id__in=same.values("pk")), workflow=request.workflow_id, subject_kind=EFFECT
    )
    return list(rows.exclude(pk=request.pk).order_by("-opened_at")[:MOST_RELATED])


def broke(request: ApprovalRequest) -> QuerySet[WakeCheck, dict[str, Any]]:
    """Of a revision, for a subquery: what the wake that asked it found wrong with the leave that was given before, as a code of its check."""
    checks = WakeCheck.objects.of(request.tenant_id).filter(
        decision__run=request.run_id,
        decision__decided_at=OuterRef("opened_at"),
        name="grant",
        subject=str(request.subject_id),
    )
    return checks.values("reason")[:1]


def spent(request: ApprovalRequest, related: Sequence[ApprovalRequest]) -> Mapping[UUID, str]:
    """How leave of these requests ended that came to nothing, by request."""
    approved = {row.pk for row in related if row.state == RequestState.APPROVED}
    states = (GrantState.VOIDED, GrantState.REVOKED, GrantState.EXPIRED)
    grants = Grant.objects.of(request.tenant_id).filter(request_id__in=approved, state__in=states)
    ended = grants.order_by("approved_at").values_list("request_id", "state")
    return {row: str(state) for row, state in ended if row is not None}


def called(effect: Effect) -> bool:
    """Has the effect's call been made, or may it have been?"""
    return effect.state in DONE or effect.disputed


def usable(grant: Grant | None, effect: Effect) -> bool:
    """Is this leave that nobody has used, for an effect of which a call may still be made?"""
    over = effect.state in OVER and not effect.disputed
    live = grant is not None and grant.state == GrantState.LIVE
    return live and not over and effect.cause != FailCause.REJECTED


def _read(request: ApprovalRequest, revision: Revision, effect: Effect, reads: bool, state: str = "") -> Earlier:
    tenant_id = request.tenant_id
    grants = Grant.objects.of(tenant_id).filter(request_id=request.pk, revision=revision.number)
    grant = grants.order_by("-approved_at").first()
    votes = Vote.objects.of(tenant_id).filter(request=request, revision=revision.number)
    raw = sightings.content_of(effect.request) if reads else None
    return Earlier(
        request=request,
        revision=revision,
        state=state or (str(RequestState.APPROVED) if grant else ""),
        votes=list(votes.select_related("voter", "reason_body").order_by("voted_at")),
        grant=grant,
        effect=effect,
        arguments=canonical.parse(raw) if raw else None,
        seen=sightings.newest(effect, reads, pk=revision.observation_id),
        taken_back_by=_taker(request, grant),
    )


def _taker(request: ApprovalRequest, grant: Grant | None) -> str:
    if grant is not None and grant.state != GrantState.REVOKED:
        return ""
    return taken_back_by(request)


def taken_back_by(request: ApprovalRequest) -> str:
    """Who last took leave or a vote back on the request's run; '' when nobody did."""
    entries = JournalEntry.objects.of(request.tenant_id).filter(
        stream_id=request.run_id, verb__in=TAKEN_BACK, at__gte=request.opened_at
    )
    actor = entries.order_by("-seq").values_list("actor", flat=True).first()
    return actors.names(request.tenant_id, [actor])(actor) if actor else ""
