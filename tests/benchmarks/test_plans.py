"""Among thousands of runs every hot statement searches an index and reads no more rows than it needs: each sweep, claim, event, wake and page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection

from approvals.services import (
    handoff_pages,
    history_pages,
    inbox,
    reconcile_pages,
    requests,
    run_lists,
    run_pages,
    stalled_runs,
    waiting,
)
from approvals.services.run_lists import Filter
from approvals.views.counts import MOST
from benchmarks import acts
from benchmarks.scene import EVENT_TYPE, VERSION, WORKFLOW
from ledger.domain.health import Health
from ledger.domain.leases import Offer
from ledger.engine import sweep, wakes
from ledger.models import RunHead
from ledger.services import effects, events, facts, grants, leases, meetings, reads, waits
from ledger.services import wakes as wake_rows
from ledger.services.events import EventSpec
from ledger.services.reads import RunFilter
from ledger.services.search import LOOKED_THROUGH
from tests.benchmarks.crowds import Crowd, large_tables, reading, scans

pytestmark = [pytest.mark.postgres_only, pytest.mark.slow]
FEW = 300
"""Rows of one table that a statement may visit: a page or a batch, with what is around it."""
COUNTED = 2 * (MOST + 2)
"""The same for what counts up to a thousand."""


@pytest.fixture(scope="module")
def crowd(django_db_setup: None, django_db_blocker: Any) -> Iterator[Crowd]:
    with django_db_blocker.unblock():
        yield Crowd()


Act = Callable[[Crowd], object]

SWEEPS: dict[str, Act] = {
    "due leases": lambda crowd: leases.due(100),
    "due waits": lambda crowd: waits.due(100),
    "waits whose event is there": lambda crowd: meetings.unmet(100, facts.read().now - meetings.LOOKED_BACK),
    "due grants": lambda crowd: grants.due(100),
    "clearances that nobody claimed": lambda crowd: wake_rows.unclaimed(100),
    "clearances before a new version": lambda crowd: wake_rows.outdated(100),
    "due wakes": lambda crowd: wake_rows.due(100),
    "due effects": lambda crowd: effects.due(100),
    "due requests": lambda crowd: requests.expire_due(100),
    "how long nothing is due": lambda crowd: sweep.pause(),
}
KEPT = [name for name in SWEEPS if name != "due requests"]
"""Those whose states stand in the statement: where one is a parameter, as in Django's queries, a plan for any of them can't use an index on some,
and PostgreSQL keeps none."""
VERBS: dict[str, Act] = {
    "claim": lambda crowd: leases.claim(crowd.caller, Offer(uuid4(), "w", "w", {WORKFLOW: (VERSION,)}, 5, 60)),
    "event": lambda crowd: events.receive(
        crowd.caller, EventSpec("/shop", uuid4().hex, EVENT_TYPE, crowd.waiting.words[7])
    ),
    "look after a wait was opened": lambda crowd: waits.look_after_open(crowd.waiting.ids[8]),
    "wake": lambda crowd: wakes.run(crowd.waking.ids[3]),
    "commit": lambda crowd: crowd.do(acts.commit, "running"),
    "commit with effect and wait": lambda crowd: crowd.do(acts.commit_whole, "running"),
    "permit and settle": lambda crowd: crowd.do(acts.permit, "proposed"),
    "permit and settle of an approved call": lambda crowd: crowd.do(acts.permit, "approved"),
    "wake after an approval": lambda crowd: crowd.do(acts.wake, "voted"),
    "decide": lambda crowd: crowd.do(acts.decided, "asked"),
}
PAGES: dict[str, Act] = {
    "inbox": lambda crowd: waiting.page_for(crowd.person, crowd.tenant),
    "run page": lambda crowd: run_pages.run(crowd.person, crowd.tenant, crowd.waiting.ids[9]),
    "history": lambda crowd: _history(crowd),
    "history by verb": lambda crowd: _history(crowd, verb="policy.publish"),
    "history by actor": lambda crowd: _history(crowd, actor="person:nobody"),
    "history by target": lambda crowd: _history(crowd, target="payments"),
    "history by a target that nobody calls": lambda crowd: _history(crowd, target="idle"),
    "history by target and time": lambda crowd: _history(crowd, target="payments", until="2100-01-01"),
    "what is newer in the history of a target": lambda crowd: history_pages.moved(
        crowd.person, crowd.tenant, history_pages.Filter(target="payments"), facts.read().now
    ),
    "history by run": lambda crowd: _history(crowd, run=str(crowd.waiting.ids[9])),
    "runs of the API": lambda crowd: reads.runs(crowd.caller, RunFilter(), "", 50),
    "runs of the API by status": lambda crowd: reads.runs(crowd.caller, RunFilter(status="completed"), "", 50),
    "runs of the API by task": lambda crowd: reads.runs(
        crowd.caller, RunFilter(task=f"settle {crowd.waiting.words[9]}"), "", 50
    ),
    "effects of the API by state": lambda crowd: reads.effects(crowd.caller, None, "unknown", "", 50),
    "reconcile": lambda crowd: reconcile_pages.queue(crowd.person, crowd.tenant),
    "handoffs": lambda crowd: handoff_pages.handoffs(crowd.person, crowd.tenant),
}
SEARCHES: dict[str, Act] = {
    **{
        f"runs of the API that are {kind}": lambda crowd, kind=kind: reads.runs(  # type: ignore[misc]
            crowd.caller, RunFilter(health=str(kind)), "", 50
        )
        for kind in Health
        if kind not in {Health.LEASE, Health.UNCHECKED}
    },
    "runs by owner": lambda crowd: _runs(crowd, owner="nobody"),
    "runs by attribute": lambda crowd: _runs(crowd, attribute="nothing:17"),
    "runs by a whole task": lambda crowd: _runs(crowd, text=f"settle {crowd.waiting.words[9]}"),
    "runs by the end of an id": lambda crowd: _runs(crowd, text=crowd.waiting.ids[9].hex[-8:]),
    "runs by a person who acted": lambda crowd: _runs(crowd, text=crowd.person.name),
    "runs by words that none has": lambda crowd: _runs(crowd, text="zzz"),
    "runs of the API by owner": lambda crowd: reads.runs(crowd.caller, RunFilter(owner="nobody"), "", 50),
    "runs of the API by attribute": lambda crowd: reads.runs(
        crowd.caller, RunFilter(attributes=("nothing:17",)), "", 50
    ),
    "runs that are overdue": lambda crowd: _runs(crowd, health=str(Health.OVERDUE)),
}
LOOKED = LOOKED_THROUGH + COUNTED
COUNTING: dict[str, Act] = {
    "runs": lambda crowd: run_lists.runs(crowd.person, crowd.tenant, Filter()),
    "runs by status": lambda crowd: run_lists.runs(crowd.person, crowd.tenant, Filter(status="completed")),
    "runs by workflow": lambda crowd: run_lists.runs(crowd.person, crowd.tenant, Filter(workflow=WORKFLOW)),
    # Every wake here is overdue, and no lease is: what is asked for is the table, or next to nothing of it.
    "runs that are unchecked": lambda crowd: _runs(crowd, health=str(Health.UNCHECKED)),
    "runs whose worker is silent": lambda crowd: _runs(crowd, health=str(Health.LEASE)),
    "badge of the inbox": lambda crowd: inbox.pending_for(crowd.person, crowd.tenant).order_by()[: MOST + 1].count(),
    "badge of reconcile": lambda crowd: (
        reconcile_pages.waiting_for(crowd.person, crowd.tenant).order_by()[: MOST + 1].count()
    ),
    "badge of handoffs": lambda crowd: (
        handoff_pages.open_for(crowd.person, crowd.tenant).order_by()[: MOST + 1].count()
    ),
}


def _runs(crowd: Crowd, **asked: str) -> object:
    return run_lists.runs(crowd.person, crowd.tenant, Filter(**asked))


def _history(crowd: Crowd, **asked: str) -> object:
    return history_pages.history(crowd.person, crowd.tenant, history_pages.Filter(**asked))


def too_much(act: Callable[[], object], most: int, *, generic: bool) -> list[str]:
    """The scans of an act's statements that read a large table whole, or more rows than they may."""
    large = large_tables()
    assert large, "nothing is large here"
    found = [(sent, scan) for sent in reading(act) for scan in scans(sent, generic=generic) if scan.table in large]
    return [
        f"{scan.table} {scan.visited} {sent.sql[:2_000]}" for sent, scan in found if scan.whole or scan.visited > most
    ]


