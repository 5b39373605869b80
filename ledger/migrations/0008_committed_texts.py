"""Texts enter the journal as commitments under a salt of their stream, and a permit keeps what it stood on.

A journal that has them in clear can't be rewritten, and would be called forged: such a database is refused, with what to do.
"""

from typing import Any

from django.core.management import CommandError
from django.db import migrations, models


def refuse_texts_in_clear(apps: Any, schema_editor: Any) -> None:
    if apps.get_model("ledger", "JournalEntry")._base_manager.using(schema_editor.connection.alias).exists():
        raise CommandError(
            "This database's journal was written before its format was settled: it holds texts in clear, and no entry is ever rewritten."
            " Nothing was changed. Keep a copy if you need it, then migrate an empty database; what `make run` made is in var/ and can be deleted."
        )


def salted_or_erased(name: str) -> models.CheckConstraint:
    return models.CheckConstraint(
        condition=models.Q(("erased_at__isnull", True), ("salt__isnull", False))
        | models.Q(("erased_at__isnull", False), ("salt__isnull", True)),
        name=name,
    )


def salted(model: str, constraint: str) -> list[migrations.operations.base.Operation]:
    return [
        migrations.AddField(model, "salt", models.BinaryField(max_length=16, null=True)),
        migrations.AddField(model, "erased_at", models.DateTimeField(null=True)),
        migrations.AddConstraint(model, salted_or_erased(constraint)),
    ]


class Migration(migrations.Migration):
    dependencies = [("ledger", "0007_disputes")]

    operations = [
        migrations.RunPython(refuse_texts_in_clear, migrations.RunPython.noop),
        *salted("tenanthead", "tenant_head_salted_or_erased"),
        *salted("runhead", "run_head_salted_or_erased"),
        *salted("event", "event_salted_or_erased"),
        migrations.AddField("permit", "scopes", models.JSONField(default=list)),
        migrations.AddField("permit", "lease_until", models.DateTimeField()),
        migrations.AddField("permit", "clearance_id", models.UUIDField()),
        migrations.AddField("permit", "policy_id", models.UUIDField(null=True)),
    ]
