"""Statements on PostgreSQL go through a cursor that the connection keeps, and Django sees them as it sees any other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import DataError, IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from ledger.services import statements

pytestmark = [pytest.mark.postgres_only, pytest.mark.usefixtures("committed")]

Executed = Callable[..., Any]


def test_a_statement_sent_while_another_is_on_its_way_disturbs_nothing() -> None:
    def asking_before_and_after(execute: Executed, sql: str, params: Any, many: bool, context: Any) -> Any:
        if params == ["inner"]:
            return execute(sql, params, many, context)
        assert statements.rows("SELECT %s::text", ["inner"]) == [("inner",)]
        answer = execute(sql, params, many, context)
        assert statements.rows("SELECT %s::text", ["inner"]) == [("inner",)]
        return answer

    with connection.execute_wrapper(asking_before_and_after):
        assert statements.rows("SELECT %s::text", ["outer"]) == [("outer",)]


def test_an_error_is_django_s_and_the_next_statement_is_answered() -> None:
    with pytest.raises(DataError):
        statements.rows("SELECT 1 / %s", [0])
    assert statements.rows("SELECT 1", []) == [(1,)]


def test_a_broken_transaction_takes_no_statement() -> None:
    with transaction.atomic():
        statements.rows("SELECT 1", [])
        with pytest.raises(IntegrityError), transaction.atomic():
            statements.rows("INSERT INTO ledger_heartbeat (name) VALUES (%s)", ["x"])
        connection.needs_rollback = True
        with pytest.raises(transaction.TransactionManagementError):
            statements.rows("SELECT 1", [])
        connection.needs_rollback = False


def test_django_logs_it_where_somebody_asks_for_the_log() -> None:
    statements.rows("SELECT 1", [])
    with CaptureQueriesContext(connection) as caught:
        statements.rows("SELECT 2", [])
    assert [query["sql"] for query in caught.captured_queries] == ["SELECT 2"]


def test_after_a_new_connection_nothing_is_sent_through_the_old_one() -> None:
    statements.rows("SELECT 1", [])
    connection.close()
    assert statements.rows("SELECT 1", []) == [(1,)]


def test_two_statements_in_a_row_share_a_cursor() -> None:
    seen = []

    def noting(execute: Executed, sql: str, params: Any, many: bool, context: Any) -> Any:
        seen.append(context["cursor"].cursor)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(noting):
        statements.rows("SELECT 1", [])
        statements.rows("SELECT 2", [])
    assert seen[0] is seen[1]
