"""Models and migrations agree, and no migration makes a record that verification would call forged."""

from __future__ import annotations

from importlib import import_module
from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import connection

if TYPE_CHECKING:
    from tests.world import World

committed_texts = import_module("ledger.migrations.0008_committed_texts")
settled_format = import_module("ledger.migrations.0014_settled_format")


@pytest.mark.django_db
def test_no_migration_is_missing() -> None:
    out = StringIO()
    try:
        call_command("makemigrations", "--check", "--dry-run", stdout=out, stderr=out)
    except SystemExit:
        pytest.fail(f"name one by hand with `makemigrations -n`:\n{out.getvalue()}")


def test_a_journal_that_holds_texts_in_clear_is_refused_and_the_refusal_says_what_to_do(world: World) -> None:
    with connection.schema_editor() as editor, pytest.raises(CommandError, match=r"texts in clear.*empty database"):
        committed_texts.refuse_texts_in_clear(apps, editor)


def test_a_journal_of_before_the_format_was_settled_is_refused_and_the_refusal_says_what_to_do(world: World) -> None:
    with connection.schema_editor() as editor, pytest.raises(CommandError, match=r"before its format.*empty database"):
        settled_format.refuse_entries_of_before(apps, editor)


@pytest.mark.parametrize(
    ("module", "refuse"),
    [
        (committed_texts, committed_texts.refuse_texts_in_clear),
        (settled_format, settled_format.refuse_entries_of_before),
    ],
)
def test_it_is_refused_before_anything_is_changed(module: Any, refuse: Any) -> None:
    migration = module.Migration
    assert migration.atomic and migration.operations[0].code is refuse
