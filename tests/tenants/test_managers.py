"""A query over a tenant's table that names no tenant answers nothing and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db.models import Count

from ledger.models import Worker
from ledger.models.base import Unscoped
from tests.world import World

ASKED: dict[str, Callable[[Any], Any]] = {
    "all": list,
    "get": lambda rows: rows.get(),
    "first": lambda rows: rows.first(),
    "values": lambda rows: list(rows.values_list("pk")),
    "count": lambda rows: rows.count(),
    "exists": lambda rows: rows.exists(),
    "aggregate": lambda rows: rows.aggregate(n=Count("pk")),
    "iterator": lambda rows: list(rows.iterator()),
    "update": lambda rows: rows.update(name="renamed"),
    "delete": lambda rows: rows.delete(),
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_without_a_tenant_nothing_is_answered_or_changed(world: World, ask: Callable[[Any], Any]) -> None:
    world.claimed_run()
    before = list(Worker.objects.of(world.tenant).values("pk", "name"))
    with pytest.raises(Unscoped, match=r"say \.of\(tenant\)"):
        ask(Worker.objects.filter(tenant=world.tenant))
    assert before and list(Worker.objects.of(world.tenant).values("pk", "name")) == before


def test_a_query_that_was_scoped_stays_so(world: World) -> None:
    world.claimed_run()
    mine = Worker.objects.of(world.tenant).exclude(name="").order_by("pk")[:1]
    assert len(mine) == 1 and not Worker.objects.of(World().tenant).exists()
