"""What one person's vote does to a request. Pure: who may vote comes in as facts that were read after the lock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from approvals.domain import requests
from approvals.domain.quorum import Groups, counts, missing, reached
from approvals.domain.requests import EFFECT, Choice, RequestRow, RequestState, RevisionRow, VoteRow
from ledger.domain import effects, waits
from ledger.domain.authority import Requirement, Rule, Verdict, give_grant, requirement
from ledger.domain.canonical import Body, check_text, digest
from ledger.domain.drafts import Draft
from ledger.domain.effects import EffectState, WithdrawCause
from ledger.domain.errors import LedgerError
from ledger.domain.journal import committed
from ledger.domain.views import RunView
from ledger.domain.waits import MemberKind, MemberState, Outcome

LONGEST_REASON = 4_000


class EntryPoint(StrEnum):
    """By which door a signed-in person came. There are no others."""

    PAGE = "page"
    API = "api"


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was on the screen: the SHA-256 of the card that was shown, and the version of what drew it."""

    digest: bytes
    renderer: str


@dataclass(frozen=True, slots=True)
class Ballot:
    """One vote as it was handed in. `seen_digest` and `seen_revision` are those of the card that the person read."""

    request_id: UUID
    voter: UUID
    choice: Choice
    reason: str
    seen_digest: bytes
    seen_revision: int
    entry_point: EntryPoint
    receipt: Receipt


@dataclass(frozen=True, slots=True)
class Asked:
    """A request with its current revision and the votes on it."""

    request: RequestRow
    revision: RevisionRow
    votes: Sequence[VoteRow]


def read_choice(text: object) -> Choice:
    """Only the literal words count. Raises LedgerError `invalid`."""
    if isinstance(text, str) and text in (str(choice) for choice in Choice):
        return Choice(text)
    raise LedgerError("invalid", "the decision is neither 'approve' nor 'deny'", "Choose one of the two.")


def read_reason(choice: Choice, text: str) -> str:
    """The reason, trimmed; a denial needs one. Raises LedgerError `invalid` or `bad-text`."""
    reason = text.strip()
    check_text(reason, "reason")
    if len(reason) > LONGEST_REASON:
        raise LedgerError("invalid", f"the reason is longer than {LONGEST_REASON} characters", "Shorten it.")
    if choice is Choice.DENY and not reason:
        raise LedgerError(
            "invalid", "a denial needs a reason; the agent receives it word for word", "Write one and deny again."
        )
    return reason


def repeated(asked: Asked, ballot: Ballot) -> bool:
    """Has this person handed in this very vote before? Raises LedgerError `already-decided` when it was the other one."""
    own = next((vote for vote in asked.votes if vote.voter_id == ballot.voter), None)
    if own is None or ballot.seen_revision != asked.request.revision:
        return False
    if own.choice is not ballot.choice:
        raise LedgerError(
            "already-decided",
            f"you have voted to {own.choice} on this revision",
            "An approval can be taken back while it is not used; a denial stands.",
            state=str(asked.request.state),
            choice=str(own.choice),
            voted_at=own.voted_at.isoformat(),
        )
    return True


def outdated(view: RunView, asked: Asked) -> Requirement | None:
    """What the policy in force wants of the call, where that is no longer what was asked, so that an approval would be void at once; None where it
    is, and where it wants nobody's leave any more."""
    effect = view.effect(asked.request.subject_id)
    if effect is None:
        return None
    needs = requirement(view.policy, effect.tool, view.targets[effect.target_id].name)
    return needs if wants_otherwise(needs, asked.revision.requirement_digest) else None


def wants_otherwise(needs: Requirement, asked: bytes) -> bool:
    """Does the policy in force want something else than was asked (its digest), so that an approval wouldn't hold?"""
    return needs.verdict is not Verdict.ALLOW and needs.digest() != asked


