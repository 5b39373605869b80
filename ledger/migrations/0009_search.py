"""Indexes for what runs are searched by: the end of an id, attributes, and the resource and reference of a call."""

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps
from django.db.models.functions import Cast, Right


def index_attributes(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """SQLite has no index for it: there a search by attributes reads every run."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("CREATE INDEX run_attributes ON ledger_run USING gin (attributes jsonb_path_ops)")


def drop_attributes(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP INDEX IF EXISTS run_attributes")


class Migration(migrations.Migration):
    dependencies = [("ledger", "0008_committed_texts")]

    operations = [
        migrations.AddIndex(
            model_name="run",
            index=models.Index(Right(Cast("id", models.CharField()), 8), name="run_ending"),
        ),
        migrations.AddIndex(
            model_name="effect",
            index=models.Index(fields=["tenant", "resource"], name="effect_resource"),
        ),
        migrations.AddIndex(
            model_name="effect",
            index=models.Index(fields=["tenant", "reference"], name="effect_reference"),
        ),
        migrations.RunPython(index_attributes, drop_attributes),
    ]
