"""Whatever expires has a time in the database itself: a row without one can't be."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, connection, transaction

from approvals.models import ApprovalRequest, Revision
from ledger.models import Clearance, Grant, Lease, Permit, WaitSet
from tests.approvals.asking import asked
from tests.world import World

EXPIRING = [
    (ApprovalRequest, "decide_by"),
    (Revision, "decide_by"),
    (Grant, "use_by"),
    (WaitSet, "deadline"),
    (Lease, "expires_at"),
    (Permit, "send_by"),
    (Permit, "answer_by"),
    (Clearance, "valid_until"),
]


@pytest.mark.parametrize(("model", "column"), EXPIRING, ids=lambda each: getattr(each, "__name__", each))
def test_what_expires_can_not_be_without_its_time(model: type, column: str, committed: None) -> None:
    table = model._meta.db_table
    with connection.cursor() as cursor:
        described = {each.name: each for each in connection.introspection.get_table_description(cursor, table)}
    assert described[column].null_ok is False
    kind = connection.introspection.get_field_type(described[column].type_code, described[column])
    assert kind == "DateTimeField"


def test_a_request_whose_time_is_taken_away_is_refused_by_the_database(world: World) -> None:
    ask = asked(world)
    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("UPDATE approvals_request SET decide_by = NULL WHERE run_id = %s", [_id(ask.run_id)])
    assert ask.request.state == "pending" and ask.request.decide_by is not None


def _id(run_id: object) -> object:
    return run_id if connection.vendor == "postgresql" else str(run_id).replace("-", "")


def test_one_person_has_one_vote_a_revision_by_the_database_too(world: World) -> None:
    ask = asked(world)
    ask.decide(world.alice)
    (vote,) = ask.votes
    names = [field.column for field in vote._meta.concrete_fields]
    chosen = ", ".join(names)
    other = ", ".join("%s" if name == "id" else name for name in names)
    with (
        pytest.raises(IntegrityError, match=r"one_vote_a_revision|request_id.*voter_id"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(
            f"INSERT INTO {vote._meta.db_table} ({chosen}) SELECT {other} FROM {vote._meta.db_table} WHERE id = %s",
            [_id(ask.request_id), _id(vote.pk)],
        )
    assert len(ask.votes) == 1
