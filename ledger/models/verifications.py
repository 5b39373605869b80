"""Checks of the record that somebody asked for, and how far each chain was checked last. Beside the record: nothing is decided from them."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from ledger.domain.verifications import Reach, Stage
from ledger.models.base import TenantModel, within


class Verification(TenantModel):
    """One check, of a run or of everything of a tenant: `subject` is its id. `due_at` is when its next slice may begin; a slice takes it
    forward first, so that two processes don't do the same. `found` holds the first faults, `faults` counts them all."""

    id = models.UUIDField(primary_key=True)
    reach = models.CharField(max_length=8)
    subject = models.UUIDField()
    asked_by = models.CharField(max_length=80)
    asked_at = models.DateTimeField()
    due_at = models.DateTimeField()
    stage = models.CharField(max_length=16)
    after = models.CharField(max_length=80, blank=True, default="")
    total = models.BigIntegerField(null=True)
    done = models.BigIntegerField(default=0)
    entries = models.BigIntegerField(default=0)
    rows = models.BigIntegerField(default=0)
    faults = models.BigIntegerField(default=0)
    found = models.JSONField(default=list)
    finished_at = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        db_table = "ledger_verification"
        constraints = [
            models.UniqueConstraint(fields=["subject"], condition=Q(finished_at=None), name="verification_open_once"),
            within("reach", Reach, "verification_reach_known"),
            within("stage", Stage, "verification_stage_known"),
        ]
        indexes = [
            models.Index(fields=["tenant", "reach", "-asked_at", "-id"], name="verification_newest"),
            models.Index(fields=["due_at"], name="verification_due", condition=Q(finished_at=None)),
        ]


class VerifiedChain(TenantModel):
    """How far a chain was checked last, and whether it was whole then: one row for each chain, whoever asked."""

    stream_id = models.UUIDField(primary_key=True)
    reach = models.CharField(max_length=8)
    seq = models.BigIntegerField()
    intact = models.BooleanField()
    checked_at = models.DateTimeField()
    verification = models.ForeignKey(Verification, on_delete=models.PROTECT, related_name="+", db_index=False)

    class Meta(TenantModel.Meta):
        db_table = "ledger_verified_chain"
        constraints = [within("reach", Reach, "verified_chain_reach_known")]
        indexes = [
            models.Index(fields=["tenant", "-checked_at"], name="verified_chain_faulty", condition=Q(intact=False))
        ]
