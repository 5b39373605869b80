"""Targets, effects, permits, reports and observations."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from ledger.domain.effects import EffectState, ReportKind
from ledger.models.base import Record, record_id, within


class Target(Record):
    """A system outside, with what it guarantees. Times are in seconds. `guaranteed_at` is since when it has the address and the guarantees that
    people's leave rests on; `former_url` is the address before, where that is what changed then."""

    RECORD = "target"
    COMMITTED = frozenset({"base_url", "former_url", "lookup", "observe", "material"})

    id = record_id()
    name = models.CharField(max_length=80)
    kind = models.CharField(max_length=12, default="http")
    base_url = models.CharField(max_length=300)
    private = models.BooleanField(default=False)
    keyed = models.BooleanField()
    first_result_replayed = models.BooleanField()
    key_retention = models.IntegerField()
    visibility_delay = models.IntegerField()
    freshness = models.IntegerField()
    call_limit = models.IntegerField()
    lookup = models.JSONField(null=True)
    observe = models.JSONField(null=True)
    material = models.JSONField(default=list)
    former_url = models.CharField(max_length=300, blank=True, default="", db_default="")
    guaranteed_at = models.DateTimeField()
    created_at = models.DateTimeField()

    class Meta(Record.Meta):
        constraints = [models.UniqueConstraint(fields=["tenant", "name"], name="target_name_unique")]


class Effect(Record):
    """One change outside that an agent wants, with the key under which the target knows it. `held` is which account a person found to hold after a
    dispute; the state stays what was recorded first. `trace` is the W3C trace id of the call that proposed it. `carried_from` and `carried_to` are
    the transitions that proposed and called what a replan carried along; '' for any other."""

    RECORD = "effect"
    COMMITTED = frozenset({"call_key", "tool_digest", "resource", "observed_version", "reference"})
    MACHINE = "state"

    id = record_id()
    run = models.ForeignKey("ledger.Run", on_delete=models.PROTECT, related_name="effects", db_index=False)
    lineage_id = models.UUIDField()
    opened_instance_id = models.UUIDField()
    instance_id = models.UUIDField()
    name = models.CharField(max_length=80)
    key = models.CharField(max_length=80)
    call_key = models.CharField(max_length=200, null=True)
    tool = models.CharField(max_length=120)
    tool_digest = models.CharField(max_length=80, blank=True)
    target = models.ForeignKey(Target, on_delete=models.PROTECT, related_name="effects")
    resource = models.CharField(max_length=200, blank=True)
    request = models.ForeignKey("ledger.Body", on_delete=models.PROTECT, related_name="+", db_index=False)
    request_commitment = models.BinaryField(max_length=32)
    trace = models.UUIDField(null=True)
    observation_id = models.UUIDField(null=True)
    observed_version = models.CharField(max_length=200, blank=True)
    subject_digest = models.BinaryField(max_length=32)
    state = models.CharField(max_length=12)
    cause = models.CharField(max_length=24, blank=True)
    disputed = models.BooleanField(default=False)
    held = models.CharField(max_length=12, default="", blank=True)
    accepted = models.BooleanField(default=False)
    attempt = models.IntegerField(default=0)
    accounted_count = models.IntegerField()
    reference = models.CharField(max_length=200, blank=True)
    result_id = models.UUIDField(null=True)
    due_at = models.DateTimeField(null=True)
    looks = models.IntegerField(default=0)
    first_permit_at = models.DateTimeField(null=True)
    answer_by = models.DateTimeField(null=True)
    proposed_at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True)
    carried_from = models.CharField(max_length=80, default="", db_default="", blank=True)
    carried_to = models.CharField(max_length=80, default="", db_default="", blank=True)

    class Meta(Record.Meta):
        constraints = [
            within("state", EffectState, "effect_state_known"),
            within("held", ["", EffectState.COMMITTED, EffectState.FAILED], "effect_held_known"),
            models.UniqueConstraint(fields=["tenant", "key"], name="effect_key_unique"),
            models.UniqueConstraint(fields=["run", "call_key"], name="effect_call_key_unique"),
            models.CheckConstraint(
                condition=~Q(state__in=[EffectState.IN_FLIGHT, EffectState.UNKNOWN]) | Q(due_at__isnull=False),
                name="open_effect_has_a_due_time",
            ),
        ]
        indexes = [
            models.Index(
                fields=["due_at"],
                name="effect_due",
                condition=Q(state__in=[EffectState.IN_FLIGHT, EffectState.UNKNOWN]),
            ),
            models.Index(fields=["tenant", "state", "due_at"], name="effect_by_state"),
            models.Index(fields=["tenant"], name="effect_disputed", condition=Q(disputed=True)),
            models.Index(fields=["tenant", "resource"], name="effect_resource"),
            models.Index(fields=["tenant", "reference"], name="effect_reference"),
        ]