def test_a_statement_that_reads_a_table_whole_is_found(crowd: Crowd) -> None:
    act = lambda: list(RunHead.objects.of(crowd.tenant).filter(asks=7))  # noqa: E731
    assert too_much(act, FEW, generic=False)


def test_a_statement_that_passes_over_many_rows_of_an_index_is_found(crowd: Crowd) -> None:
    def act() -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT run_id FROM ledger_wait_set WHERE state = 'open' AND due_at <= ledger_clock() ORDER BY due_at LIMIT 100"
            )

    assert too_much(act, FEW, generic=False)


@pytest.mark.parametrize("name", [*SWEEPS, *VERBS, *PAGES])
def test_a_hot_statement_searches_an_index(crowd: Crowd, name: str) -> None:
    act = {**SWEEPS, **VERBS, **PAGES}[name]
    assert not too_much(lambda: act(crowd), FEW, generic=False)


@pytest.mark.parametrize("name", [*KEPT, *VERBS])
def test_a_hot_statement_does_so_too_when_its_plan_is_kept_for_any_parameters(crowd: Crowd, name: str) -> None:
    act = {**SWEEPS, **VERBS}[name]
    assert not too_much(lambda: act(crowd), FEW, generic=True)


@pytest.mark.parametrize("name", COUNTING)
def test_what_is_counted_is_counted_up_to_a_thousand(crowd: Crowd, name: str) -> None:
    large = large_tables()
    visited = [scan for sent in reading(lambda: COUNTING[name](crowd)) for scan in scans(sent, generic=False)]
    assert max(scan.visited for scan in visited if scan.table in large) <= COUNTED


