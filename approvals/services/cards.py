"""Everything that a card shows of one request, read for one person. Reading changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Count, OuterRef, Prefetch, Subquery

from approvals.domain.quorum import counts, missing
from approvals.domain.requests import EFFECT, Choice, RequestState
from approvals.models import ApprovalRequest, Revision, Vote
from approvals.services import earlier, lately, sightings, standing
from approvals.services.counts import clock
from approvals.services.earlier import Earlier
from approvals.services.lately import Lately
from approvals.services.sightings import Seen
from ledger.domain import canonical
from ledger.domain.authority import PolicyRow, Requirement, Rule, Verdict, requirement
from ledger.domain.effects import EffectState
from ledger.domain.errors import LedgerError
from ledger.domain.identity import Verb
from ledger.domain.waits import Inaction, SetState, silence
from ledger.models import (
    Agent,
    ApiKey,
    Checkpoint,
    Effect,
    Grant,
    JournalEntry,
    Lease,
    Observation,
    Permit,
    PolicyVersion,
    RunHead,
    Tenant,
    User,
    WaitMember,
    WaitSet,
    WorkflowType,
)
from ledger.services import permissions

SLOW = timedelta(minutes=5)
"""An agent that hasn't taken a decision up for longer is named as slow."""


@dataclass(frozen=True, slots=True)
class Quorum:
    """How far the votes are. `lacking` counts what each group still has to give, `after` what would be missing after this person's approval;
    `teams` names the groups."""

    rules: Sequence[Rule]
    lacking: Mapping[str, int]
    after: int
    approving: Sequence[Vote]
    can_still: Sequence[User]
    impossible: Sequence[str]
    teams: Mapping[str, str]

    @property
    def wanted(self) -> int:
        return sum(rule.quorum for rule in self.rules)

    @property
    def given(self) -> int:
        return self.wanted - sum(self.lacking.values())


@dataclass(frozen=True, slots=True)
class Policy:
    """Numbers of the policy's versions: the one under which it was asked, and the one in force; 0 for none. `wants` is what the latter
    wants of the call, where that isn't what was asked and an approval wouldn't hold."""

    asked_under: int
    in_force: int
    wants: Requirement | None


@dataclass(frozen=True, slots=True)
class Card:
    """One request as one person sees it. `stance` is '' when they may decide, otherwise why not; `arguments` is None unless `reads`,
    and so is `agent_state`, which the agent committed at the `checkpoint` from which it asked. Where all votes are there but nobody counted them,
    who has approved may do so again.

    `silence` is what happens, and when, if nobody decides. `proposed` is what the target showed when this revision was asked, `before` when
    the one before it was, `newest` what it showed last, before the first call was permitted (`called_at`). `shown` is the look that was decided on,
    the newest while it is open; what was looked at after the decision is `later`, and never stands in its place. `broke` is, by a revision's
    number, what the wake that asked it found wrong with leave that was given. `spent` is how leave of an approved `related` request ended unused.
    `told_at` is when a worker took the run after the request was closed.
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
    checkpoint: int
    agent_state: Any
    arguments: Any
    raw: bytes | None
    before: Seen | None
    proposed: Seen | None
    newest: Seen | None
    shown: Seen | None
    later: Sequence[Seen]
    called_at: datetime | None
    quorum: Quorum
    grant: Grant | None
    revisions: Sequence[Revision]
    broke: Mapping[int, str]
    votes: Sequence[Vote]
    related: Sequence[ApprovalRequest]
    spent: Mapping[UUID, str]
    earlier: Earlier | None
    lately: Lately
    policy: Policy
    told_at: datetime | None
    voted: Vote | None
    stance: str
    silence: tuple[Inaction, datetime]

    @property
    def pending(self) -> bool:
        """Open by state and by clock."""
        return self.over_at is None

    @property
    def over_at(self) -> datetime | None:
        """When it was decided, or ended without a decision; None while it is open."""
        return _over_at(self.request, self.now)

    @property
    def asked_again(self) -> ApprovalRequest | None:
        """A later request of the same run about the same resource."""
        later = [
            row for row in self.related if row.run_id == self.request.run_id and row.opened_at > self.request.opened_at
        ]
        return max(later, key=lambda row: row.opened_at, default=None)

    @property
    def can_withdraw(self) -> bool:
        """Is this person's approval one that they may still take back, before the quorum?"""
        return self.pending and self.voted is not None and self.voted.choice == Choice.APPROVE

    @property
    def can_revoke(self) -> bool:
        """Is there leave that hasn't been used, which an approver may take back before a call of this effect is made on it?"""
        return self.approves and earlier.usable(self.grant, self.effect)

    @property
    def stale(self) -> bool:
        """Is the newest look older than the target's freshness allows for a call?"""
        newest = self.shown
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
    """A short word that changes whenever what is decided on does: revision, votes, state by the clock, the target's version, what became of the
    effect. What else was asked lately doesn't: an open card isn't swapped for that.

    Of a closed request it changes with every move of the run, since the card tells what the run makes of the decision.
    """
    effect = Effect.objects.of(request.tenant_id).filter(pk=request.subject_id)
    look = Observation.objects.of(request.tenant_id).filter(
        target=OuterRef("target"), resource=OuterRef("resource"), run__workflow=request.workflow_id
    )
    head = RunHead.objects.of(request.tenant_id).filter(pk=request.run_id)
    state, newest = effect.values_list(
        "state", Subquery(look.order_by("-observed_at").values("version")[:1])
    ).first() or ("", None)
    votes = Vote.objects.of(request.tenant_id).filter(request=request).aggregate(n=Count("pk"))["n"]
    grants = Grant.objects.of(request.tenant_id).filter(request_id=request.pk).values_list("state", flat=True)
    late = request.state == RequestState.PENDING and now >= request.decide_by
    status, moved = head.values_list("status", "head_seq").first() or ("", 0)
    closed = request.closed_at
    parts = [
        request.revision,
        "expired" if late else request.state,
        votes,
        state,
        status,
        moved if closed else "",
        closed is not None and now - closed > SLOW,
        newest,
        *sorted(grants),
    ]
    return canonical.digest("card-version/1", {"parts": [str(part) for part in parts]}).hex()[:16]


