"""The journal: one hash chain per stream."""

from __future__ import annotations

from django.db import models

from ledger.domain.change import Kind
from ledger.models.base import Record, within


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
            models.Index(fields=["tenant", "-at"], name="journal_newest"),
            models.Index(fields=["tenant", "verb", "-id"], name="journal_by_verb"),
            models.Index(fields=["tenant", "actor", "-id"], name="journal_by_actor"),
        ]