STALLED: dict[str, Act] = {
    "stalled runs": lambda crowd: waiting.page_for(crowd.person, crowd.tenant, waiting.STALLED),
    "badge of unclaimed runs": lambda crowd: (
        stalled_runs.unclaimed_for(crowd.person, crowd.tenant).order_by()[: MOST + 1].count()
    ),
    "badge of runs that don't verify": lambda crowd: (
        stalled_runs.unverified_for(crowd.person, crowd.tenant).order_by()[: MOST + 1].count()
    ),
    "badge of handoffs apart": lambda crowd: (
        handoff_pages.apart_for(crowd.person, crowd.tenant).order_by()[: MOST + 1].count()
    ),
}


@pytest.mark.parametrize("name", STALLED)
def test_runs_that_stand_still_are_counted_up_to_a_thousand_and_read_by_the_page(
    crowd: Crowd, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stalled_runs, "UNCLAIMED_AFTER", timedelta(0))
    assert stalled_runs.unclaimed_for(crowd.person, crowd.tenant).count() > MOST
    large = large_tables()
    found = [scan for sent in reading(lambda: STALLED[name](crowd)) for scan in scans(sent, generic=False)]
    visited = [scan for scan in found if scan.table in large]
    assert max((scan.visited for scan in visited), default=0) <= COUNTED
    assert not [scan for scan in visited if scan.table == "ledger_run_head" and scan.whole]


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_looks_through_so_many_rows_however_many_there_are(crowd: Crowd, name: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM ledger_run")
        assert cursor.fetchone()[0] > LOOKED
    assert not too_much(lambda: SEARCHES[name](crowd), LOOKED, generic=False)