def card_for(person: User, tenant: Tenant, request_id: UUID) -> Card:
    """The card. Raises LedgerError `not-found` for what this person can't see."""
    request = seen_request(person, tenant, request_id)
    revisions = _revisions(request)
    revision = next(row for row in revisions if row.number == request.revision)
    effect = _effect(request, revision.opened_at)
    votes = list(
        Vote.objects.of(tenant).filter(request=request).select_related("voter", "reason_body").order_by("-voted_at")
    )
    workflow: WorkflowType = request.workflow  # type: ignore[assignment]
    approves = permissions.can(person, Verb.APPROVE, workflow)
    reads = approves or permissions.can(person, Verb.SEE_PAYLOADS, workflow)
    now = effect.now
    current = [vote for vote in votes if vote.revision == request.revision]
    quorum = _quorum(person, request, revision, current)
    voted = next((vote for vote in current if vote.voter_id == person.pk), None)
    raw = sightings.content_of(effect.request) if reads else None
    state = bytes(effect.state_content) if reads and effect.state_content is not None else None
    related = earlier.related(effect, request)
    card = Card(
        now=now,
        request=request,
        revision=revision,
        effect=effect,
        head=effect.run.head,
        workflow=workflow,
        agent=Agent.objects.of(tenant).filter(pk=effect.run.agent_id).first(),
        acts_for=User.objects.filter(pk=effect.run.on_behalf_of_id).first(),
        key_prefix=effect.key_prefix or "",
        approves=approves,
        reads=reads,
        checkpoint=effect.checkpoint_seq or 0,
        agent_state=canonical.parse(state) if state else None,
        arguments=canonical.parse(raw) if raw else None,
        raw=raw,
        **sightings.of_card(effect, revision, reads, request.workflow_id, _over_at(request, now)),
        called_at=effect.called_at,
        quorum=quorum,
        grant=Grant.objects.of(tenant).filter(request_id=request.pk).order_by("-approved_at").first(),
        revisions=revisions,
        broke={row.number: row.broke for row in revisions if row.broke},
        votes=votes,
        related=related,
        spent=earlier.spent(request, related),
        earlier=earlier.of(request, effect, revisions, related, reads),
        lately=lately.of(request, effect.run, person, now, _over_at(request, now) or now),
        policy=_policy(revision, effect),
        told_at=_told_at(request),
        voted=voted,
        stance="",
        silence=_silence(request, effect),
    )
    return replace(card, stance=_stance(card, person, approves))


def _over_at(request: ApprovalRequest, now: datetime) -> datetime | None:
    open_still = request.state == RequestState.PENDING and now < request.decide_by
    return None if open_still else request.closed_at or request.decide_by


