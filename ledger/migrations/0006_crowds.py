"""Indexes for what is looked for among very many runs: the last moved ones, disputed effects, closed waits by subject."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("ledger", "0005_verifications")]

    operations = [
        migrations.AddIndex(
            model_name="runhead",
            index=models.Index(fields=["tenant", "-moved_at", "-run"], name="run_moved"),
        ),
        migrations.AddIndex(
            model_name="effect",
            index=models.Index(fields=["tenant"], name="effect_disputed", condition=models.Q(disputed=True)),
        ),
        migrations.RemoveIndex(model_name="waitmember", name="member_closed"),
        migrations.AddIndex(
            model_name="waitmember",
            index=models.Index(
                fields=["tenant", "event_type", "event_subject"],
                name="member_closed",
                condition=models.Q(state="closed", kind="event"),
            ),
        ),
    ]
