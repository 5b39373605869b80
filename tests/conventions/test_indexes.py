"""No row is written with an index that another one covers: it costs each write, and the planner takes it where the other is meant."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.apps import apps
from django.db import models

OURS = [model for model in apps.get_models() if model._meta.app_label in {"ledger", "approvals"}]


def whole(model: type[models.Model]) -> Iterator[tuple[str, ...]]:
    """The columns of each of a table's indexes over all of its rows, as fields are named."""
    named = [*model._meta.constraints, *model._meta.indexes]
    for index in named:
        if isinstance(index, models.UniqueConstraint | models.Index) and index.fields and index.condition is None:
            yield tuple(index.fields)
    for field in model._meta.concrete_fields:
        if field.db_index and not field.unique:
            yield (field.name,)


def covered(model: type[models.Model]) -> list[tuple[str, ...]]:
    """Indexes with whose columns another one begins."""
    found = list(whole(model))
    return [
        short
        for number, short in enumerate(found)
        for other, long in enumerate(found)
        if number != other and long[: len(short)] == short
    ]


@pytest.mark.parametrize("model", OURS, ids=lambda model: model.__name__)
def test_no_index_is_the_beginning_of_another(model: type[models.Model]) -> None:
    assert covered(model) == [], "drop it: db_index=False, and a migration that drops it by name"
