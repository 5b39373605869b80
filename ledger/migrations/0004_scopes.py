import ledger.domain.handoffs
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("ledger", "0003_checkpoint_note"),
    ]

    operations = [
        migrations.AddField(model_name="apikey", name="emits", field=models.JSONField(db_default=[], default=list)),
        migrations.AddField(model_name="apikey", name="workflows", field=models.JSONField(db_default=[], default=list)),
        migrations.AddField(model_name="handoff", name="escalated_at", field=models.DateTimeField(null=True)),
        migrations.AddField(model_name="lease", name="agents", field=models.JSONField(db_default=[], default=list)),
        migrations.AddField(
            model_name="waitmember", name="not_from", field=models.JSONField(db_default=[], default=list)
        ),
        migrations.AddField(
            model_name="workflowversion", name="own_events", field=models.BooleanField(db_default=False, default=False)
        ),
        migrations.AddIndex(
            model_name="handoff",
            index=models.Index(
                condition=models.Q(
                    ("escalated_at__isnull", True), ("state", ledger.domain.handoffs.HandoffState["OPEN"])
                ),
                fields=["due_at"],
                name="handoff_due",
            ),
        ),
    ]
