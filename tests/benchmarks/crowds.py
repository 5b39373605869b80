"""A database in which thousands of runs wait, loaded in seconds, and what the planner does about a statement there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.db import connection

from benchmarks.acts import Inside, Item
from benchmarks.loader import golden, load
from benchmarks.scene import EVENT_TYPE, Scene
from ledger.models import Tenant, User
from ledger.services import events
from ledger.services.events import EventSpec

SIZE = 200
LARGE = 1_000
"""A table with more rows is never read from end to end."""
KEPT = 150
FEW = 20
OTHERS = {"proposed": 60_001, "approved": 61_001, "voted": 62_001}
"""Goldens of which a few copies are enough, and where their numbers begin."""
AGO = timedelta(hours=1)
"""How long everything has been waiting at least."""


class Crowd:
    """One tenant: thousands wait for events, approvals and timers or are at work, some wake and are ready, and events are kept that fit nothing."""

    def __init__(self) -> None:
        self.scene = Scene()
        self.tenant = Tenant.objects.get(pk=self.scene.seat.tenant_id)
        self.person = User.objects.get(pk=self.scene.seat.person_id)
        self.caller = self.scene.caller
        made = {
            name: golden(getattr(self.scene, name)(SIZE))
            for name in (*OTHERS, "waiting", "asked", "timed", "running", "waking", "ready")
        }
        self.waiting = load(made["waiting"], 2_500, shift=lambda number: -AGO - timedelta(seconds=number))
        self.asked = load(made["asked"], 1_500, first=10_001, shift=lambda number: -AGO - timedelta(seconds=number))
        load(made["timed"], 1_200, first=20_001, shift=lambda number: -AGO / 2)
        running = load(made["running"], 1_200, first=30_001)
        self.waking = load(made["waking"], 1_200, first=40_001, shift=lambda number: -AGO)
        load(made["ready"], 1_200, first=50_001, shift=lambda number: -timedelta(milliseconds=number))
        few = {name: load(made[name], FEW, first=at) for name, at in OTHERS.items()}
        self._unused = {
            name: iter([Item(*each) for each in zip(copies.ids, copies.words, strict=True)])
            for name, copies in {**few, "running": running, "asked": self.asked}.items()
        }
        for number in range(KEPT):
            events.receive(self.caller, EventSpec("/shop", uuid4().hex, EVENT_TYPE, f"nobody-{number}"))
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")

    def do(self, verb: Inside, name: str) -> None:
        """A verb as the benchmarks call it, once, on a run that nobody has touched."""
        next(verb(self.scene.seat, [next(self._unused[name])], SIZE))


@dataclass(frozen=True, slots=True)
class Sent:
    """A statement with its parameters."""

    sql: str
    params: Any


def reading(act: Callable[[], object]) -> list[Sent]:
    """The statements of an act that read and nothing else."""
    sent: list[Sent] = []

    def note(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        sent.append(Sent(sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        act()
    return [each for each in sent if each.sql.startswith("SELECT") and not re.search(r"\b(INSERT|UPDATE)\b", each.sql)]


@dataclass(frozen=True, slots=True)
class Scan:
    """How a table was read: `visited` rows in all, whether they were wanted or not."""

    table: str
    whole: bool
    visited: int


def scans(sent: Sent, *, generic: bool) -> list[Scan]:
    """Every scan of a table in a statement's plan, as it ran: planned for these parameters, or once for any, as a kept statement may be.

    Pages are taken to be in memory, so that thousands of rows are as many to the planner as a hundred thousand elsewhere.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            f"SET random_page_cost = 1.1; SET plan_cache_mode = {'force_generic_plan' if generic else 'auto'}"
        )
        try:
            if generic:
                plan = _generic(cursor, sent)
            else:
                cursor.execute(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {sent.sql}", sent.params)
                plan = cursor.fetchone()[0]
        finally:
            cursor.execute("RESET random_page_cost; RESET plan_cache_mode")
    document = json.loads(plan) if isinstance(plan, str) else plan
    return list(_scans(document[0]["Plan"]))


def _generic(cursor: Any, sent: Sent) -> Any:
    given = list(sent.params or ())
    numbers = iter(range(1, len(given) + 1))
    text = (
        re.sub(r"%[s%]", lambda found: f"${next(numbers)}" if found[0] == "%s" else "%", sent.sql)
        if given
        else sent.sql
    )
    types = ", ".join("uuid" if type(value).__name__ == "UUID" else "unknown" for value in given)
    name = f"plan_{uuid4().hex}"
    cursor.execute(f"PREPARE {name}{f'({types})' if given else ''} AS {text}")
    literals = ", ".join(connection.ops.compose_sql("%s", [value]) for value in given)
    cursor.execute(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) EXECUTE {name}{f'({literals})' if given else ''}")
    return cursor.fetchone()[0]


def _scans(node: dict[str, Any]) -> Iterator[Scan]:
    if "Relation Name" in node and "Scan" in node["Node Type"]:
        removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
        visited = int((node["Actual Rows"] + removed) * node["Actual Loops"])
        yield Scan(node["Relation Name"], node["Node Type"] == "Seq Scan", visited)
    for below in node.get("Plans", ()):
        yield from _scans(below)


def large_tables() -> set[str]:
    """Tables of the record with more than `LARGE` rows, as the planner has counted them."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT relname FROM pg_class WHERE relkind = 'r' AND reltuples > %s", [LARGE])
        return {row[0] for row in cursor.fetchall()}
