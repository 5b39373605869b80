"""Whose decision open requests want, as they were asked, and whether enough people who may give it are left."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from django.db.models import F

from approvals.domain.quorum import missing
from approvals.domain.requests import EFFECT, RequestState
from approvals.models import ApprovalRequest, Revision
from approvals.services import standing
from ledger.domain.authority import Requirement, Wanted
from ledger.models import WorkflowType

MOST_CHECKED = 200
NAMELESS = "without a name"
AT_ONCE = 25
"""So few requests that an index finds their revisions, however many there are."""


def wanted(tenant_id: UUID, effect_ids: Sequence[UUID]) -> Mapping[UUID, Wanted]:
    """By effect, of those with an open request, with the teams by their names: three queries, and one for each workflow type of theirs."""
    found = _wanted(tenant_id, effect_ids)
    names = standing.team_names(tenant_id, {slug for each in found.values() for slug in each.groups}) if found else {}

    def told(slugs: Sequence[str]) -> tuple[str, ...]:
        return tuple(names.get(slug) or slug or NAMELESS for slug in slugs)

    return {effect_id: Wanted(told(each.groups), told(each.lacking)) for effect_id, each in found.items()}


def _wanted(tenant_id: UUID, effect_ids: Sequence[UUID]) -> Mapping[UUID, Wanted]:
    """The same, with the teams by their slugs."""
    if not effect_ids:
        return {}
    pending = ApprovalRequest.objects.of(tenant_id).filter(
        state=RequestState.PENDING, subject_kind=EFFECT, subject_id__in=effect_ids
    )
    rows = Revision.objects.of(tenant_id).filter(
        number=F("request__revision"), request_id__in=list(pending.values_list("pk", flat=True))
    )
    asked: dict[UUID, list[Revision]] = defaultdict(list)
    for revision in rows.select_related("request"):
        asked[revision.request.workflow_id].append(revision)
    found: dict[UUID, Wanted] = {}
    for workflow_id, revisions in asked.items():
        rules_of = {each.pk: Requirement.from_document(each.requirement).rules for each in revisions}
        every = [rule for rules in rules_of.values() for rule in rules]
        people = standing.eligible(every, (), WorkflowType(pk=workflow_id, tenant_id=tenant_id))
        for each in revisions:
            rules = rules_of[each.pk]
            voters = {person: teams for person, teams in people.items() if str(person) not in each.excluded}
            lacks = [rule.group for rule, count in zip(rules, missing(rules, voters), strict=True) if count]
            groups = sorted({rule.group for rule in rules})
            found[each.request.subject_id] = Wanted(tuple(groups), tuple(sorted(set(lacks))))
    return found


def unanswerable(tenant_id: UUID) -> Collection[UUID]:
    """Ids of the runs of those open requests, among the `MOST_CHECKED` that are to be decided first, that too few people could approve."""
    rows = ApprovalRequest.objects.of(tenant_id).filter(state=RequestState.PENDING, run_id__isnull=False)
    runs = dict(rows.order_by("decide_by", "pk").values_list("subject_id", "run_id")[:MOST_CHECKED])
    effects = list(runs)
    parts = [effects[start : start + AT_ONCE] for start in range(0, len(effects), AT_ONCE)]
    return {runs[effect_id] for part in parts for effect_id, each in _wanted(tenant_id, part).items() if each.lacking}
