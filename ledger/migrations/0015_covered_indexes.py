"""Five indexes go whose columns another index of the table begins with.

Each was one more to write with every row; and the planner, to whom both look alike, took the shorter one for the repeat of a commit and read
every checkpoint of the run. They are dropped by name, since SQLite would copy tables whose triggers refuse that.
"""

import django.db.models.deletion
from django.db import migrations, models

COVERED = [
    ("checkpoint", "run", "ledger.run", "checkpoints", "ledger_checkpoint_run_id_d77c18d4"),
    ("effect", "run", "ledger.run", "effects", "ledger_effect_run_id_708c3a16"),
    ("waitmember", "wait", "ledger.waitset", "members", "ledger_wait_member_wait_id_abf7d7c6"),
    ("wakecheck", "decision", "ledger.decision", "checks", "ledger_wake_check_decision_id_f2099d59"),
    ("workflowversion", "workflow", "ledger.workflowtype", "versions", "ledger_workflow_version_workflow_id_881a0dd5"),
]


def without_index(model: str, name: str, to: str, related: str, index: str) -> migrations.SeparateDatabaseAndState:
    table = index.partition(f"_{name}_id_")[0]
    field = models.ForeignKey(to, on_delete=django.db.models.deletion.PROTECT, related_name=related, db_index=False)
    return migrations.SeparateDatabaseAndState(
        [migrations.RunSQL(f"DROP INDEX {index}", f"CREATE INDEX {index} ON {table} ({name}_id)")],
        [migrations.AlterField(model, name, field)],
    )


class Migration(migrations.Migration):
    dependencies = [
        ("ledger", "0014_settled_format"),
    ]

    operations = [without_index(*covered) for covered in COVERED]
