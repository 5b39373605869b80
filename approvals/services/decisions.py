"""The one way in which a person decides. Every page, fragment and call of the console's API ends here, and nothing else does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction

from approvals.domain import decisions as rules
from approvals.domain.decisions import Asked, Ballot, EntryPoint, Receipt
from approvals.domain.quorum import Groups, missing
from approvals.domain.requests import EFFECT, Choice, RequestRow, RequestState, RevisionRow, VoteRow
from approvals.models import ApprovalRequest
from approvals.services import policies, standing
from approvals.services.asking import excluded
from ledger.domain.authority import Requirement, Verdict, grant_of
from ledger.domain.errors import Late, LedgerError, Moved
from ledger.domain.identity import Verb
from ledger.domain.views import RunView
from ledger.models import User, WorkflowType
from ledger.services import deadlines, locks, permissions, writer
from ledger.services.contracts import writes
from ledger.services.drafts import run_draft
from ledger.services.facts import Part, load
from ledger.services.ids import new_body
from ledger.services.views import run_view


@dataclass(frozen=True, slots=True)
class DecisionAnswer:
    """What came of a vote. `missing` are the groups that still have to vote, with how many; `repeated` says that this very vote was in before."""

    request_id: UUID
    run_id: UUID
    state: RequestState
    choice: Choice
    revision: int
    grant_id: UUID | None
    missing: Mapping[str, int]
    repeated: bool


@writes(
    moves=(
        "Inserts a vote; request pending → pending, approved or denied. Approved: a live grant. Denied: effect "
        "proposed → withdrawn. Either meets the member that waits for it: run waiting → waking. An approval under a policy that wants "
        "something else by now opens the request's next revision instead. Where time has closed the run's wait before: what `expire_due` moves, "
        "and no vote."
    ),
    twice=(
        "The same vote is answered as decided, and decides where the votes that are in make the quorum by now; another one "
        "is refused: `already-decided`."
    ),
    dies="The vote and all that it decided are there; the run's wake is a row.",
)
def decide(
    user: User,
    request_id: UUID,
    choice: object,
    reason: str,
    seen_digest: bytes,
    seen_revision: int,
    entry_point: EntryPoint,
    receipt: Receipt,
) -> DecisionAnswer:
    """Count a signed-in person's vote on exactly what they read.

    One transaction: the run's head is locked, and only then are the clock, the request, its votes, the person and their rights read. The same vote
    handed in twice answers what was decided; where the votes that are in make the quorum by now, since a right came back, it is decided then.
    Raises LedgerError `invalid`, `not-found`, `self-approval`, `not-eligible`, `already-decided`, `wrong-state`, `expired`, `changed` (also where
    the policy in force wants something else than was asked: a new revision asks for that), or `busy` when the tenant's people kept changing
    meanwhile.
    """
    chosen = rules.read_choice(choice)
    ballot = Ballot(
        request_id=request_id,
        voter=user.pk,
        choice=chosen,
        reason=rules.read_reason(chosen, reason),
        seen_digest=bytes(seen_digest),
        seen_revision=seen_revision,
        entry_point=EntryPoint(entry_point),
        receipt=receipt,
    )
    place = find(ballot.voter, request_id)
    for _ in range(writer.TRIES):
        try:
            with transaction.atomic(durable=True):
                answer = _decide(ballot, place)
        except (Moved, Late):
            continue
        if isinstance(answer, LedgerError):
            raise answer
        if answer is not None:
            return answer
    raise LedgerError("busy", "the record kept moving under this decision", "Decide again.")


@dataclass(frozen=True, slots=True)
class Place:
    """The run and the workflow type that a request belongs to."""

    run_id: UUID
    workflow: WorkflowType


def find(person: UUID, request_id: UUID) -> Place:
    """Where the request belongs, for those who see it. Raises LedgerError `not-found`."""
    seen = permissions.visible(person, Verb.SEE)
    rows = ApprovalRequest.objects.across_tenants().filter(pk=request_id, subject_kind=EFFECT, workflow__in=seen)
    found = rows.values_list("run_id", "workflow_id", "tenant_id").first()
    if found is None:
        raise _unseen()
    run_id, workflow_id, tenant_id = found
    return Place(run_id, WorkflowType(pk=workflow_id, tenant_id=tenant_id))


def _decide(ballot: Ballot, place: Place) -> DecisionAnswer | LedgerError | None:
    """What came of it; a refusal is answered, not raised, where something was written with it. None where time had closed the run's wait, which is
    written now: what is left of the request is to be read again."""
    locks.run_head(place.run_id)
    view = run_view(place.run_id, place.workflow.tenant_id, **request_parts(ballot.request_id))
    asked = read_asked(view)
    if not permissions.can(ballot.voter, Verb.SEE, place.workflow):
        raise _unseen()
    repeated = rules.repeated(asked, ballot)
    voters = {vote.voter_id for vote in asked.votes} | {ballot.voter}
    groups = standing.groups_of(voters, place.workflow.pk, place.workflow.tenant_id)
    needs = rules.outdated(view, asked) if ballot.choice is Choice.APPROVE else None
    if repeated and (needs is not None or not rules.complete(asked, view, excluded(view, asked.revision), groups)):
        return _repeated(view, asked, ballot, groups)
    if not repeated:
        rules.check_voter(asked, ballot, excluded(view), groups, needs.rules if needs else ())
        rules.check_open(asked, view, ballot)
    if (closing := deadlines.overdue(view)) is not None:
        writer.apply(closing)
        return None
    if needs is not None:
        return _asked_anew(view, asked, needs)
    draft = run_draft(view, f"person:{ballot.voter}", f"request.{ballot.choice}", fresh_authority=True)
    if repeated:
        state, grant_id = rules.approve(draft, view, asked)
    else:
        reason = new_body(ballot.reason.encode(), view.now, "text/plain") if ballot.reason else None
        state, grant_id = rules.cast(draft, view, asked, ballot, reason, groups)
    writer.apply(draft.change())
    return _answer(asked, ballot, state, grant_id, groups, repeated=repeated)


def _asked_anew(view: RunView, asked: Asked, needs: Requirement) -> LedgerError:
    """Nobody approves under a policy that no longer is: the request is asked again under the one in force, unless that denies the call."""
    if needs.verdict is Verdict.DENY:
        return LedgerError(
            "changed",
            "the policy in force denies this call since it was asked, so that nobody can approve it",
            "Deny it with a reason, or leave it: it is withdrawn, and the agent is told. Ask an administrator about the policy.",
            revision=asked.request.revision,
        )
    draft = run_draft(view, policies.ACTOR, "request.revise", fresh_authority=True)
    policies.ask_anew(draft, view, asked, needs)
    writer.apply(draft.change())
    return LedgerError(
        "changed",
        "the policy wants something else by now than what you read; your vote was not counted, and the request is asked again under that policy",
        "Read the request as it is now, and decide again.",
        revision=asked.request.revision + 1,
        digest=asked.request.digest.hex(),
    )


def request_parts(request_id: UUID) -> dict[str, Part]:
    """The parts that `read_asked` wants to find in a view's extras."""
    return {
        "decided": Part("approval_request", "t.id = %s", (request_id,)),
        "decided_revision": Part(
            "revision",
            "t.request_id = %s AND t.number = (SELECT q.revision FROM approvals_request q WHERE q.id = %s)",
            (request_id, request_id),
        ),
        "decided_votes": Part(
            "vote",
            "t.request_id = %s AND t.revision = (SELECT q.revision FROM approvals_request q WHERE q.id = %s)",
            (request_id, request_id),
            many=True,
            order="t.voted_at",
        ),
    }


