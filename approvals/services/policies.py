"""Requests that wait while another policy comes into force: nobody need vote before the people see them whom that policy wants."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial, reduce
from operator import or_
from typing import Any, Final
from uuid import UUID

from django.db.models import F, OuterRef, Q, QuerySet, Subquery

from approvals.domain import decisions, requests
from approvals.domain.decisions import Asked
from approvals.domain.requests import EFFECT, Asking, RequestState
from approvals.models import Revision
from approvals.services.asking import excluded, revision_of
from approvals.services.counts import clock
from approvals.services.requests import tell_each
from ledger.domain.authority import PolicyRow, Requirement, Verdict, requirement
from ledger.domain.change import Change
from ledger.domain.drafts import Draft
from ledger.domain.views import RunView
from ledger.models import Effect
from ledger.services import deadlines, facts, meetings, writer
from ledger.services.contracts import writes
from ledger.services.drafts import run_draft
from ledger.services.facts import Part
from ledger.services.ids import first_id
from ledger.services.views import run_view

ACTOR = "system:policy"
POLICY_CHANGED = "policy_changed"
LOOKED_BACK: Final = timedelta(minutes=1)
"""How long after its publication a policy is usually looked at: whoever asked under the one before has written or given up by then."""
KINDS: Final = 50
"""So many kinds of calls are looked for at once; what is left is found by the next look."""


def ask_anew(draft: Draft, view: RunView, asked: Asked, needs: Requirement) -> None:
    """Open the request's next revision, under what the policy in force wants; it gets no more time than it had."""
    effect = view.effect(asked.request.subject_id)
    if effect is None:
        raise ValueError("what is pending is about an effect of the run as it stands")
    draft.before(asked.request.decide_by)
    again = Asking(
        run_id=view.run.id,
        workflow_id=view.head.workflow_id,
        effect=effect,
        needs=needs,
        excluded=excluded(view, asked.revision),
        wait_until=asked.request.decide_by,
        reason=POLICY_CHANGED,
    )
    requests.reask(draft, view, again, asked.request, asked.revision)


@writes(
    moves="What `follow` moves, for every run with a request that the policy in force wants otherwise.",
    twice="Takes what became so since.",
    dies="What is left is found by the next look.",
)
def follow_due(limit: int = 100) -> int:
    """Ask anew what waits to be decided as a policy wanted that is no longer in force, the most urgent first. Answers how many runs moved.

    Deciding looks at the policy itself, so nothing rests on this having run. Safe to repeat.
    """
    return tell_each(_looks.found(limit), follow)


@writes(
    moves=(
        "Request pending → pending, with its next revision, where the policy in force wants something else; pending → withdrawn where it denies "
        "the call: effect proposed → withdrawn, and the member that waits for it learns so: run waiting → waking. Where time has closed the "
        "run's wait before: what `expire_due` moves."
    ),
    twice="Answers False: all is asked as the policy in force wants it.",
    dies="Nothing hangs on it: deciding looks at the policy itself.",
)
def follow(run_id: UUID) -> bool:
    """Ask the run's pending requests as the policy in force wants them. True when something moved; of denied calls one a Change."""
    _, written = writer.settle(partial(run_view, run_id), _follow)
    return written is not None


def _follow(view: RunView) -> tuple[Change | None, None]:
    """What time has closed has its turn first."""
    if (closing := deadlines.overdue(view)) is not None:
        return closing, None
    otherwise = list(_otherwise(view))
    denied = next((asked for asked, needs in otherwise if needs.verdict is Verdict.DENY), None)
    if denied is not None:
        draft = run_draft(view, ACTOR, "request.withdraw", fresh_authority=True)
        decisions.deny_by_policy(draft, view, denied.request)
        return draft.change(), None
    draft = run_draft(view, ACTOR, "request.revise", fresh_authority=True)
    for asked, needs in otherwise:
        ask_anew(draft, view, asked, needs)
    return (draft.change() if otherwise else None), None


def _otherwise(view: RunView) -> Iterator[tuple[Asked, Requirement]]:
    """The run's requests that can be decided still, of which the policy in force wants something else than was asked."""
    for request in requests.rows_of(view):
        if request.state is RequestState.PENDING and request.decide_by > view.now:
            asked = Asked(request, revision_of(view, request), ())
            needs = decisions.outdated(view, asked)
            if needs is not None:
                yield asked, needs


def outdated(limit: int, since: datetime | None = None) -> list[UUID]:
    """Runs with a request that the policy in force wants otherwise, at most `limit`; of policies published after `since` (None: whenever)."""
    floor = UUID(int=0) if since is None else first_id(since)
    newest = (
        "NOT EXISTS (SELECT 1 FROM ledger_policy_version n WHERE n.tenant_id = t.tenant_id AND n.number > t.number)"
    )
    asks = "EXISTS (SELECT 1 FROM approvals_request q WHERE q.tenant_id = t.tenant_id AND q.state = 'pending')"
    where = f"t.id >= %s AND {newest} AND {asks}"
    read = facts.read(policies=Part("policy_version", where, (floor,), many=True, order="t.id"))
    found: list[UUID] = []
    for row in read.many("policies"):
        if len(found) < limit:
            found += _of_tenant(row["tenant_id"], facts.load(PolicyRow, row), limit - len(found))
    return found


def _of_tenant(tenant_id: UUID, policy: PolicyRow, limit: int) -> list[UUID]:
    """Two queries: the kinds of calls that are asked for, which are few, and the runs that ask for those that are wanted otherwise."""
    asked = _pending(tenant_id)
    kinds = asked.values_list("tool", "target", "requirement_digest").order_by("tool", "target").distinct()
    otherwise = [
        Q(tool=tool, target=target, requirement_digest=bytes(digest))
        for tool, target, digest in kinds
        if decisions.wants_otherwise(requirement(policy, tool, target), bytes(digest))
    ]
    if not otherwise:
        return []
    rows = asked.filter(reduce(or_, otherwise[:KINDS])).order_by("request__decide_by", "request_id")
    return list(dict.fromkeys(rows.values_list("request__run_id", flat=True)[:limit]))


def _pending(tenant_id: UUID) -> QuerySet[Any]:
    """The current revisions of the requests that can be decided still, each with the tool and the target of its call."""
    effect = Effect.objects.of(tenant_id).filter(pk=OuterRef("request__subject_id"))
    rows: QuerySet[Any] = Revision.objects.of(tenant_id).annotate(
        tool=Subquery(effect.values("tool")), target=Subquery(effect.values("target__name"))
    )
    return rows.filter(
        number=F("request__revision"),
        request__state=RequestState.PENDING,
        request__subject_kind=EFFECT,
        request__run__isnull=False,
        request__decide_by__gt=clock(),
    )


_looks = meetings.Looks(outdated, LOOKED_BACK)
