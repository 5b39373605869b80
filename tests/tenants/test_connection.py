"""One kept connection serves tenants in turn, and remembers none of them."""

from __future__ import annotations

from django.db import connection

from tests.api.conftest import Http
from tests.ui.asking import address, ask, client_of
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