def read_asked(view: RunView) -> Asked:
    """The request with its current revision and votes."""

    def first(name: str) -> dict[str, Any]:
        return view.extras[name][0]

    return Asked(
        request=load(RequestRow, first("decided")),
        revision=load(RevisionRow, first("decided_revision")),
        votes=[load(VoteRow, row) for row in view.extras["decided_votes"]],
    )


def _repeated(view: RunView, asked: Asked, ballot: Ballot, groups: Mapping[UUID, Groups]) -> DecisionAnswer:
    grant = grant_of(view, asked.request.subject_id)
    own = grant is not None and grant.request_id == asked.request.id and grant.revision == asked.request.revision
    return _answer(asked, ballot, asked.request.state, grant.id if grant and own else None, groups, repeated=True)


def _answer(
    asked: Asked,
    ballot: Ballot,
    state: RequestState,
    grant_id: UUID | None,
    groups: Mapping[UUID, Groups],
    *,
    repeated: bool,
) -> DecisionAnswer:
    approving = {vote.voter_id for vote in asked.votes if vote.choice is Choice.APPROVE}
    if ballot.choice is Choice.APPROVE:
        approving |= {ballot.voter}
    needs = asked.revision.needs
    lacking = missing(needs.rules, {voter: groups[voter] for voter in approving if voter in groups})
    open_groups: Counter[str] = Counter()
    for rule, count in zip(needs.rules, lacking, strict=True):
        open_groups[rule.group] += count
    return DecisionAnswer(
        request_id=asked.request.id,
        run_id=asked.request.run_id,
        state=state,
        choice=ballot.choice,
        revision=asked.request.revision,
        grant_id=grant_id,
        missing=+open_groups if state is RequestState.PENDING else {},
        repeated=repeated,
    )


def _unseen() -> LedgerError:
    return LedgerError("not-found", "there is no such request here", "Check the address.")