class Permit(Record):
    """Leave for one attempt of one call, written before the call, with what it stood on: the key and its scopes, the lease until when, the clearance,
    the policy version in force, the grant where one was needed, and the tenant's sequence, which fixes people, rights and keys."""

    RECORD = "permit"
    APPEND_ONLY = True
    COMMITTED = frozenset({"precondition"})

    id = record_id()
    run = models.ForeignKey("ledger.Run", on_delete=models.PROTECT, related_name="permits", db_index=False)
    effect = models.ForeignKey(Effect, on_delete=models.PROTECT, related_name="permits", db_index=False)
    attempt = models.IntegerField()
    fence_epoch = models.IntegerField()
    fence_count = models.IntegerField()
    worker_id = models.UUIDField()
    key_id = models.UUIDField()
    scopes = models.JSONField(default=list)
    lease_until = models.DateTimeField()
    clearance_id = models.UUIDField()
    grant_id = models.UUIDField(null=True)
    policy_id = models.UUIDField(null=True)
    policy_seq = models.BigIntegerField()
    precondition = models.CharField(max_length=200, blank=True)
    send_by = models.DateTimeField()
    answer_by = models.DateTimeField()
    permitted_at = models.DateTimeField()

    class Meta(Record.Meta):
        constraints = [models.UniqueConstraint(fields=["effect", "attempt"], name="permit_attempt_unique")]


class EffectReport(Record):
    """What somebody said about an attempt: a settle, a look-up's answer, a late report, a lapse, a person's verdict."""

    RECORD = "effect_report"
    APPEND_ONLY = True
    COMMITTED = frozenset({"reference"})

    id = record_id()
    run = models.ForeignKey("ledger.Run", on_delete=models.PROTECT, related_name="reports", db_index=False)
    effect = models.ForeignKey(Effect, on_delete=models.PROTECT, related_name="reports", db_index=False)
    ordinal = models.IntegerField()
    attempt = models.IntegerField()
    kind = models.CharField(max_length=10)
    answer = models.CharField(max_length=24)
    cause = models.CharField(max_length=24, blank=True)
    reference = models.CharField(max_length=200, blank=True)
    evidence_id = models.UUIDField(null=True)
    evidence_commitment = models.BinaryField(max_length=32, null=True)
    counted = models.BooleanField()
    actor = models.CharField(max_length=80)
    fence_epoch = models.IntegerField(null=True)
    fence_count = models.IntegerField(null=True)
    reported_at = models.DateTimeField()

    class Meta(Record.Meta):
        db_table = "ledger_effect_report"
        constraints = [
            models.UniqueConstraint(fields=["effect", "ordinal"], name="report_ordinal_unique"),
            within("kind", ReportKind, "report_kind_known"),
        ]


class Observation(Record):
    """The version and state of a resource at a target, as somebody saw it at a time."""

    RECORD = "observation"
    APPEND_ONLY = True
    COMMITTED = frozenset({"resource", "version"})

    id = record_id()
    run = models.ForeignKey("ledger.Run", on_delete=models.PROTECT, related_name="observations")
    target = models.ForeignKey(Target, on_delete=models.PROTECT, related_name="+", db_index=False)
    resource = models.CharField(max_length=200)
    version = models.CharField(max_length=200)
    body = models.ForeignKey("ledger.Body", on_delete=models.PROTECT, related_name="+", db_index=False, null=True)
    commitment = models.BinaryField(max_length=32, null=True)
    source = models.CharField(max_length=80)
    observed_at = models.DateTimeField()

    class Meta(Record.Meta):
        indexes = [models.Index(fields=["target", "resource", "-observed_at"], name="observation_newest")]
