"""Everything that a card shows of one request, read for one person. Reading changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Count, OuterRef, Q, Subquery

from approvals.domain.quorum import counts, missing
from approvals.domain.requests import EFFECT, Choice, RequestState
from approvals.models import ApprovalRequest, Revision, Vote
from approvals.services import standing
from ledger.domain import canonical
from ledger.domain.authority import GrantState, Requirement, Rule
from ledger.domain.errors import LedgerError
from ledger.domain.identity import Verb
from ledger.models import Agent, ApiKey, Body, Effect, Grant, Lease, Observation, RunHead, Tenant, User, WorkflowType
from ledger.services import facts, permissions

MOST_EARLIER = 20


@dataclass(frozen=True, slots=True)
class Seen:
    """The target's resource as somebody saw it. `state` is None when only its version is known."""

    id: UUID
    version: str
    state: Any
    source: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Quorum:
    """How far the votes are. `lacking` counts what each group still has to give, `after` what would be missing after this person's approval."""

    rules: Sequence[Rule]
    lacking: Mapping[str, int]
    after: int
    approving: Sequence[Vote]
    can_still: Sequence[User]
    impossible: Sequence[str]

    @property
    def wanted(self) -> int:
        return sum(rule.quorum for rule in self.rules)

    @property
    def given(self) -> int:
        return self.wanted - sum(self.lacking.values())


@dataclass(frozen=True, slots=True)
class Card:
    """One request as one person sees it. `stance` is '' when they may decide, otherwise why not; `arguments` is None unless `reads`.

    `proposed` is what the target showed when this revision was asked, `before` when the one before it was, `newest` what it showed last.
    """

    now: datetime
    request: ApprovalRequest
    revision: Revision
    effect: Effect
    head: RunHead
    workflow: WorkflowType
    agent: Agent | None
    acts_for: User | None
    key_prefix: str
    approves: bool
    reads: bool
    arguments: Any
    raw: bytes | None
    before: Seen | None
    proposed: Seen | None
    newest: Seen | None
    quorum: Quorum
    grant: Grant | None
    revisions: Sequence[Revision]
    votes: Sequence[Vote]
    related: Sequence[ApprovalRequest]
    voted: Vote | None
    stance: str

    @property
    def pending(self) -> bool:
        """Open by state and by clock."""
        return self.request.state == RequestState.PENDING and self.now < self.request.decide_by

    @property
    def can_withdraw(self) -> bool:
        """Is this person's approval one that they may still take back, before the quorum?"""
        return self.pending and self.voted is not None and self.voted.choice == Choice.APPROVE

    @property
    def can_revoke(self) -> bool:
        """Is there leave that hasn't been used, which an approver may take back?"""
        return self.approves and self.grant is not None and self.grant.state == GrantState.LIVE

    @property
    def stale(self) -> bool:
        """Is the newest look older than the target's freshness allows for a call?"""
        newest = self.newest or self.proposed
        limit = timedelta(seconds=self.effect.target.freshness)
        return self.pending and self.looks and (newest is None or self.now - newest.at > limit)

    @property
    def looks(self) -> bool:
        """Can the target be asked again about the resource?"""
        return self.pending and self.reads and bool(self.effect.resource) and self.effect.target.observe is not None

    @property
    def state(self) -> str:
        """The state as people should read it: past its decide-by a request is expired, whatever the sweep has got to."""
        late = self.request.state == RequestState.PENDING and not self.pending
        return str(RequestState.EXPIRED) if late else str(self.request.state)


def seen_request(person: User, tenant: Tenant, request_id: UUID) -> ApprovalRequest:
    """The request, for those who see its workflow. Raises LedgerError `not-found`."""
    seen = permissions.visible(person, Verb.SEE).filter(tenant=tenant)
    rows = ApprovalRequest.objects.of(tenant).filter(pk=request_id, subject_kind=EFFECT, workflow__in=seen)
    found: ApprovalRequest | None = rows.select_related("run", "workflow").first()
    if found is None:
        raise LedgerError("not-found", "there is no such request here", "Check the address.")
    return found


def token(request: ApprovalRequest, now: datetime) -> str:
    """A short word that changes whenever the card would: revision, votes, state by the clock, what became of the effect, the target's version."""
    effect = Effect.objects.of(request.tenant_id).filter(pk=request.subject_id)
    look = Observation.objects.of(request.tenant_id).filter(
        target=OuterRef("target"), resource=OuterRef("resource"), run__workflow=request.workflow_id
    )
    head = RunHead.objects.of(request.tenant_id).filter(pk=request.run_id)
    state, newest = effect.values_list(
        "state", Subquery(look.order_by("-observed_at").values("version")[:1])
    ).first() or (
        "",
        None,
    )
    votes = Vote.objects.of(request.tenant_id).filter(request=request).aggregate(n=Count("pk"))["n"]
    grants = Grant.objects.of(request.tenant_id).filter(request_id=request.pk).values_list("state", flat=True)
    late = request.state == RequestState.PENDING and now >= request.decide_by
    parts = [
        request.revision,
        "expired" if late else request.state,
        votes,
        state,
        head.values_list("status", flat=True).first(),
        newest,
        *sorted(grants),
    ]
    return canonical.digest("card-version/1", {"parts": [str(part) for part in parts]}).hex()[:16]


