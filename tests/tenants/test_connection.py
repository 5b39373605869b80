"""One kept connection serves tenants, nobody, failing requests and tasks in turn, and remembers none of them."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import ProgrammingError, connection
from django.test import Client

from approvals.models import ApprovalRequest, Vote
from ledger import tasks
from ledger.models import RunHead
from ledger.models.base import Unscoped
from tests.api.conftest import Http
from tests.ui.asking import address, ask, client_of, decide
from tests.world import World

TURNS = 12


def backend() -> int:
    """Which connection this is: the server's process of it, or the object that holds it on SQLite."""
    connection.ensure_connection()
    return (
        int(connection.connection.info.backend_pid) if connection.vendor == "postgresql" else id(connection.connection)
    )


def nobody_is_there(before: World) -> None:
    """Whoever has no tenant finds that of nobody, and code that names none is refused."""
    slug = before.tenant.slug
    assert Http().get("/runs").status_code == 401
    assert Client().get(f"/t/{slug}/inbox/").status_code == 302 and Client().get("/healthz").status_code == 200
    with pytest.raises(Unscoped):
        list(RunHead.objects.all())


def breaks_off(world: World, request: ApprovalRequest) -> None:
    """A decision that fails between its first write and its commit: it is rolled back, and the connection stays."""

    def fails(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if "ledger_journal_entry" in sql and "INSERT INTO" in sql:
            raise ProgrammingError("it is broken")
        return execute(sql, params, many, context)

    browser = client_of(world.alice)
    browser.raise_request_exception = False
    with connection.execute_wrapper(fails):
        answer = decide(browser, world, request, "approve")
    assert answer.status_code == 500
    assert not Vote.objects.of(world.tenant).exists() and not connection.in_atomic_block


def test_one_connection_serves_tenants_in_turn_and_mixes_nothing(world: World) -> None:
    worlds = [world, World(), World()]
    requests = [ask(each) for each in worlds]
    callers = [Http(each.secret) for each in worlds]
    people = [client_of(each.alice) for each in worlds]
    before = backend()
    for turn in range(TURNS):
        mine = turn % len(worlds)
        rows = callers[mine].get("/runs").json()["runs"]
        assert [row["id"] for row in rows] == [str(requests[mine].run_id)]
        other = requests[(mine + 1) % len(worlds)]
        assert callers[mine].get(f"/runs/{other.run_id}").status_code == 404
        inbox = people[mine].get(f"/t/{worlds[mine].tenant.slug}/inbox/").content.decode()
        assert str(requests[mine].pk) in inbox and str(other.pk) not in inbox
        assert people[mine].get(address(worlds[mine], requests[mine])).status_code == 200
        assert people[mine].get(address(worlds[mine], other)).status_code == 404
        nobody_is_there(worlds[mine])
        breaks_off(worlds[mine], requests[mine])
        tasks.drain_wakes()
    assert backend() == before, "it was another connection: this proves nothing"
