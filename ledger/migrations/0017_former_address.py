"""Where a target was before its address changed last: who has to give leave anew is told from where to where."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("ledger", "0016_entry_targets")]

    operations = [
        migrations.AddField(
            "target", "former_url", models.CharField(max_length=300, blank=True, default="", db_default="")
        ),
    ]