def card_for(person: User, tenant: Tenant, request_id: UUID) -> Card:
    """The card. Raises LedgerError `not-found` for what this person can't see."""
    request = seen_request(person, tenant, request_id)
    revisions = list(Revision.objects.of(tenant).filter(request=request).order_by("-number"))
    revision = next(row for row in revisions if row.number == request.revision)
    effect = Effect.objects.of(tenant).select_related("target", "request", "run").get(pk=request.subject_id)
    votes = list(
        Vote.objects.of(tenant).filter(request=request).select_related("voter", "reason_body").order_by("-voted_at")
    )
    workflow: WorkflowType = request.workflow  # type: ignore[assignment]
    approves = permissions.can(person, Verb.APPROVE, workflow)
    reads = approves or permissions.can(person, Verb.SEE_PAYLOADS, workflow)
    now = facts.read().now
    current = [vote for vote in votes if vote.revision == request.revision]
    quorum = _quorum(person, request, revision, current)
    voted = next((vote for vote in current if vote.voter_id == person.pk), None)
    raw = _bytes(effect.request) if reads else None
    card = Card(
        now=now,
        request=request,
        revision=revision,
        effect=effect,
        head=RunHead.objects.of(tenant).get(pk=request.run_id),
        workflow=workflow,
        agent=Agent.objects.of(tenant).filter(pk=effect.run.agent_id).first(),
        acts_for=User.objects.filter(pk=effect.run.on_behalf_of_id).first(),
        key_prefix=_key(effect),
        approves=approves,
        reads=reads,
        arguments=canonical.parse(raw) if raw else None,
        raw=raw,
        before=_seen(effect, reads, pk=revision.previous_observation_id),
        proposed=_seen(effect, reads, pk=effect.observation_id),
        newest=_seen(
            effect, reads, target=effect.target_id, resource=effect.resource, run__workflow=request.workflow_id
        ),
        quorum=quorum,
        grant=Grant.objects.of(tenant).filter(request_id=request.pk).order_by("-approved_at").first(),
        revisions=revisions,
        votes=votes,
        related=_related(effect, request),
        voted=voted,
        stance="",
    )
    return replace(card, stance=_stance(card, person, approves))


def _stance(card: Card, person: User, approves: bool) -> str:
    if not card.pending:
        return card.state
    if card.voted is not None:
        return "voted"
    if str(person.pk) in card.revision.excluded:
        return "self"
    if not approves:
        return "no-right"
    groups = standing.groups_of([person.pk], card.workflow.pk, card.request.tenant_id)
    if not counts(card.quorum.rules, groups.get(person.pk, frozenset())):
        return "no-group"
    return ""


def _quorum(person: User, request: ApprovalRequest, revision: Revision, votes: Sequence[Vote]) -> Quorum:
    rules = Requirement.from_document(revision.requirement).rules
    workflow: WorkflowType = request.workflow  # type: ignore[assignment]
    excluded = {UUID(text) for text in revision.excluded}
    approving = [vote for vote in votes if vote.choice == Choice.APPROVE]
    voters = {vote.voter_id for vote in approving}
    groups = standing.groups_of(voters | {person.pk}, workflow.pk, request.tenant_id)
    own = {voter: teams for voter, teams in groups.items() if voter in voters}
    lacking: dict[str, int] = {}
    for rule, count in zip(rules, missing(rules, own), strict=True):
        if count:
            lacking[rule.group] = lacking.get(rule.group, 0) + count
    eligible = standing.eligible(rules, excluded, workflow)
    left = set(eligible) - {vote.voter_id for vote in votes}
    return Quorum(
        rules=rules,
        lacking=lacking,
        after=sum(missing(rules, groups)),
        approving=sorted(approving, key=lambda vote: vote.voted_at),
        can_still=list(User.objects.filter(pk__in=left).order_by("name", "email")),
        impossible=standing.cannot_be_met(rules, excluded, workflow),
    )


def _related(effect: Effect, request: ApprovalRequest) -> list[ApprovalRequest]:
    """Other requests about the same resource of the same target, newest first, among those of the same workflow."""
    if not effect.resource:
        return []
    same = Effect.objects.of(effect.tenant_id).filter(target=effect.target_id, resource=effect.resource)
    rows = ApprovalRequest.objects.of(effect.tenant_id).filter(
        Q(subject_id__in=same.values("pk")), workflow=request.workflow_id, subject_kind=EFFECT
    )
    return list(rows.exclude(pk=request.pk).order_by("-opened_at")[:MOST_EARLIER])


def _seen(effect: Effect, reads: bool, **where: Any) -> Seen | None:
    """The newest such observation. Those of other workflows' runs are for who may see them there."""
    rows = Observation.objects.of(effect.tenant_id).filter(**where).select_related("body").order_by("-observed_at")
    found = rows.first() if effect.resource else None
    if found is None:
        return None
    content = _bytes(found.body) if reads and found.body else None
    return Seen(found.pk, found.version, _loose(content), found.source, found.observed_at)


def _loose(content: bytes | None) -> Any:
    if content is None:
        return None
    try:
        return canonical.parse(content)
    except LedgerError:
        return content.decode("utf-8", "replace")


def _bytes(body: Body) -> bytes | None:
    return None if body.content is None else bytes(body.content)


def _key(effect: Effect) -> str:
    held = Lease.objects.of(effect.tenant_id).filter(pk=effect.run_id).values("key_id")[:1]
    prefix: str | None = (
        ApiKey.objects.of(effect.tenant_id).filter(pk__in=held).values_list("prefix", flat=True).first()
    )
    return prefix or ""