def complete(asked: Asked, view: RunView, excluded: frozenset[UUID], standing: Mapping[UUID, Groups]) -> bool:
    """Do the votes that are in make the quorum by now, though the request is open still? So it is when a voter's right was lost and came back."""
    request = asked.request
    effect = view.effect(request.subject_id)
    if request.state is not RequestState.PENDING or view.now >= request.decide_by:
        return False
    if effect is None or effect.subject_digest != request.digest:
        return False
    voters = _approving(asked) - excluded
    return reached(asked.revision.needs.rules, {voter: standing[voter] for voter in voters if voter in standing})


def _approving(asked: Asked) -> set[UUID]:
    return {vote.voter_id for vote in asked.votes if vote.choice is Choice.APPROVE}


def check_voter(
    asked: Asked,
    ballot: Ballot,
    excluded: frozenset[UUID],
    standing: Mapping[UUID, Groups],
    rules: Sequence[Rule] = (),
) -> None:
    """`standing` holds those who may approve here as of now, with their groups; `rules` are those that will be asked, beside those that were.

    Raises LedgerError `self-approval` or `not-eligible`.
    """
    known = [*asked.revision.needs.rules, *rules]
    if ballot.voter in excluded or str(ballot.voter) in asked.revision.excluded:
        raise LedgerError(
            "self-approval",
            "the agent asks on your behalf or is your own: somebody else has to decide",
            "Leave it to another approver.",
        )
    if ballot.voter not in standing or not counts(known, standing[ballot.voter]):
        raise LedgerError(
            "not-eligible",
            "your vote would count for none of the rules",
            "Ask somebody of the teams that the request names.",
            groups=sorted({rule.group for rule in asked.revision.needs.rules}),
        )


def check_pending(asked: Asked, now: datetime) -> None:
    """Is there still something to decide? Raises LedgerError `already-decided`, `wrong-state` or `expired`."""
    request = asked.request
    if request.state in (RequestState.APPROVED, RequestState.DENIED):
        last = max(asked.votes, key=lambda vote: vote.voted_at, default=None)
        raise LedgerError(
            "already-decided",
            f"this was {request.state} before you came",
            "Nothing is left to decide; nothing of yours was counted.",
            state=str(request.state),
            decided_by=str(last.voter_id) if last else None,
            decided_at=request.closed_at.isoformat() if request.closed_at else None,
        )
    if request.state is RequestState.WITHDRAWN:
        raise LedgerError(
            "wrong-state",
            "the request was withdrawn",
            "Nothing is left to decide.",
            state="withdrawn",
            cause=request.cause,
        )
    if request.state is RequestState.EXPIRED or now >= request.decide_by:
        raise LedgerError(
            "expired",
            "the time to decide is over; nothing was done",
            "The agent can ask again.",
            decide_by=request.decide_by.isoformat(),
        )


def check_open(asked: Asked, view: RunView, ballot: Ballot) -> None:
    """Is it still the question that the person read? Raises LedgerError as `check_pending` does, or `changed`."""
    check_pending(asked, view.now)
    request = asked.request
    effect = view.effect(request.subject_id)
    if (
        ballot.seen_revision != request.revision
        or ballot.seen_digest != request.digest
        or effect is None
        or effect.subject_digest != request.digest
    ):
        raise LedgerError(
            "changed",
            "what is asked is no longer what you read",
            "Read the request as it is now, and decide again.",
            revision=request.revision,
            digest=request.digest.hex(),
        )


def cast(
    draft: Draft, view: RunView, asked: Asked, ballot: Ballot, reason: Body | None, standing: Mapping[UUID, Groups]
) -> tuple[RequestState, UUID | None]:
    """Count a vote: one denial denies; the last place filled approves and gives the grant. Answers the request's state and the grant.

    Only votes of people who still may approve count towards the quorum.
    """
    draft.before(asked.request.decide_by)
    waits.in_time(draft, view)
    _insert_vote(draft, asked, ballot, reason, sorted(standing[ballot.voter]))
    if ballot.choice is Choice.DENY:
        requests.close(draft, asked.request, "deny", to=RequestState.DENIED)
        end_effect(draft, view, asked.request.subject_id, WithdrawCause.DENIED, Outcome.DENIED)
        return RequestState.DENIED, None
    approving = _approving(asked) | {ballot.voter}
    rules = asked.revision.needs.rules
    if any(missing(rules, {voter: groups for voter, groups in standing.items() if voter in approving})):
        return RequestState.PENDING, None
    return approve(draft, view, asked)