def _policy(revision: Any, effect: Effect) -> Policy:
    then, now = revision.asked_under or 0, revision.in_force or 0
    if then == now:
        return Policy(then, now, None)
    row = PolicyVersion.objects.of(effect.tenant_id).filter(number=now).first()
    known = PolicyRow(row.pk, row.number, row.rules, bytes(row.digest)) if row is not None else None
    needs = requirement(known, effect.tool, effect.target.name)
    same = needs.verdict is Verdict.ALLOW or needs.digest() == bytes(revision.requirement_digest)
    return Policy(then, now, None if same else needs)


def _revisions(request: ApprovalRequest) -> list[Any]:
    """The request's revisions, the newest first, each with the policy's version when it was asked and the one in force."""
    versions = PolicyVersion.objects.of(request.tenant_id).order_by("-number").values("number")
    then = versions.filter(created_at__lte=OuterRef("opened_at"))
    rows = Revision.objects.of(request.tenant_id).filter(request=request).order_by("-number")
    return list(
        rows.annotate(
            asked_under=Subquery(then[:1]), in_force=Subquery(versions[:1]), broke=Subquery(earlier.broke(request))
        )
    )


def _effect(request: ApprovalRequest, asked_at: datetime) -> Any:
    """The effect with its target, request, run and head, when its first call was permitted, the key of the run's lease, the checkpoint from which it
    was asked with the state that the agent committed there, and the database's clock."""
    calls = Permit.objects.of(request.tenant_id).filter(effect=OuterRef("pk")).order_by("attempt")
    held = Lease.objects.of(request.tenant_id).filter(pk=OuterRef(OuterRef("run_id"))).values("key_id")
    keys = ApiKey.objects.of(request.tenant_id).filter(pk__in=held)
    kept = (
        Checkpoint.objects.of(request.tenant_id)
        .filter(run=OuterRef("run_id"), created_at__lte=asked_at)
        .order_by("-seq")
    )
    rows = Effect.objects.of(request.tenant_id).select_related("target", "request", "run__head")
    return rows.annotate(
        called_at=Subquery(calls.values("permitted_at")[:1]),
        key_prefix=Subquery(keys.values("prefix")[:1]),
        checkpoint_seq=Subquery(kept.values("seq")[:1]),
        state_content=Subquery(kept.values("state__content")[:1]),
        now=clock(),
    ).get(pk=request.subject_id)


def _silence(request: ApprovalRequest, effect: Effect) -> tuple[Inaction, datetime]:
    """What the wait for this request comes to without a decision; without one, the agent is told, or an operator where a call failed."""
    failed = {effect.pk} if effect.state == EffectState.FAILED else set()
    wait = WaitSet.objects.of(request.tenant_id).filter(run_id=request.run_id, state=SetState.OPEN)
    open_wait = wait.prefetch_related(Prefetch("members", WaitMember.objects.of(request.tenant_id))).first()
    own = list(open_wait.members.all()) if open_wait is not None else []
    if open_wait is None or not any(member.effect_id == request.subject_id for member in own):
        return (Inaction.HAND_OFF if failed else Inaction.WAKE), request.decide_by
    return silence(open_wait, own, failed)


def _stance(card: Card, person: User, approves: bool) -> str:
    if not card.pending:
        return card.state
    if card.voted is not None and (card.quorum.lacking or card.voted.choice != Choice.APPROVE):
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
    # With all votes there, somebody's right came back after the last was counted: whoever approves again has them counted.
    left = set(eligible) - {vote.voter_id for vote in votes if lacking}
    return Quorum(
        rules=rules,
        lacking=lacking,
        after=sum(missing(rules, groups)),
        approving=sorted(approving, key=lambda vote: vote.voted_at),
        can_still=list(User.objects.filter(pk__in=left).order_by("name", "email")),
        impossible=standing.cannot_be_met(rules, excluded, workflow),
        teams=standing.team_names(request.tenant_id, {rule.group for rule in rules}),
    )


def _told_at(request: ApprovalRequest) -> datetime | None:
    """When a worker took the run after the request was closed: what was decided is in its packet."""
    if request.closed_at is None:
        return None
    claims = JournalEntry.objects.of(request.tenant_id).filter(
        stream_id=request.run_id, verb="run.claim", at__gt=request.closed_at
    )
    at: datetime | None = claims.order_by("seq").values_list("at", flat=True).first()
    return at
