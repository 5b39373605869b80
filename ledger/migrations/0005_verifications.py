import django.db.models.deletion
import django.db.models.manager
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("ledger", "0004_scopes"),
    ]

    operations = [
        migrations.CreateModel(
            name="Verification",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("reach", models.CharField(max_length=8)),
                ("subject", models.UUIDField()),
                ("asked_by", models.CharField(max_length=80)),
                ("asked_at", models.DateTimeField()),
                ("due_at", models.DateTimeField()),
                ("stage", models.CharField(max_length=16)),
                ("after", models.CharField(blank=True, default="", max_length=80)),
                ("total", models.BigIntegerField(null=True)),
                ("done", models.BigIntegerField(default=0)),
                ("entries", models.BigIntegerField(default=0)),
                ("rows", models.BigIntegerField(default=0)),
                ("faults", models.BigIntegerField(default=0)),
                ("found", models.JSONField(default=list)),
                ("finished_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "ledger_verification",
                "abstract": False,
                "default_permissions": (),
                "base_manager_name": "plain",
            },
            managers=[
                ("objects", django.db.models.manager.Manager()),
                ("plain", django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name="VerifiedChain",
            fields=[
                ("stream_id", models.UUIDField(primary_key=True, serialize=False)),
                ("reach", models.CharField(max_length=8)),
                ("seq", models.BigIntegerField()),
                ("intact", models.BooleanField()),
                ("checked_at", models.DateTimeField()),
            ],
            options={
                "db_table": "ledger_verified_chain",
                "abstract": False,
                "default_permissions": (),
                "base_manager_name": "plain",
            },
            managers=[
                ("objects", django.db.models.manager.Manager()),
                ("plain", django.db.models.manager.Manager()),
            ],
        ),
        migrations.RemoveIndex(
            model_name="journalentry",
            name="journal_newest",
        ),
        migrations.AddIndex(
            model_name="journalentry",
            index=models.Index(fields=["tenant", "-at", "-id"], name="journal_newest"),
        ),
        migrations.AddIndex(
            model_name="journalentry",
            index=models.Index(fields=["tenant", "actor", "-at", "-id"], name="journal_by_actor"),
        ),
        migrations.AddIndex(
            model_name="journalentry",
            index=models.Index(fields=["tenant", "verb", "-at", "-id"], name="journal_by_verb"),
        ),
        migrations.AddField(
            model_name="verification",
            name="tenant",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="ledger.tenant",
            ),
        ),
        migrations.AddField(
            model_name="verifiedchain",
            name="tenant",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="ledger.tenant",
            ),
        ),
        migrations.AddField(
            model_name="verifiedchain",
            name="verification",
            field=models.ForeignKey(
                db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="ledger.verification"
            ),
        ),
        migrations.AddIndex(
            model_name="verification",
            index=models.Index(fields=["tenant", "reach", "-asked_at", "-id"], name="verification_newest"),
        ),
        migrations.AddIndex(
            model_name="verification",
            index=models.Index(condition=models.Q(("finished_at", None)), fields=["due_at"], name="verification_due"),
        ),
        migrations.AddConstraint(
            model_name="verification",
            constraint=models.UniqueConstraint(
                condition=models.Q(("finished_at", None)), fields=("subject",), name="verification_open_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="verification",
            constraint=models.CheckConstraint(
                condition=models.Q(("reach__in", ["run", "tenant"])), name="verification_reach_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="verification",
            constraint=models.CheckConstraint(
                condition=models.Q(("stage__in", ["administration", "events", "runs", "done"])),
                name="verification_stage_known",
            ),
        ),
        migrations.AddIndex(
            model_name="verifiedchain",
            index=models.Index(
                condition=models.Q(("intact", False)), fields=["tenant", "-checked_at"], name="verified_chain_faulty"
            ),
        ),
        migrations.AddConstraint(
            model_name="verifiedchain",
            constraint=models.CheckConstraint(
                condition=models.Q(("reach__in", ["run", "tenant"])), name="verified_chain_reach_known"
            ),
        ),
    ]
