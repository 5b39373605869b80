"""Entries say from where every row moves, and digests are over commitments: what stands in a journal says nothing of an erased text.

A journal of before can't be rewritten, and would be called forged: such a database is refused, with what to do.
"""

from typing import Any

from django.core.management import CommandError
from django.db import migrations


def refuse_entries_of_before(apps: Any, schema_editor: Any) -> None:
    if apps.get_model("ledger", "JournalEntry")._base_manager.using(schema_editor.connection.alias).exists():
        raise CommandError(
            "This database's journal was written before its format was settled: its digests are over texts in clear, and no entry is ever"
            " rewritten. Nothing was changed. Keep a copy if you need it, then migrate an empty database; what `make run` made is in var/ and can"
            " be deleted."
        )


class Migration(migrations.Migration):
    dependencies = [("ledger", "0013_taken_handoffs")]

    operations = [migrations.RunPython(refuse_entries_of_before, migrations.RunPython.noop)]
