"""The trace id of the calls that start a run and propose an effect."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("ledger", "0009_search"),
    ]

    operations = [
        migrations.AddField(model_name="run", name="trace", field=models.UUIDField(null=True)),
        migrations.AddField(model_name="effect", name="trace", field=models.UUIDField(null=True)),
    ]
