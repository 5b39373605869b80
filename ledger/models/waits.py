"""Wait sets, their members, received events and deliveries."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from ledger.domain.waits import MemberKind, MemberState, OnDeadline, SetMode, SetState
from ledger.models.base import Record, record_id, salted_or_erased, stream_salt, within


class WaitSet(Record):
    """What a run waits for. `internal` names the engine's own waits (back-off, reconcile, ask again)."""

    RECORD = "wait_set"
    MACHINE = "state"

    id = record_id()
    run = models.ForeignKey("ledger.Run", on_delete=models.PROTECT, related_name="waits")
    instance_id = models.UUIDField()
    mode = models.CharField(max_length=4)
    state = models.CharField(max_length=12)
    internal = models.CharField(max_length=16, blank=True)
    cause = models.CharField(max_length=24, blank=True)
    deadline = models.DateTimeField()
    on_deadline = models.CharField(max_length=10)
    due_at = models.DateTimeField()
    opened_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True)

    class Meta(Record.Meta):
        db_table = "ledger_wait_set"
        constraints = [
            within("mode", SetMode, "wait_mode_known"),
            within("state", SetState, "wait_state_known"),
            within("on_deadline", OnDeadline, "wait_action_known"),
            models.UniqueConstraint(fields=["run"], name="one_open_wait_set", condition=Q(state=SetState.OPEN)),
        ]
        indexes = [models.Index(fields=["due_at"], name="wait_due", condition=Q(state=SetState.OPEN))]


class WaitMember(Record):
    """One thing a wait set waits for: `due_at` for timers, `effect` for approvals and settles, source, type and subject for events.

    `not_from` are the agents whose events never meet it."""

    RECORD = "wait_member"
    COMMITTED = frozenset({"event_source", "event_type", "event_subject"})
    MACHINE = "state"

    id = record_id()
    run = models.ForeignKey("ledger.Run", on_delete=models.PROTECT, related_name="wait_members")
    wait = models.ForeignKey(WaitSet, on_delete=models.PROTECT, related_name="members", db_index=False)
    ordinal = models.IntegerField()
    kind = models.CharField(max_length=12)
    state = models.CharField(max_length=8)
    outcome = models.CharField(max_length=24, blank=True)
    due_at = models.DateTimeField(null=True)
    effect_id = models.UUIDField(null=True)
    event_source = models.CharField(max_length=200, blank=True)
    event_type = models.CharField(max_length=200, blank=True)
    event_subject = models.CharField(max_length=200, blank=True)
    since = models.DateTimeField(null=True)
    event_id = models.UUIDField(null=True)
    not_from = models.JSONField(default=list, db_default=[])
    met_at = models.DateTimeField(null=True)

    class Meta(Record.Meta):
        db_table = "ledger_wait_member"
        constraints = [
            within("kind", MemberKind, "member_kind_known"),
            within("state", MemberState, "member_state_known"),
            models.UniqueConstraint(fields=["wait", "ordinal"], name="member_ordinal_unique"),
        ]
        indexes = [
            models.Index(
                fields=["tenant", "event_type", "event_subject"],
                name="member_for_event",
                condition=Q(state=MemberState.OPEN, kind=MemberKind.EVENT),
            ),
            models.Index(
                fields=["tenant", "event_type", "event_subject"],
                name="member_closed",
                condition=Q(state=MemberState.CLOSED, kind=MemberKind.EVENT),
            ),
            models.Index(
                fields=["effect_id"],
                name="member_for_effect",
                condition=Q(state=MemberState.OPEN, effect_id__isnull=False),
            ),
        ]


class Event(Record):
    """A CloudEvent as received: a stream of its own with one entry, and therefore with its own salt. Identity is (tenant, source, event_id)."""

    RECORD = "event"
    UNJOURNALLED = frozenset({"salt"})
    COMMITTED = frozenset({"source", "event_id", "type", "subject"})

    id = record_id()
    source = models.CharField(max_length=200)
    event_id = models.CharField(max_length=200)
    type = models.CharField(max_length=200)
    subject = models.CharField(max_length=200, blank=True)
    occurred_at = models.DateTimeField(null=True)
    body = models.ForeignKey("ledger.Body", on_delete=models.PROTECT, related_name="+", db_index=False)
    commitment = models.BinaryField(max_length=32)
    key_id = models.UUIDField(null=True)
    received_at = models.DateTimeField()
    keep_until = models.DateTimeField()
    salt = stream_salt()
    erased_at = models.DateTimeField(null=True)

    class Meta(Record.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "source", "event_id"], name="event_unique"),
            salted_or_erased("event_salted_or_erased"),
        ]
        indexes = [models.Index(fields=["tenant", "type", "subject", "received_at"], name="event_for_wait")]


class EventDelivery(Record):
    """An event met a wait member. A run consumes an event at most once."""

    RECORD = "event_delivery"
    APPEND_ONLY = True

    id = record_id()
    run = models.ForeignKey("ledger.Run", on_delete=models.PROTECT, related_name="deliveries", db_index=False)
    event = models.ForeignKey(Event, on_delete=models.PROTECT, related_name="deliveries", db_index=False)
    member = models.ForeignKey(WaitMember, on_delete=models.PROTECT, related_name="deliveries", db_index=False)
    delivered_at = models.DateTimeField()

    class Meta(Record.Meta):
        db_table = "ledger_event_delivery"
        constraints = [
            models.UniqueConstraint(fields=["event", "member"], name="delivery_unique"),
            models.UniqueConstraint(fields=["run", "event"], name="event_consumed_once"),
        ]
