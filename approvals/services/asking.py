"""The ledger's port for people: requests ride in the ledger's own Changes, so that a request exists exactly when its wait does."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from approvals.domain import decisions
from approvals.domain import requests as rules
from approvals.domain.quorum import counts, reached
from approvals.domain.requests import Asking, Choice, RequestRow, RequestState, RevisionRow
from approvals.models import Vote
from approvals.services import standing
from approvals.services.refusals import denied_before, reasons, refusals
from approvals.services.wanting import unanswerable, wanted
from ledger.domain.authority import GrantRow, Requirement, Wanted, void_grant
from ledger.domain.drafts import Draft
from ledger.domain.effects import EffectRow
from ledger.domain.endings import Reason
from ledger.domain.views import RunView
from ledger.domain.waits import Asked, Outcome
from ledger.services.facts import Part, load
from ledger.services.ports import FIRST, Ask

_OPEN_EFFECTS = "(SELECT e.id FROM ledger_effect e WHERE e.run_id = h.run_id AND e.state IN ('proposed', 'in_flight', 'unknown', 'failed'))"
_GRANTED = (
    "t.run_id = h.run_id AND EXISTS (SELECT 1 FROM ledger_grant g WHERE g.run_id = h.run_id AND g.request_id = t.request_id"
    f" AND g.revision = {{}} AND g.state IN ('live', 'used') AND g.subject_id IN {_OPEN_EFFECTS})"
)
_DENIED = (
    "e.run_id = h.run_id AND e.state = 'withdrawn' AND e.cause = 'denied'"
    " AND EXISTS (SELECT 1 FROM approvals_request q WHERE q.run_id = h.run_id AND q.subject_id = e.id AND q.state = 'denied')"
)
_PARTS: Mapping[str, Part] = {
    "requests": Part(
        "approval_request",
        f"t.run_id = h.run_id AND (t.state = 'pending' OR t.subject_id IN {_OPEN_EFFECTS})",
        many=True,
        order="t.opened_at, t.id",
    ),
    "revisions": Part(
        "revision",
        "t.run_id = h.run_id AND t.number = (SELECT q.revision FROM approvals_request q WHERE q.id = t.request_id)",
        many=True,
    ),
    "used_grants": Part(
        "grant", f"t.run_id = h.run_id AND t.state = 'used' AND t.subject_id IN {_OPEN_EFFECTS}", many=True
    ),
    "granted_revisions": Part("revision", _GRANTED.format("t.number"), many=True),
    "granted_votes": Part("vote", _GRANTED.format("t.revision"), many=True),
    "denied": Part("effect", f"t.id IN (SELECT e.id FROM ledger_effect e WHERE {_DENIED})", many=True),
    "denied_contents": Part("body", f"t.id IN (SELECT e.request_id FROM ledger_effect e WHERE {_DENIED})", many=True),
    "asking_agent": Part("agent", "t.id = r.agent_id"),
    "last_holder": Part("agent", "t.id = (SELECT k.agent_id FROM ledger_api_key k WHERE k.id = l.key_id)"),
}
"""Requests of the run that are pending or about open effects, their current revisions; effects that people denied (a policy's word is none of
theirs), with what was asked; and the agents, who have owners, that started it and
that asks, or asked when the run began to wait."""


class People:
    """Implements `ledger.services.ports.Approvals`."""

    def parts(self) -> Mapping[str, Part]:
        return _PARTS

    def ask(self, draft: Draft, view: RunView, ask: Ask) -> Asked:
        """Open a request for an effect, or a new revision of its open or approved one; the same thing asked twice is the one open request.

        Leave for the effect ends, used or not: it was for what was asked before, and no facts that come back may bring it back against what is
        answered now. What people denied is not asked again under another name:
        that is denied at once; what the engine asks again, on facts that moved, is not the agent's asking.
        """
        request, before = _current(view, ask.effect.id)
        asking = Asking(
            run_id=view.run.id,
            workflow_id=view.head.workflow_id,
            effect=ask.effect,
            needs=ask.requirement,
            excluded=excluded(view, before) | _owners(view, "last_holder"),
            wait_until=ask.decide_by,
            reason=ask.reason,
        )
        if request is None:
            if ask.reason == FIRST and self.denied(view, ask.effect, draft):
                return Asked(Outcome.DENIED)
            rules.open_request(draft, asking)
        elif not _same(request, before, asking):
            rules.revise(draft, asking, request, before)
            if before is not None and _lost_votes(view, asking, before):
                carry(draft, view, request, before, _approving(view, request, before))
        for grant in _leave(view, ask.effect.id):
            void_grant(draft, grant, ask.reason)
        unchanged = request is not None and _same(request, before, asking)
        return Asked(decide_by=request.decide_by if request is not None and unchanged else asking.closes(draft.at))

    def denied(self, view: RunView, effect: EffectRow, draft: Draft | None = None) -> bool:
        """Did people deny the very same of this run? From what was read with the run, and the request's bytes where something alike was."""
        return denied_before(draft, view, effect)

    def withdraw(self, draft: Draft, view: RunView, effect_ids: frozenset[UUID] | None, cause: str) -> None:
        """Withdraw the pending requests of these effects (None: of the whole run)."""
        rules.withdraw(draft, view, effect_ids, cause)

    def expire(self, draft: Draft, view: RunView) -> bool:
        """Say of the pending request whose decide-by was the first to pass that it expired, unless a timer closed the run's wait before."""
        return decisions.expire(draft, view)

    def still_good(self, grant: GrantRow, view: RunView) -> str:
        """Would the votes behind a grant, of those who still may vote, still make the quorum, for the target as it was when they were asked? '' or
        why not."""
        if grant.request_id is None:
            return ""
        of = (grant.request_id, grant.revision)
        revisions = view.extras["granted_revisions"]
        revision = next((row for row in revisions if (row["request_id"], row["number"]) == of), None)
        if revision is None:
            return "request-missing"
        if _set_up_since(view, grant.subject_id, revision["opened_at"]):
            return "target-changed"
        votes = [row for row in view.extras["granted_votes"] if (row["request_id"], row["revision"]) == of]
        voters = {row["voter_id"] for row in votes if row["choice"] == Choice.APPROVE}
        groups = standing.groups_of(voters - excluded(view), view.head.workflow_id, view.run.tenant_id)
        needs = Requirement.from_document(revision["requirement"])
        return "" if reached(needs.rules, groups) else "votes-lost"

    def wanted(self, tenant_id: UUID, effect_ids: Sequence[UUID]) -> Mapping[UUID, Wanted]:
        """The teams of the revisions that are open, by name, and those that can't meet them: three queries, and one for each workflow type."""
        return wanted(tenant_id, effect_ids)

    def unanswerable(self, tenant_id: UUID) -> Collection[UUID]:
        """Of the open requests that are to be decided first, as many as are looked at."""
        return unanswerable(tenant_id)

    def refusals(self, tenant_id: UUID, run_ids: Sequence[UUID]) -> Iterable[tuple[UUID, Reason]]:
        """Requests of these runs that were denied, with who did, or that nobody decided on: four queries."""
        return refusals(tenant_id, run_ids)

    def reasons(self, tenant_id: UUID, effect_ids: Sequence[UUID]) -> Mapping[UUID, str]:
        """What people said when they denied these effects: one query."""
        return reasons(tenant_id, effect_ids)


