"""Handoffs: what a person must take because the engine can't decide."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from ledger.domain.handoffs import OPEN_HANDOFFS, HandoffState, Outcome
from ledger.models.base import Record, record_id, within


class Handoff(Record):
    """`reason` is a code; what was known is in the decision and reports that it names. `note` is the closer's reason."""

    RECORD = "handoff"
    MACHINE = "state"

    id = record_id()
    run = models.ForeignKey("ledger.Run", on_delete=models.PROTECT, related_name="handoffs")
    effect_id = models.UUIDField(null=True)
    decision_id = models.UUIDField(null=True)
    state = models.CharField(max_length=10)
    reason = models.CharField(max_length=40)
    severity = models.CharField(max_length=8)
    blocks_run = models.BooleanField()
    owner = models.ForeignKey("ledger.User", on_delete=models.PROTECT, related_name="handoffs", null=True)
    outcome = models.CharField(max_length=10, blank=True)
    note_id = models.UUIDField(null=True)
    note_commitment = models.BinaryField(max_length=32, null=True)
    opened_at = models.DateTimeField()
    due_at = models.DateTimeField()
    escalated_at = models.DateTimeField(null=True)
    closed_at = models.DateTimeField(null=True)

    class Meta(Record.Meta):
        constraints = [
            within("state", HandoffState, "handoff_state_known"),
            within("outcome", ["", *Outcome], "handoff_outcome_known"),
            models.UniqueConstraint(
                fields=["run"],
                name="one_blocking_handoff",
                condition=Q(blocks_run=True, state__in=[HandoffState.OPEN, HandoffState.ACCEPTED]),
            ),
            models.UniqueConstraint(
                fields=["effect_id"],
                name="one_handoff_of_an_effect",
                condition=Q(effect_id__isnull=False, state__in=[HandoffState.OPEN, HandoffState.ACCEPTED]),
            ),
        ]
        indexes = [
            models.Index(fields=["tenant", "state", "due_at"], name="handoff_by_state"),
            models.Index(
                fields=["due_at"],
                name="handoff_due",
                condition=Q(state__in=list(OPEN_HANDOFFS), escalated_at__isnull=True),
            ),
            models.Index(fields=["due_at"], name="handoff_taken", condition=Q(state=HandoffState.ACCEPTED)),
        ]
