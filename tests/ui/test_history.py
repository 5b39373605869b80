"""The history's search: each filter by itself and together, in the address, paged without losing an entry, with an index for each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from approvals.services import actors, history_pages
from approvals.services.history_pages import Filter
from ledger.models import JournalEntry
from tests.clock import Clock
from tests.conventions import sources
from tests.tamper import run_sql, triggers_off
from tests.ui.asking import client_of
from tests.ui.scenes import called, completed, lost
from tests.world import World


def rows(world: World, **query: str) -> int:
    page = client_of(world.dora).get(reverse("history", args=[world.tenant.slug]), query).content.decode()
    return page.count("<tr data-row>")


def test_a_target_finds_the_entries_of_the_runs_that_call_it(world: World) -> None:
    _, effect = called(world)
    completed(world)
    assert rows(world, target="payments", verb="run.start") == 1
    assert rows(world, target="wires") == 0 and rows(world, target="nothing") == 0
    entries = JournalEntry.objects.of(world.tenant).filter(stream_id=effect.run_id).count()
    assert rows(world, target="payments") == entries


def test_filters_stay_in_the_addresses_of_the_pages(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    called(world)
    monkeypatch.setattr(history_pages, "SHOWN", 2)
    client = client_of(world.dora)
    here = reverse("history", args=[world.tenant.slug])
    page = client.get(here, {"target": "payments"}).content.decode()
    following = re.search(r'href="(\?[^"]*)" rel="next"', page)
    assert following and "target=payments" in following[1]
    second = client.get(here + following[1].replace("&amp;", "&")).content.decode()
    assert second.count("<tr data-row>") == 2 and 'href="?target=payments"' in second
    assert "<option selected>payments</option>" in second


def test_every_entry_is_on_exactly_one_page_even_of_one_moment(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    called(world)
    total = JournalEntry.objects.of(world.tenant).count()
    same = "UPDATE ledger_journal_entry SET at = (SELECT max(at) FROM ledger_journal_entry WHERE tenant_id = %s) WHERE tenant_id = %s"
    tenant = world.tenant.pk if connection.vendor == "postgresql" else world.tenant.pk.hex
    with triggers_off("ledger_journal_entry"):
        run_sql(same + " AND kind = 'run'", tenant, tenant)
    monkeypatch.setattr(history_pages, "SHOWN", 3)
    seen: list[tuple[int, str]] = []
    before = ""
    while True:
        found = history_pages.history(world.dora, world.tenant, Filter(before=before))
        seen += [(line.seq, line.digest) for line in found.lines]
        before = found.next
        if not before:
            break
    assert len(seen) == total == len(set(seen))


@pytest.mark.parametrize(
    "before", ["x", "7", "2026-11-30T00:00:00~7", "2026-11-30T00:00:00+00:00~x", "~", "~" + "9" * 30]
)
def test_a_page_that_is_none_is_refused_with_what_to_do(world: World, before: str) -> None:
    answer = client_of(world.dora).get(reverse("history", args=[world.tenant.slug]), {"before": before})
    assert answer.status_code == 422 and "first page" in answer.content.decode()


def test_resumeapp_itself_is_every_system_actor_that_the_source_names(world: World, clock: Clock) -> None:
    named = {
        name
        for path in sources.product_modules()
        if path.parts[0] in {"ledger", "approvals"}
        for name in re.findall(r'"system:(\w+)"', sources.read(Path(path)))
    }
    assert named - {"observer"} == set(actors.SYSTEM), "an observation's source is no actor"
    lost(world, clock)
    assert rows(world, actor="system:", verb="lease.lapse") == 1
    assert rows(world, actor="system:", verb="run.start") == 0


def test_the_history_costs_the_same_at_ten_times_the_data(world: World, clock: Clock) -> None:
    client = client_of(world.dora)
    here = reverse("history", args=[world.tenant.slug])
    queries = ({}, {"target": "payments"}, {"actor": "system:"}, {"verb": "run.start"}, {"since": "2020-01-01"})

    def costs() -> list[int]:
        found = []
        for query in queries:
            with CaptureQueriesContext(connection) as captured:
                assert client.get(here, query).status_code == 200
            found.append(len(captured))
        return found

    lost(world, clock)
    costs()
    few = costs()
    for _ in range(9):
        lost(world, clock)
    assert costs() == few
    assert max(few) <= 26, few


def test_no_search_counts_the_table_or_sorts_it(world: World) -> None:
    # Each filter has an index that brings the newest first.
    completed(world)
    asked = (
        Filter(),
        Filter(actor=world.caller.actor),
        Filter(verb="run.start"),
        Filter(since="2020-01-01", until="2030-01-01"),
        Filter(before="2030-01-01T00:00:00+00:00~9"),
    )
    for each in asked:
        found = history_pages._narrowed(world.tenant, JournalEntry.objects.of(world.tenant), each)
        page = found.order_by("-at", "-id")[:51]
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("SET enable_seqscan = off")
                cursor.execute("SET enable_bitmapscan = off")
                try:
                    plan = page.explain()
                finally:
                    cursor.execute("RESET enable_seqscan")
                    cursor.execute("RESET enable_bitmapscan")
            assert "Sort" not in plan and "journal_" in plan, (each, plan)
        else:
            plan = page.explain()
            assert "journal_" in plan and "TEMP B-TREE" not in plan, (each, plan)
