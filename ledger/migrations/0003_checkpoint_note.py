"""Why an agent ended its run: a body that the last checkpoint names."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("ledger", "0002_heartbeat"),
    ]

    operations = [
        migrations.AddField(
            model_name="checkpoint",
            name="note_id",
            field=models.UUIDField(null=True),
        ),
    ]
