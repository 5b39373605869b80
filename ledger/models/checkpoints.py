"""Bodies, workflow types and versions, checkpoints."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from ledger.domain.checkpoints import CheckpointKind
from ledger.models.base import Record, record_id, within


class Body(Record):
    """Bytes with the salt that commits them. Both become NULL together, only with an erasure entry."""

    RECORD = "body"
    UNJOURNALLED = frozenset({"salt", "content"})

    id = record_id()
    salt = models.BinaryField(max_length=16, null=True)
    content = models.BinaryField(null=True)
    commitment = models.BinaryField(max_length=32)
    media = models.CharField(max_length=80)
    size = models.IntegerField()
    erased_at = models.DateTimeField(null=True)

    class Meta(Record.Meta):
        constraints = [
            models.CheckConstraint(
                condition=Q(salt__isnull=False, content__isnull=False, erased_at__isnull=True)
                | Q(salt__isnull=True, content__isnull=True, erased_at__isnull=False),
                name="body_whole_or_erased",
            )
        ]


class WorkflowType(Record):
    """A kind of run. Permissions on runs hang here."""

    RECORD = "workflow_type"

    id = record_id()
    name = models.CharField(max_length=80)
    created_at = models.DateTimeField()

    class Meta(Record.Meta):
        db_table = "ledger_workflow_type"
        constraints = [models.UniqueConstraint(fields=["tenant", "name"], name="workflow_type_unique")]
        permissions = [
            ("see_workflow", "See runs and their record"),
            ("see_payloads_workflow", "See arguments, states and evidence"),
            ("approve_workflow", "Approve what agents ask for"),
            ("operate_workflow", "Reconcile, hand over, hold, cancel"),
            ("audit_workflow", "Read the history and verify it"),
            ("administer_workflow", "Keep people, keys, policies and versions"),
            ("break_glass_workflow", "Act alone in an emergency"),
        ]


class WorkflowVersion(Record):
    """A registered version: state schema, transitions and whose checkpoints it takes over. Immutable."""

    RECORD = "workflow_version"
    APPEND_ONLY = True
    COMMITTED = frozenset({"state_schema", "transitions", "dependencies", "digest"})

    id = record_id()
    workflow = models.ForeignKey(WorkflowType, on_delete=models.PROTECT, related_name="versions", db_index=False)
    version = models.CharField(max_length=40)
    state_schema = models.JSONField()
    initial = models.CharField(max_length=80)
    transitions = models.JSONField()
    takes_over_from = models.JSONField()
    dependencies = models.JSONField()
    own_events = models.BooleanField(default=False, db_default=False)
    digest = models.BinaryField(max_length=32)
    created_at = models.DateTimeField()

    class Meta(Record.Meta):
        db_table = "ledger_workflow_version"
        constraints = [models.UniqueConstraint(fields=["workflow", "version"], name="workflow_version_unique")]


class Checkpoint(Record):
    RECORD = "checkpoint"
    APPEND_ONLY = True
    COMMITTED = frozenset({"code_version", "artifacts", "idempotency_key"})

    id = record_id()
    run = models.ForeignKey("ledger.Run", on_delete=models.PROTECT, related_name="checkpoints", db_index=False)
    seq = models.IntegerField()
    kind = models.CharField(max_length=12)
    previous_digest = models.BinaryField(max_length=32)
    digest = models.BinaryField(max_length=32)
    last_transition = models.CharField(max_length=80)
    next_transition = models.CharField(max_length=80)
    instance_id = models.UUIDField()
    version = models.CharField(max_length=40)
    code_version = models.CharField(max_length=80)
    fence_epoch = models.IntegerField()
    fence_count = models.IntegerField()
    state = models.ForeignKey(Body, on_delete=models.PROTECT, related_name="+", db_index=False)
    state_commitment = models.BinaryField(max_length=32)
    artifacts = models.JSONField(default=list)
    idempotency_key = models.CharField(max_length=200, null=True)
    request_commitment = models.BinaryField(max_length=32, null=True)
    note_id = models.UUIDField(null=True)
    created_at = models.DateTimeField()

    class Meta(Record.Meta):
        constraints = [
            models.UniqueConstraint(fields=["run", "seq"], name="checkpoint_seq_unique"),
            models.UniqueConstraint(fields=["run", "idempotency_key"], name="checkpoint_key_unique"),
            within("kind", CheckpointKind, "checkpoint_kind_known"),
        ]