def approve(draft: Draft, view: RunView, asked: Asked) -> tuple[RequestState, UUID | None]:
    """The votes make the quorum: the request is approved and gives the grant. Answers as `cast`."""
    draft.before(asked.request.decide_by)
    waits.in_time(draft, view)
    requests.close(draft, asked.request, "approve", to=RequestState.APPROVED)
    grant_id = give_grant(
        draft,
        EFFECT,
        asked.request.subject_id,
        asked.revision.subject_digest,
        asked.revision.needs,
        asked.request.id,
        asked.revision.number,
    )
    meet_members(draft, view, asked.request.subject_id, Outcome.APPROVED)
    return RequestState.APPROVED, grant_id


def _insert_vote(draft: Draft, asked: Asked, ballot: Ballot, reason: Body | None, groups: list[str]) -> None:
    if reason is not None:
        draft.body(reason)
    draft.insert(
        "vote",
        id=draft.mint(),
        run_id=draft.stream.id,
        request_id=asked.request.id,
        revision=asked.request.revision,
        voter_id=ballot.voter,
        choice=ballot.choice,
        reason_body_id=reason.id if reason else None,
        reason_commitment=reason.commitment if reason else None,
        receipt_digest=_receipt(ballot.receipt, draft.stream.salt),
        renderer=ballot.receipt.renderer,
        groups=groups,
        entry_point=ballot.entry_point,
        voted_at=draft.at,
    )


def _receipt(receipt: Receipt, salt: bytes | None) -> bytes:
    """What the record keeps of a card's digest. That was made when the card was shown, before the run was read to be written to, over texts that
    could be guessed; under the salt of the run's stream nobody can."""
    return digest("vote-receipt/1", {"card": committed(receipt.digest.hex(), salt)})


def end_effect(draft: Draft, view: RunView, effect_id: UUID, cause: WithdrawCause, outcome: Outcome) -> None:
    """It won't be approved: the effect is withdrawn with the cause, and who waits for the approval learns the outcome."""
    effect = view.effect(effect_id)
    if effect is not None and effect.state is EffectState.PROPOSED:
        effects.withdraw(draft, view, effect, cause)
    meet_members(draft, view, effect_id, outcome)


def expire(draft: Draft, view: RunView) -> bool:
    """Nobody decided in time: of the pending requests past their decide-by, the first. One a Change: what it closes may withdraw the others.

    False when there is none, and when a timer closed the run's wait before that.
    """
    late = [row for row in requests.rows_of(view) if row.state is RequestState.PENDING and row.decide_by <= draft.at]
    first = min(late, key=lambda row: row.decide_by, default=None)
    if first is None or waits.fired(view, first.decide_by):
        return False
    requests.close(draft, first, "expire")
    end_effect(draft, view, first.subject_id, WithdrawCause.EXPIRED, Outcome.EXPIRED)
    return True


def deny_by_policy(draft: Draft, view: RunView, request: RequestRow) -> None:
    """Nobody can approve what the policy denies by now: the request is withdrawn, and who waits for the approval learns why."""
    draft.before(request.decide_by)
    requests.close(draft, request, "withdraw", "policy_denies")
    end_effect(draft, view, request.subject_id, WithdrawCause.DENIED, Outcome.DENIED_BY_POLICY)


def meet_members(draft: Draft, view: RunView, effect_id: UUID, outcome: Outcome) -> None:
    """Whatever in the run waits for this approval has its outcome; requests that nobody waits for any more are withdrawn."""

    def withdraw(effect_ids: frozenset[UUID], cause: str) -> None:
        requests.withdraw(draft, view, effect_ids, cause)

    for member in view.members:
        if member.kind is MemberKind.APPROVAL and member.effect_id == effect_id and member.state is MemberState.OPEN:
            waits.meet(draft, view, member, outcome, withdraw=withdraw)
            return
