"""What a replan carried along of the plan that it left, and how often a wake's check was overtaken by the tenant's administration."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("ledger", "0011_guarantees"),
    ]

    operations = [
        migrations.AddField(
            model_name="effect",
            name="carried_from",
            field=models.CharField(blank=True, db_default="", default="", max_length=80),
        ),
        migrations.AddField(
            model_name="effect",
            name="carried_to",
            field=models.CharField(blank=True, db_default="", default="", max_length=80),
        ),
        migrations.AddField(model_name="wake", name="overtaken", field=models.IntegerField(db_default=0, default=0)),
    ]