def revision_of(view: RunView, request: RequestRow) -> RevisionRow:
    """The request's current revision."""
    return next(load(RevisionRow, row) for row in view.extras["revisions"] if row["request_id"] == request.id)


def excluded(view: RunView, before: RevisionRow | None = None) -> frozenset[UUID]:
    """Four eyes: neither the person the agent acts for nor the agent's owner decides what it asks, nor whom a revision `before` excluded."""
    earlier = {UUID(person) for person in before.excluded} if before else set()
    acted_for = {view.run.on_behalf_of_id} if view.run.on_behalf_of_id else set()
    return _owners(view, "asking_agent") | acted_for | earlier


def _owners(view: RunView, part: str) -> frozenset[UUID]:
    return frozenset(agent["owner_id"] for agent in view.extras[part] if agent)


def _leave(view: RunView, effect_id: UUID) -> list[GrantRow]:
    """The effect's live grant and its used ones."""
    used = [load(GrantRow, row) for row in view.extras["used_grants"]]
    return [grant for grant in (*view.grants, *used) if grant.subject_id == effect_id]


def _current(view: RunView, effect_id: UUID) -> tuple[RequestRow | None, RevisionRow | None]:
    """The effect's request that can be asked again, with its revision. What was denied, expired or withdrawn stays so."""
    own = [request for request in rules.rows_of(view) if request.subject_id == effect_id]
    again = [request for request in own if rules.MACHINE.can(request.state, "revise")]
    return (again[-1], revision_of(view, again[-1])) if again else (None, None)


def _same(request: RequestRow, before: RevisionRow | None, asking: Asking) -> bool:
    return (
        request.state is RequestState.PENDING
        and before is not None
        and request.digest == asking.effect.subject_digest
        and before.requirement_digest == asking.needs.digest()
    )


def _lost_votes(view: RunView, asking: Asking, before: RevisionRow) -> bool:
    """Is the very same asked again only because a vote behind its live grant lost its right?"""
    grant = view.grant_for(asking.effect.id)
    return (
        grant is not None
        and view.now < grant.use_by
        and grant.subject_digest == before.subject_digest == asking.effect.subject_digest
        and grant.requirement_digest == before.requirement_digest == asking.needs.digest()
    )


def _set_up_since(view: RunView, effect_id: UUID, at: datetime) -> bool:
    """Has the effect's target been set up otherwise since, in what leave for it rests on?"""
    effect = view.effect(effect_id)
    return effect is not None and view.targets[effect.target_id].guaranteed_at > at


def carry(draft: Draft, view: RunView, request: RequestRow, before: RevisionRow, votes: Iterable[Vote]) -> None:
    """Take over those of the votes that still count, marked as carried; what they lack is for others to give.

    Votes that would make the quorum by themselves aren't carried: somebody has to look. Nor are any once the target is set up otherwise than when
    they were asked for: they were given for another thing.
    """
    if _set_up_since(view, request.subject_id, before.opened_at):
        return
    known = list(votes)
    groups = standing.groups_of(
        {vote.voter_id for vote in known} - excluded(view, before), view.head.workflow_id, view.run.tenant_id
    )
    if reached(before.needs.rules, groups):
        return
    for vote in known:
        if vote.voter_id in groups and counts(before.needs.rules, groups[vote.voter_id]):
            rules.carry(draft, request, vote, sorted(groups[vote.voter_id]))


def _approving(view: RunView, request: RequestRow, revision: RevisionRow) -> Iterable[Vote]:
    votes = Vote.objects.of(view.run.tenant_id).filter(request_id=request.id, revision=revision.number)
    return votes.filter(choice=Choice.APPROVE).order_by("voted_at")
