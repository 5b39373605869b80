"""Runs, their heads, leases, transition instances and clearances."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Cast, Right

from ledger.domain.runs import ClearanceState, Intent, Status
from ledger.models.base import Record, record_id, salted_or_erased, stream_salt, within


class Run(Record):
    """What never changes about a run. `about` commits the free text beside it; `trace` is the W3C trace id of the call that started it."""

    RECORD = "run"
    APPEND_ONLY = True
    UNJOURNALLED = frozenset({"task", "attributes", "text"})
    COMMITTED = frozenset({"idempotency_key"})

    id = record_id()
    workflow = models.ForeignKey("ledger.WorkflowType", on_delete=models.PROTECT, related_name="runs")
    lineage_id = models.UUIDField()
    task = models.CharField(max_length=200)
    attributes = models.JSONField(default=dict)
    text = models.TextField(blank=True)
    about = models.ForeignKey("ledger.Body", on_delete=models.PROTECT, related_name="+", db_index=False)
    about_commitment = models.BinaryField(max_length=32)
    agent_id = models.UUIDField(null=True)
    on_behalf_of_id = models.UUIDField(null=True)
    idempotency_key = models.CharField(max_length=200)
    trace = models.UUIDField(null=True)
    created_at = models.DateTimeField()

    class Meta(Record.Meta):
        constraints = [models.UniqueConstraint(fields=["tenant", "idempotency_key"], name="run_key_unique")]
        indexes = [
            models.Index(fields=["tenant", "-created_at", "id"], name="run_newest"),
            models.Index(fields=["tenant", "task"], name="run_task"),
            models.Index(Right(Cast("id", models.CharField()), 8), name="run_ending"),
        ]


class RunHead(Record):
    """The one row that is locked for everything that belongs to a run. `fence` is (restore epoch, counter)."""

    RECORD = "run_head"
    UNJOURNALLED = frozenset({"salt"})
    MACHINE = "status"

    run = models.OneToOneField(Run, on_delete=models.PROTECT, primary_key=True, related_name="head")
    workflow = models.ForeignKey("ledger.WorkflowType", on_delete=models.PROTECT, related_name="+", db_index=False)
    status = models.CharField(max_length=12)
    intent = models.CharField(max_length=8, default=Intent.NONE)
    head_seq = models.BigIntegerField()
    head_digest = models.BinaryField(max_length=32)
    fence_epoch = models.IntegerField()
    fence_count = models.IntegerField()
    checkpoint_seq = models.IntegerField()
    checkpoint_digest = models.BinaryField(max_length=32)
    transition = models.CharField(max_length=80)
    instance_id = models.UUIDField()
    version = models.CharField(max_length=40)
    clearance_id = models.UUIDField(null=True)
    claims_since_commit = models.IntegerField(default=0)
    asks = models.IntegerField(default=0)
    moved_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    salt = stream_salt()
    erased_at = models.DateTimeField(null=True)

    class Meta(Record.Meta):
        db_table = "ledger_run_head"
        constraints = [
            salted_or_erased("run_head_salted_or_erased"),
            within("status", Status, "run_status_known"),
            within("intent", Intent, "run_intent_known"),
            models.CheckConstraint(
                condition=Q(status=Status.READY) | Q(clearance_id__isnull=True) | Q(status=Status.RUNNING),
                name="clearance_of_ready_or_running",
            ),
        ]
        indexes = [
            models.Index(fields=["workflow", "moved_at"], name="run_ready", condition=Q(status=Status.READY)),
            models.Index(fields=["tenant", "status", "-moved_at"], name="run_by_status"),
            models.Index(fields=["tenant", "-moved_at", "-run"], name="run_moved"),
        ]


class Lease(Record):
    """Who works on a run until when, and which agents ever did. Heartbeats move `expires_at` with one UPDATE and no entry."""

    RECORD = "lease"
    UNJOURNALLED = frozenset({"expires_at", "beaten_at"})
    MACHINE = "active"

    run = models.OneToOneField(Run, on_delete=models.PROTECT, primary_key=True, related_name="lease")
    worker_id = models.UUIDField()
    key_id = models.UUIDField()
    fence_epoch = models.IntegerField()
    fence_count = models.IntegerField()
    version = models.CharField(max_length=40)
    agents = models.JSONField(default=list, db_default=[])
    seconds = models.IntegerField()
    active = models.BooleanField()
    claimed_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    beaten_at = models.DateTimeField()

    class Meta(Record.Meta):
        indexes = [
            models.Index(fields=["expires_at"], name="lease_due", condition=Q(active=True)),
            models.Index(fields=["worker_id"], name="lease_worker", condition=Q(active=True)),
        ]


class TransitionInstance(Record):
    """One opening of a transition: part of every effect's identity."""

    RECORD = "transition_instance"
    MACHINE = "left_at"

    id = record_id()
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="instances")
    transition = models.CharField(max_length=80)
    opened_seq = models.IntegerField()
    opened_at = models.DateTimeField()
    left_at = models.DateTimeField(null=True)

    class Meta(Record.Meta):
        db_table = "ledger_transition_instance"


class Clearance(Record):
    """A positive wake decision's leave to go on: with which transition, versions, tools and targets, until when."""

    RECORD = "clearance"
    MACHINE = "state"

    id = record_id()
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="clearances")
    decision_id = models.UUIDField(null=True)
    transition = models.CharField(max_length=80)
    instance_id = models.UUIDField()
    versions = models.JSONField()
    targets = models.JSONField()
    tools = models.JSONField()
    valid_until = models.DateTimeField()
    ready_by = models.DateTimeField()
    state = models.CharField(max_length=8)
    opened_at = models.DateTimeField()

    class Meta(Record.Meta):
        constraints = [
            within("state", ClearanceState, "clearance_state_known"),
            models.UniqueConstraint(fields=["run"], name="one_live_clearance", condition=Q(state=ClearanceState.LIVE)),
        ]
        indexes = [models.Index(fields=["ready_by"], name="clearance_due", condition=Q(state=ClearanceState.LIVE))]
