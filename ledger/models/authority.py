"""Policies and grants."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from ledger.domain.authority import GrantState
from ledger.models.base import Record, record_id, within


class PolicyVersion(Record):
    """A list of rules, in order; the newest version of a tenant is in force."""

    RECORD = "policy_version"
    APPEND_ONLY = True
    COMMITTED = frozenset({"rules", "digest"})

    id = record_id()
    number = models.IntegerField()
    rules = models.JSONField()
    digest = models.BinaryField(max_length=32)
    author = models.CharField(max_length=80)
    created_at = models.DateTimeField()

    class Meta(Record.Meta):
        db_table = "ledger_policy_version"
        constraints = [models.UniqueConstraint(fields=["tenant", "number"], name="policy_number_unique")]


class Grant(Record):
    """A person's or the policy's leave for one subject, bound to its digest. `use_by` counts from the approval."""

    RECORD = "grant"
    COMMITTED = frozenset({"requirement_digest"})
    MACHINE = "state"

    id = record_id()
    run = models.ForeignKey("ledger.Run", on_delete=models.PROTECT, related_name="grants", null=True)
    subject_kind = models.CharField(max_length=20)
    subject_id = models.UUIDField()
    subject_digest = models.BinaryField(max_length=32)
    requirement_digest = models.BinaryField(max_length=32)
    request_id = models.UUIDField(null=True)
    revision = models.IntegerField(default=0)
    state = models.CharField(max_length=8)
    cause = models.CharField(max_length=24, blank=True)
    approved_at = models.DateTimeField()
    use_by = models.DateTimeField()
    closed_at = models.DateTimeField(null=True)

    class Meta(Record.Meta):
        constraints = [
            within("state", GrantState, "grant_state_known"),
            models.UniqueConstraint(
                fields=["subject_kind", "subject_id"],
                name="one_live_grant",
                condition=Q(state=GrantState.LIVE),
            ),
        ]
        indexes = [models.Index(fields=["use_by"], name="grant_due", condition=Q(state=GrantState.LIVE))]
