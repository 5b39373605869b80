"""Wakes, their checks, and decisions."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from ledger.domain.wakes import Answer, DecisionKind, WakeState
from ledger.models.base import Record, record_id, within

OPEN = Q(state__in=[WakeState.QUEUED, WakeState.CHECKING])


class Wake(Record):
    """One pass over the facts. `attempt` is counted before the work; `until` is when a checker is taken for dead. `overtaken` counts the passes that
    something elsewhere in the tenant made void: they are no attempts."""

    RECORD = "wake"
    MACHINE = "state"

    id = record_id()
    run = models.ForeignKey("ledger.Run", on_delete=models.PROTECT, related_name="wakes")
    state = models.CharField(max_length=8)
    reasons = models.JSONField()
    due_at = models.DateTimeField()
    until = models.DateTimeField(null=True)
    attempt = models.IntegerField(default=0)
    overtaken = models.IntegerField(default=0, db_default=0)
    opened_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True)
    decision_id = models.UUIDField(null=True)

    class Meta(Record.Meta):
        constraints = [
            within("state", WakeState, "wake_state_known"),
            models.UniqueConstraint(fields=["run"], name="one_open_wake", condition=OPEN),
            models.CheckConstraint(
                condition=~Q(state=WakeState.CHECKING) | Q(until__isnull=False),
                name="checking_wake_has_an_end",
            ),
        ]
        indexes = [models.Index(fields=["due_at"], name="wake_due", condition=OPEN)]


class Decision(Record):
    """What a wake decided, by which rule, from which facts."""

    RECORD = "decision"
    APPEND_ONLY = True

    id = record_id()
    run = models.ForeignKey("ledger.Run", on_delete=models.PROTECT, related_name="decisions")
    wake_id = models.UUIDField()
    decision = models.CharField(max_length=16)
    reasons = models.JSONField()
    rule_version = models.CharField(max_length=20)
    facts_digest = models.BinaryField(max_length=32)
    transition = models.CharField(max_length=80)
    instance_id = models.UUIDField()
    decided_at = models.DateTimeField()

    class Meta(Record.Meta):
        constraints = [within("decision", DecisionKind, "decision_known")]


class WakeCheck(Record):
    """One check's answer with the recorded and the observed value, as codes, ids and versions, a target's own versions among them."""

    RECORD = "wake_check"
    APPEND_ONLY = True
    COMMITTED = frozenset({"subject", "recorded", "observed"})

    id = record_id()
    run = models.ForeignKey("ledger.Run", on_delete=models.PROTECT, related_name="checks", db_index=False)
    decision = models.ForeignKey(Decision, on_delete=models.PROTECT, related_name="checks", db_index=False)
    ordinal = models.IntegerField()
    name = models.CharField(max_length=24)
    subject = models.CharField(max_length=200, blank=True)
    answer = models.CharField(max_length=12)
    reason = models.CharField(max_length=40)
    recorded = models.CharField(max_length=300, blank=True)
    observed = models.CharField(max_length=300, blank=True)

    class Meta(Record.Meta):
        db_table = "ledger_wake_check"
        constraints = [
            within("answer", Answer, "check_answer_known"),
            models.UniqueConstraint(fields=["decision", "ordinal"], name="check_ordinal_unique"),
        ]
