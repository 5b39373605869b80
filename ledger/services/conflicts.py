"""A violated constraint, by its name: services turn the ones they expect into refusals or replays."""

from __future__ import annotations

import re
from functools import cache

from django.apps import apps
from django.db import IntegrityError, models


class Conflict(Exception):
    """The database refused a Change because of the named constraint; nothing was written."""

    def __init__(self, constraint: str) -> None:
        super().__init__(constraint)
        self.constraint = constraint


def conflict(error: IntegrityError) -> Conflict:
    """Name the constraint behind an IntegrityError, on both databases."""
    diagnosis = getattr(error.__cause__, "diag", None)
    if diagnosis is not None:
        return Conflict(diagnosis.constraint_name or "unnamed")
    text = str(error)
    if named := re.search(r"(?:CHECK constraint failed: |index ')(\w+)", text):
        return Conflict(named[1])
    if unique := re.match(r"UNIQUE constraint failed: (.+)", text):
        columns = tuple(column.strip().split(".")[1] for column in unique[1].split(","))
        table = unique[1].split(".")[0]
        return Conflict(_unique().get((table, columns), f"{table}({', '.join(columns)})"))
    return Conflict("foreign key" if "FOREIGN KEY" in text else "unnamed")


@cache
def _unique() -> dict[tuple[str, tuple[str, ...]], str]:
    """SQLite reports a unique violation by its columns: (table, columns) → constraint name."""
    names = {}
    for model in apps.get_models():
        for constraint in model._meta.constraints:
            if isinstance(constraint, models.UniqueConstraint) and constraint.fields:
                columns = tuple(str(getattr(model._meta.get_field(name), "column", name)) for name in constraint.fields)
                names[(model._meta.db_table, columns)] = constraint.name
    return names
