import ledger.domain.waits.rows
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("ledger", "0001_record"),
    ]

    operations = [
        migrations.CreateModel(
            name="Heartbeat",
            fields=[
                ("name", models.CharField(max_length=80, primary_key=True, serialize=False)),
                ("beats", models.BigIntegerField(default=0)),
                ("pid", models.IntegerField(default=0)),
                ("beaten_at", models.DateTimeField()),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.AddIndex(
            model_name="waitmember",
            index=models.Index(
                condition=models.Q(
                    ("kind", ledger.domain.waits.rows.MemberKind["EVENT"]),
                    ("state", ledger.domain.waits.rows.MemberState["CLOSED"]),
                ),
                fields=["tenant", "event_type"],
                name="member_closed",
            ),
        ),
    ]
