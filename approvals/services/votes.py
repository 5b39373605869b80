"""Taking one's own vote back while nothing is decided."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from approvals.domain import requests as rules
from approvals.domain.decisions import check_pending
from approvals.domain.requests import Asking, Choice
from approvals.models import Vote
from approvals.services.asking import carry, excluded
from approvals.services.decisions import Place, find, read_asked, request_parts
from ledger.domain.errors import Late, LedgerError, Moved
from ledger.models import User
from ledger.services import locks, writer
from ledger.services.contracts import writes
from ledger.services.drafts import run_draft
from ledger.services.views import run_view

REASON = "vote_withdrawn"


@writes(
    moves="Opens the request's next revision, with the other approvals carried; the request stays pending.",
    twice="The second is refused: `changed`.",
)
def withdraw_vote(user: User, request_id: UUID, seen_revision: int) -> int:
    """Take one's own approval back before the quorum: a new revision opens with the other votes carried. Answers its number.

    Votes are never removed; the one that was taken back stays with the revision before. Raises LedgerError `not-found`, `already-decided`,
    `wrong-state`, `expired`, or `changed` when the revision isn't the one that the person voted on.
    """
    place = find(user.pk, request_id)
    for _ in range(writer.TRIES):
        try:
            with transaction.atomic(durable=True):
                locks.run_head(place.run_id)
                return _withdraw(user, request_id, seen_revision, place)
        except (Moved, Late):
            continue
    raise LedgerError("busy", "the record kept moving under this call", "Ask again.")


def _withdraw(user: User, request_id: UUID, seen_revision: int, place: Place) -> int:
    view = run_view(place.run_id, place.workflow.tenant_id, **request_parts(request_id))
    asked = read_asked(view)
    check_pending(asked, view.now)
    effect = view.effect(asked.request.subject_id)
    own = any(vote.voter_id == user.pk and vote.choice is Choice.APPROVE for vote in asked.votes)
    if not own or effect is None or seen_revision != asked.request.revision:
        raise LedgerError(
            "changed",
            "there is no approval of yours on what is asked now",
            "Read the request as it is now.",
            revision=asked.request.revision,
        )
    draft = run_draft(view, f"person:{user.pk}", "request.withdraw_vote", fresh_authority=True)
    draft.before(asked.request.decide_by)
    again = Asking(
        run_id=place.run_id,
        workflow_id=view.head.workflow_id,
        effect=effect,
        needs=asked.revision.needs,
        excluded=excluded(view, asked.revision),
        wait_until=asked.request.decide_by,
        reason=REASON,
    )
    rules.reask(draft, view, again, asked.request, asked.revision)
    others = Vote.objects.of(view.run.tenant_id).filter(
        request_id=request_id, revision=asked.request.revision, choice=Choice.APPROVE
    )
    carry(draft, view, asked.request, asked.revision, others.exclude(voter=user))
    writer.apply(draft.change())
    return asked.request.revision + 1
