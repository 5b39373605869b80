"""The sweep looks at handoffs that a person has taken, too: those that are overdue, and those whose owner is gone."""

from django.db import migrations, models

HELD = ["open", "accepted"]


class Migration(migrations.Migration):
    dependencies = [
        ("ledger", "0012_plans"),
    ]

    operations = [
        migrations.RemoveIndex(model_name="handoff", name="handoff_due"),
        migrations.AddIndex(
            model_name="handoff",
            index=models.Index(
                condition=models.Q(("escalated_at__isnull", True), ("state__in", HELD)),
                fields=["due_at"],
                name="handoff_due",
            ),
        ),
        migrations.AddIndex(
            model_name="handoff",
            index=models.Index(condition=models.Q(("state", "accepted")), fields=["due_at"], name="handoff_taken"),
        ),
    ]
