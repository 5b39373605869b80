"""How many statements a call takes beyond authentication's one, on PostgreSQL, where a statement is a round trip."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.api.conftest import Http, claim_body, commit_body

pytestmark = pytest.mark.postgres_only

AUTHENTICATION = 1
"""One SELECT finds the key; noting its use is an UPDATE at most once a minute, made by the first call of each test."""


def statements(call: Callable[[], Any], status: int) -> list[str]:
    """What one call sent to the database after its key was found."""
    with CaptureQueriesContext(connection) as caught:
        response = call()
    assert response.status_code == status, response.content
    return [query["sql"] for query in caught.captured_queries][AUTHENTICATION:]


@pytest.fixture
def run_id(http: Http) -> str:
    return str(http.start())


def test_a_claim_takes_three(http: Http, run_id: str) -> None:
    assert len(statements(lambda: http.post("/runs/claim", claim_body()), 200)) == 3


def test_a_heartbeat_of_many_runs_takes_one(http: Http, run_id: str) -> None:
    for _ in range(3):
        http.start()
    body = claim_body(limit=4)
    packets = http.post("/runs/claim", body).json()["packets"]
    held = [{"run": packet["run"]["id"], "fence": packet["fence"]} for packet in packets]
    assert len(held) == 4
    beat = {"worker": body["worker"]["id"], "runs": held}
    assert len(statements(lambda: http.post("/heartbeat", beat), 200)) == 1


def test_a_commit_takes_two(http: Http, run_id: str) -> None:
    body = commit_body(http.claim())
    path = f"/runs/{run_id}/checkpoints"
    assert len(statements(lambda: http.post(path, body, key="k"), 201)) == 2


def test_a_commit_that_goes_on_takes_one_more_for_its_clearance(http: Http, run_id: str) -> None:
    body = commit_body(http.claim(), next={"kind": "go_on", "transition": "think"})
    path = f"/runs/{run_id}/checkpoints"
    assert len(statements(lambda: http.post(path, body, key="k"), 201)) == 3
