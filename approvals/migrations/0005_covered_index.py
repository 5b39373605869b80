"""A request's run had two indexes; the named one stays."""

import django.db.models.deletion
from django.db import migrations, models

INDEX = "approvals_request_run_id_6818cd7b"


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0004_asked_lately"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            [migrations.RunSQL(f"DROP INDEX {INDEX}", f"CREATE INDEX {INDEX} ON approvals_request (run_id)")],
            [
                migrations.AlterField(
                    "approvalrequest",
                    "run",
                    models.ForeignKey(
                        "ledger.run",
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="requests",
                        null=True,
                        db_index=False,
                    ),
                )
            ],
        )
    ]
