"""Requests for approval, their revisions, and votes."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from approvals.domain.requests import Choice, RequestState
from ledger.models.base import Record, record_id, within


class ApprovalRequest(Record):
    """What somebody asks leave for. `digest` is that of the current revision."""

    RECORD = "approval_request"
    MACHINE = "state"

    id = record_id()
    run = models.ForeignKey("ledger.Run", on_delete=models.PROTECT, related_name="requests", null=True, db_index=False)
    workflow = models.ForeignKey("ledger.WorkflowType", on_delete=models.PROTECT, related_name="requests", null=True)
    subject_kind = models.CharField(max_length=20)
    subject_id = models.UUIDField()
    state = models.CharField(max_length=10)
    cause = models.CharField(max_length=24, blank=True)
    revision = models.IntegerField()
    digest = models.BinaryField(max_length=32)
    decide_by = models.DateTimeField()
    opened_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True)

    class Meta(Record.Meta):
        db_table = "approvals_request"
        constraints = [
            within("state", RequestState, "request_state_known"),
            models.UniqueConstraint(
                fields=["subject_kind", "subject_id"],
                name="one_pending_request",
                condition=Q(state=RequestState.PENDING),
            ),
        ]
        indexes = [
            models.Index(
                fields=["tenant", "decide_by", "id"],
                name="request_pending",
                condition=Q(state=RequestState.PENDING),
            ),
            models.Index(fields=["decide_by"], name="request_due", condition=Q(state=RequestState.PENDING)),
            models.Index(fields=["run"], name="request_run"),
            models.Index(fields=["tenant", "-opened_at", "-id"], name="request_newest"),
        ]


class Revision(Record):
    """One asking: the digest of exactly what is asked, what it requires, and what changed since the one before.

    `use_by` is in seconds from approval.
    """

    RECORD = "revision"
    APPEND_ONLY = True
    COMMITTED = frozenset({"requirement", "requirement_digest"})

    id = record_id()
    run = models.ForeignKey("ledger.Run", on_delete=models.PROTECT, related_name="revisions", null=True)
    request = models.ForeignKey(ApprovalRequest, on_delete=models.PROTECT, related_name="revisions", db_index=False)
    number = models.IntegerField()
    subject_digest = models.BinaryField(max_length=32)
    requirement = models.JSONField()
    requirement_digest = models.BinaryField(max_length=32)
    excluded = models.JSONField(default=list)
    observation_id = models.UUIDField(null=True)
    previous_observation_id = models.UUIDField(null=True)
    reason = models.CharField(max_length=40)
    decide_by = models.DateTimeField()
    use_by = models.IntegerField()
    opened_at = models.DateTimeField()

    class Meta(Record.Meta):
        constraints = [models.UniqueConstraint(fields=["request", "number"], name="revision_number_unique")]


class Vote(Record):
    """One person's choice on one revision, with what they had on the screen: digest and renderer of the card, and their groups at the time."""

    RECORD = "vote"
    APPEND_ONLY = True
    COMMITTED = frozenset({"renderer", "groups"})

    id = record_id()
    run = models.ForeignKey("ledger.Run", on_delete=models.PROTECT, related_name="votes", null=True)
    request = models.ForeignKey(ApprovalRequest, on_delete=models.PROTECT, related_name="votes", db_index=False)
    revision = models.IntegerField()
    voter = models.ForeignKey("ledger.User", on_delete=models.PROTECT, related_name="votes")
    choice = models.CharField(max_length=8)
    reason_body = models.ForeignKey(
        "ledger.Body", on_delete=models.PROTECT, related_name="+", db_index=False, null=True
    )
    reason_commitment = models.BinaryField(max_length=32, null=True)
    receipt_digest = models.BinaryField(max_length=32)
    renderer = models.CharField(max_length=120)
    groups = models.JSONField()
    entry_point = models.CharField(max_length=20)
    voted_at = models.DateTimeField()

    class Meta(Record.Meta):
        constraints = [
            models.UniqueConstraint(fields=["request", "revision", "voter"], name="one_vote_a_revision"),
            within("choice", Choice, "vote_choice_known"),
        ]
