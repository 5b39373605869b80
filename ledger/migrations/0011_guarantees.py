"""Since when a target has the address and the guarantees that leave rests on. There is no target yet where there is no entry, as 0008 sees to."""

from datetime import UTC, datetime

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("ledger", "0010_traces")]

    operations = [
        migrations.AddField(
            "target",
            "guaranteed_at",
            models.DateTimeField(default=datetime(1970, 1, 1, tzinfo=UTC)),
            preserve_default=False,
        ),
    ]
