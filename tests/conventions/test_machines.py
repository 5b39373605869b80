"""Every row that moves says in its entries where it stood and stands: each table that is written more than once names its machine's column."""

from __future__ import annotations

import pytest

from ledger.models.base import Record
from ledger.models.tables import tables

WITHOUT = {
    "body": "written once, and erased once: `erased_at` says so",
    "event": "written once, and erased once: `erased_at` says so",
    "target": "what an administrator says of it, all of it, at any time",
    "tenant_head": "the sequence of its entries, and nothing else that moves",
    "workflow_type": "written once",
}
"""Tables whose rows may be written again and stand nowhere."""

MODELS = [pytest.param(table.model, id=record) for record, table in sorted(tables().items())]


@pytest.mark.parametrize("model", MODELS)
def test_a_row_that_moves_names_its_machine_s_column(model: type[Record]) -> None:
    stands_nowhere = model.APPEND_ONLY or model.RECORD in WITHOUT
    assert (model.MACHINE is None) == stands_nowhere, (
        "name the column that says where its machine stands, or why none does"
    )


@pytest.mark.parametrize("model", MODELS)
def test_where_a_machine_stands_is_in_the_journal_in_clear(model: type[Record]) -> None:
    table = tables()[model.RECORD]
    assert model.MACHINE is None or model.MACHINE in table.journalled - table.committed


def test_no_table_is_named_that_is_none() -> None:
    assert tables().keys() >= WITHOUT.keys()
