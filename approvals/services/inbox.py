"""What waits for one person: one queryset behind list, badge and what comes next."""

from __future__ import annotations

from django.db import connection
from django.db.models import BooleanField, Exists, OuterRef, QuerySet
from django.db.models.expressions import RawSQL

from approvals.domain.requests import RequestState
from approvals.models import ApprovalRequest, Vote
from approvals.services.counts import clock
from ledger.domain.identity import Verb
from ledger.models import Tenant, User
from ledger.services import permissions


def pending_for(user: User, tenant: Tenant) -> QuerySet[ApprovalRequest]:
    """The tenant's requests that this person may decide now, the oldest deadline first.

    Pending and not past decide-by (by the clock, whatever the sweep has got to), visible, of a workflow type on which they may approve, asking one of
    their groups, not on their behalf, and not voted on by them in the current revision.
    """
    mine = permissions.visible(user, Verb.SEE).of(tenant)
    approvable = permissions.visible(user, Verb.APPROVE).of(tenant)
    teams = permissions.teams(user, tenant.pk)
    voted = Vote.objects.of(tenant).filter(request=OuterRef("pk"), revision=OuterRef("revision"), voter=user)
    found: QuerySet[ApprovalRequest] = ApprovalRequest.objects.of(tenant).filter(
        _counts(user, teams),
        ~Exists(voted),
        state=RequestState.PENDING,
        decide_by__gt=clock(),
        workflow__in=mine.values("pk"),
        workflow_id__in=approvable.values("pk"),
    )
    return found.order_by("decide_by", "id")


_COUNTS = {
    "postgresql": (
        "EXISTS (SELECT 1 FROM approvals_revision r, jsonb_array_elements(r.requirement -> 'rules') rule"
        " WHERE r.request_id = approvals_request.id AND r.number = approvals_request.revision"
        " AND rule ->> 'group' IN ({slots}) AND NOT r.excluded @> to_jsonb(%s::text))"
    ),
    "sqlite": (
        "EXISTS (SELECT 1 FROM approvals_revision r, json_each(r.requirement, '$.rules') rule"
        " WHERE r.request_id = approvals_request.id AND r.number = approvals_request.revision"
        " AND json_extract(rule.value, '$.group') IN ({slots})"
        " AND NOT EXISTS (SELECT 1 FROM json_each(r.excluded) person WHERE person.value = %s))"
    ),
}


def _counts(user: User, teams: list[str]) -> RawSQL:
    """Would this person's vote count for a rule of the current revision? JSON is unfolded differently on each database."""
    slots = ", ".join(["%s"] * len(teams)) or "NULL"
    sql = _COUNTS[connection.vendor].format(slots=slots)
    return RawSQL(sql, [*teams, str(user.pk)], output_field=BooleanField())  # noqa: S611 - only placeholders are put in
