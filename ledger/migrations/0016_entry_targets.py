"""Which targets each entry is about, so that the history of one target is found by an index; made from the entries that are there."""

from typing import Any
from uuid import UUID

import django.db.models.deletion
import django.db.models.manager
from django.db import migrations, models

from ledger.domain import journal

BATCH = 1_000


def read_entries(apps: Any, schema_editor: Any) -> None:
    def of(name: str) -> Any:
        return apps.get_model("ledger", name)._base_manager.using(schema_editor.connection.alias)

    after = 0
    while entries := list(of("JournalEntry").filter(id__gt=after).order_by("id")[:BATCH]):
        after = entries[-1].pk
        about = [journal.concerned(journal.told(journal.parsed(bytes(each.content)) or NOTHING)) for each in entries]
        effects = {UUID(key) for _, keys in about for key in keys}
        target = dict(of("Effect").filter(pk__in=effects).values_list("pk", "target_id"))
        of("EntryTarget").bulk_create(
            [
                apps.get_model("ledger", "EntryTarget")(
                    tenant_id=entry.tenant_id, target_id=each, at=entry.at, entry_id=entry.pk
                )
                for entry, (named, keys) in zip(entries, about, strict=True)
                for each in {UUID(key) for key in named} | {target[UUID(key)] for key in keys if UUID(key) in target}
            ]
        )


NOTHING: dict[str, Any] = {"changes": []}


class Migration(migrations.Migration):
    dependencies = [("ledger", "0015_covered_indexes")]

    operations = [
        migrations.CreateModel(
            name="EntryTarget",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "target_id", "at", "entry_id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("at", models.DateTimeField()),
                (
                    "entry",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="about",
                        to="ledger.journalentry",
                    ),
                ),
                (
                    "target",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="ledger.target",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="ledger.tenant",
                    ),
                ),
            ],
            options={
                "db_table": "ledger_entry_target",
                "abstract": False,
                "default_permissions": (),
                "base_manager_name": "plain",
            },
            managers=[
                ("objects", django.db.models.manager.Manager()),
                ("plain", django.db.models.manager.Manager()),
            ],
        ),
        migrations.RunPython(read_entries, migrations.RunPython.noop),
    ]
