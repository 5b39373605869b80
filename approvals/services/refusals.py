"""Requests that were denied, or that nobody decided on: why runs ended, and what the agent is told."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from uuid import UUID

from django.db.models import F, Q

from approvals.domain.requests import EFFECT, Choice, RequestState
from approvals.models import ApprovalRequest, Vote
from approvals.services import standing
from ledger.domain.canonical import commit
from ledger.domain.drafts import Draft
from ledger.domain.effects import EffectRow
from ledger.domain.endings import Kind, Reason
from ledger.domain.explain import at
from ledger.domain.views import RunView
from ledger.models import Body, Effect

WAIT_CLOSED = "wait_closed"
"""The ledger's cause for withdrawing what a wait had asked when it closed."""
UNDECIDED = Q(state=RequestState.EXPIRED) | Q(
    state=RequestState.WITHDRAWN, cause=WAIT_CLOSED, closed_at__gte=F("decide_by")
)


def refusals(tenant_id: UUID, run_ids: Sequence[UUID]) -> Iterator[tuple[UUID, Reason]]:
    """The refused and the undecided requests of these runs: four queries, however many."""
    rows = ApprovalRequest.objects.of(tenant_id).filter(run_id__in=run_ids, closed_at__isnull=False)
    closed = list(rows.filter(UNDECIDED | Q(state=RequestState.DENIED)))
    names = dict(
        Effect.objects.of(tenant_id).filter(pk__in=[row.subject_id for row in closed]).values_list("pk", "name")
    )
    denied = Vote.objects.of(tenant_id).filter(request_id__in=[row.pk for row in closed], choice=Choice.DENY)
    people: dict[UUID, list[str]] = defaultdict(list)
    teams: dict[UUID, set[str]] = defaultdict(set)
    for request_id, name, groups in denied.order_by("voted_at").values_list("request_id", "voter__name", "groups"):
        people[request_id].append(name)
        teams[request_id].update(groups)
    known = standing.team_names(tenant_id, {slug for slugs in teams.values() for slug in slugs})
    for row in closed:
        what = names.get(row.subject_id, "")
        if row.state == RequestState.DENIED:
            who = tuple(dict.fromkeys(people[row.pk]))
            of = tuple(sorted(known.get(slug) or slug for slug in teams[row.pk]))
            yield row.run_id, Reason(Kind.DENIED, row.closed_at, what, who, teams=of)
        else:
            yield row.run_id, Reason(Kind.UNDECIDED, row.closed_at, what, note=at(row.decide_by))


def reasons(tenant_id: UUID, effect_ids: Sequence[UUID]) -> Mapping[UUID, str]:
    """Why each of these effects was denied, in the words of those who did, oldest first; erased and empty words are left out: one query."""
    denied = Vote.objects.of(tenant_id).filter(
        choice=Choice.DENY,
        revision=F("request__revision"),
        request__state=RequestState.DENIED,
        request__subject_kind=EFFECT,
        request__subject_id__in=effect_ids,
        reason_body__content__isnull=False,
    )
    said: dict[UUID, list[str]] = defaultdict(list)
    for effect_id, words in denied.order_by("voted_at").values_list("request__subject_id", "reason_body__content"):
        said[effect_id].append(bytes(words).decode())
    return {effect_id: "\n".join(words) for effect_id, words in said.items()}


def denied_before(draft: Draft | None, view: RunView, effect: EffectRow) -> bool:
    """Did people deny the very same of this run: tool, target, resource, what the target showed of it, and the request?

    A request that names other content, or a target that has moved since, is another question.
    """
    alike = [row for row in view.extras["denied"] if all(row[name] == getattr(effect, name) for name in _ALIKE)]
    if not alike:
        return False
    salts = {row["id"]: row["salt"] for row in view.extras["denied_contents"]}
    own = draft.inserted("body", id=effect.request_id) if draft is not None else None
    content = own["content"] if own else Body.objects.of(view.run.tenant_id).get(pk=effect.request_id).content
    told = [(salts.get(row["request_id"]), row["request_commitment"]) for row in alike]
    return any(salt is not None and commit(salt, bytes(content)) == commitment for salt, commitment in told)


_ALIKE = ("tool", "target_id", "resource", "observed_version")
