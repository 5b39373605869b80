"""One kept connection serves tenants in turn, and remembers none of them."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client

from approvals.models import ApprovalRequest
from ledger import tasks
from ledger.models import Run
from ledger.models.base import Unscoped
from tests.api.conftest import Http
from tests.ui.asking import address, ask, client_of, form_of
from tests.world import World

TURNS = 12


def backend() -> int:
    """Which connection this is: the server's process of it, or the object that holds it on SQLite."""
    connection.ensure_connection()
    return (
        int(connection.connection.info.backend_pid) if connection.vendor == "postgresql" else id(connection.connection)
    )


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
    assert backend() == before, "it was another connection: this proves nothing"


def test_one_connection_keeps_nothing_of_whoever_came_before(world: World) -> None:
    """Between two requests of a tenant stand another tenant's, one of nobody's, one that fails in its transaction, and a task of the queue."""
    other = World()
    mine, theirs = ask(world), ask(other)
    ours, foreign = Http(world.secret), Http(other.secret)
    before = backend()

    def sees(caller: Http, own: ApprovalRequest, hidden: ApprovalRequest) -> None:
        assert [row["id"] for row in caller.get("/runs").json()["runs"]] == [str(own.run_id)]
        assert caller.get(f"/runs/{hidden.run_id}").status_code == 404

    def foreigner() -> None:
        sees(foreign, theirs, mine)

    def nobody() -> None:
        assert Http().get("/runs").status_code == 401
        assert Client().get("/healthz").status_code == 200
        assert Client().get(f"/t/{world.tenant.slug}/inbox/").status_code == 302
        for model in (Run, ApprovalRequest):
            with pytest.raises(Unscoped):
                list(model.objects.all())

    def fails() -> None:
        alice = client_of(world.alice)
        alice.raise_request_exception = False
        form = form_of(alice.get(address(world, mine)).content.decode())
        with connection.execute_wrapper(_broken_after_the_write):
            answer = alice.post(address(world, mine, "approval_decide"), {**form, "decision": "approve"})
        assert answer.status_code == 500

    for between in (foreigner, nobody, fails, foreigner, tasks.sweep, nobody):
        sees(ours, mine, theirs)
        between()
    sees(ours, mine, theirs)
    assert not mine.votes.of(world.tenant).exists(), "what failed was taken back whole"
    assert backend() == before, "it was another connection: this proves nothing"


def _broken_after_the_write(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
    answer = execute(sql, params, many, context)
    if "INSERT INTO ledger_journal_entry" in sql:
        raise RuntimeError("broken off")
    return answer
