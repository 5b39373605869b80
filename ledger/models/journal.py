"""The journal: one hash chain per stream."""

from __future__ import annotations

from django.db import models

from ledger.domain.change import Kind
from ledger.models.base import Record, TenantModel, within


class JournalEntry(Record):
    """An entry as written. `content` is what is hashed; the other columns are copies for searching, checked by `verify`."""

    RECORD = "journal_entry"
    APPEND_ONLY = True

    id = models.BigAutoField(primary_key=True)
    kind = models.CharField(max_length=8)
    stream_id = models.UUIDField()
    seq = models.BigIntegerField()
    at = models.DateTimeField()
    actor = models.CharField(max_length=80)
    verb = models.CharField(max_length=40)
    content = models.BinaryField()
    digest = models.BinaryField(max_length=32)

    class Meta(Record.Meta):
        db_table = "ledger_journal_entry"
        constraints = [
            models.UniqueConstraint(fields=["stream_id", "seq"], name="journal_seq_unique"),
            within("kind", Kind, "journal_kind_known"),
        ]
        indexes = [
            models.Index(fields=["tenant", "-at", "-id"], name="journal_newest"),
            models.Index(fields=["tenant", "actor", "-at", "-id"], name="journal_by_actor"),
            models.Index(fields=["tenant", "verb", "-at", "-id"], name="journal_by_verb"),
        ]


class EntryTarget(TenantModel):
    """Which targets an entry is about, for searching: beside the record, written with the entry, and made anew from the entries at any time."""

    pk = models.CompositePrimaryKey("target_id", "at", "entry_id")
    target = models.ForeignKey("ledger.Target", models.PROTECT, related_name="+", db_constraint=False, db_index=False)
    at = models.DateTimeField()
    entry = models.ForeignKey(JournalEntry, models.PROTECT, related_name="about", db_constraint=False, db_index=False)

    class Meta(TenantModel.Meta):
        db_table = "ledger_entry_target"
