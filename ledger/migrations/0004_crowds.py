"""Indexes for what is looked for among very many runs: the last moved ones, disputed effects, the history by verb and actor, closed waits by subject."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("ledger", "0003_checkpoint_note")]

    operations = [
        migrations.AddIndex(
            model_name="runhead",
            index=models.Index(fields=["tenant", "-moved_at", "-run"], name="run_moved"),
        ),
        migrations.AddIndex(
            model_name="effect",
            index=models.Index(fields=["tenant"], name="effect_disputed", condition=models.Q(disputed=True)),
        ),
        migrations.AddIndex(
            model_name="journalentry",
            index=models.Index(fields=["tenant", "verb", "-id"], name="journal_by_verb"),
        ),
        migrations.AddIndex(
            model_name="journalentry",
            index=models.Index(fields=["tenant", "actor", "-id"], name="journal_by_actor"),
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
