"""The one writer: all of a Change or nothing, on the head that the rule read, before its time, under the authority that it read."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest
from django.db import connection, connections, transaction

from ledger.domain.change import Change, Insert, Kind, Move, Stream
from ledger.domain.errors import Late, Moved
from ledger.domain.journal import StoredEntry, check_chain
from ledger.models import Body, JournalEntry, RunHead, TenantHead
from ledger.services import administration, facts, verify, writer
from ledger.services.conflicts import Conflict
from ledger.services.ids import new_body
from tests.patience import until

if TYPE_CHECKING:
    from tests.world import World


def _change(world: World, run_id: UUID, **over: Any) -> Change:
    head = world.head(run_id)
    now = facts.read().now
    body = new_body(b'"text"', now)
    row = {
        "id": body.id,
        "tenant_id": world.tenant.pk,
        "salt": body.salt,
        "content": body.content,
        "commitment": body.commitment,
        "media": body.media,
        "size": len(body.content),
    }
    values: dict[str, Any] = {
        "stream": Stream(Kind.RUN, run_id, world.tenant.pk, bytes(head.salt)),
        "expect_seq": head.head_seq,
        "at": now,
        "actor": "system:test",
        "verb": "test.write",
        "head": {"moved_at": now},
        "head_was": {"status": head.status},
        "inserts": (Insert("body", row),),
    }
    return Change(**{**values, **over})


def _rows(world: World, run_id: UUID) -> tuple[int, int, int]:
    tenant = world.tenant
    return JournalEntry.objects.of(tenant).count(), Body.objects.of(tenant).count(), world.head(run_id).head_seq


def _refused_without_trace(world: World, run_id: UUID, kind: type[Exception], change: Change) -> None:
    before = _rows(world, run_id)
    with pytest.raises(kind):
        writer.apply(change)
    assert _rows(world, run_id) == before


def test_a_change_on_an_older_head_is_refused_and_nothing_is_written(world: World) -> None:
    run_id = world.start_run()
    _refused_without_trace(world, run_id, Moved, _change(world, run_id, expect_seq=world.head(run_id).head_seq + 1))


def test_a_change_past_its_time_is_refused_and_nothing_is_written(world: World) -> None:
    run_id = world.start_run()
    _refused_without_trace(world, run_id, Late, _change(world, run_id, not_after=facts.read().now))


def test_a_change_under_an_older_administration_is_refused_and_nothing_is_written(world: World) -> None:
    run_id = world.start_run()
    read = TenantHead.objects.of(world.tenant).get().head_seq
    world.person("eve")
    _refused_without_trace(world, run_id, Moved, _change(world, run_id, tenant_seq=read))


def test_a_row_that_is_not_as_read_refuses_the_whole_change(world: World) -> None:
    run_id = world.start_run()
    clearance = world.head(run_id).clearance_id
    move = Move("clearance", clearance, {"state": "used"}, {"state": "closed"})
    _refused_without_trace(world, run_id, Moved, _change(world, run_id, moves=(move,)))


def test_a_violated_constraint_is_named_and_nothing_is_written(world: World) -> None:
    first = world.start_run(key="taken")
    row = facts.read(run=facts.Part("run", "t.id = %s", (first,))).row("run")
    assert row is not None
    run_id = uuid4()
    row = {**row, "id": run_id, "lineage_id": run_id}
    change = _change(world, first, inserts=(Insert("run", row),))
    before = _rows(world, first)
    with pytest.raises(Conflict) as found:
        writer.apply(change)
    assert found.value.constraint == "run_key_unique"
    assert _rows(world, first) == before


def test_of_several_changes_each_is_written_or_refused_for_itself(world: World) -> None:
    good, moved, late, overtaken, spoiling, last = runs = [world.start_run() for _ in range(6)]
    row = facts.read(run=facts.Part("run", "t.id = %s", (spoiling,))).row("run")
    assert row is not None
    twin = Insert("run", {**row, "id": uuid4()})
    elsewhere = Move("clearance", world.head(spoiling).clearance_id, {"state": "used"}, {"state": "closed"})
    refused = (
        _change(world, moved, expect_seq=world.head(moved).head_seq + 1),
        _change(world, late, not_after=facts.read().now),
        _change(world, overtaken, tenant_seq=TenantHead.objects.of(world.tenant).get().head_seq - 1),
    )
    spoilers = ({"inserts": (twin,)}, {"moves": (elsewhere,)})
    for more in ((), *([_change(world, spoiling, **each)] for each in spoilers)):
        before = {run_id: world.head(run_id).head_seq for run_id in runs}
        written = writer.apply_each([_change(world, good), *refused, *more, _change(world, last)])
        assert [done is not None for done in written] == [True, *[False] * (3 + len(more)), True]
        after = {run_id: world.head(run_id).head_seq for run_id in before}
        assert [after[run_id] - before[run_id] for run_id in before] == [1, 0, 0, 0, 0, 1]
        assert [done.digest for done in written if done] == [bytes(world.head(r).head_digest) for r in (good, last)]
        assert all(verify.run(run_id).faults == [] for run_id in before)


def test_no_changes_are_no_statement(world: World) -> None:
    assert writer.apply_each([]) == []


def test_an_unknown_column_is_a_fault_of_ours_and_is_said_aloud(world: World) -> None:
    run_id = world.start_run()
    with pytest.raises(ValueError, match="no columns"):
        writer.apply(
            _change(world, run_id, inserts=(Insert("wake", {"id": uuid4(), "state": "queued", "nonsense": 1}),))
        )


def test_each_change_adds_one_entry_that_lists_its_rows(world: World) -> None:
    run_id = world.start_run()
    change = _change(world, run_id)
    written = writer.apply(change)
    entry = JournalEntry.objects.of(world.tenant).get(stream_id=run_id, seq=written.seq)
    head = world.head(run_id)
    assert (head.head_seq, bytes(head.head_digest)) == (written.seq, written.digest)
    assert str(change.inserts[0].row["id"]) in bytes(entry.content).decode()
    assert verify.run(run_id).faults == []


def _at_once(*acts: Callable[[], Any]) -> list[Any]:
    """Run acts in threads that start together; answers results or exceptions, in order."""
    barrier = threading.Barrier(len(acts))
    results: list[Any] = [None] * len(acts)

    def run(number: int, act: Callable[[], Any]) -> None:
        barrier.wait()
        try:
            results[number] = act()
        except Exception as error:
            results[number] = error
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return results


def _hold_until_waited_for(run_id: UUID, writers: int, held: threading.Event) -> None:
    """Hold the run's head, and say so, until so many statements wait for a lock."""
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"

    def all_wait(cursor: Any) -> bool:
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(waiting)
        return bool(cursor.fetchone()[0] == writers)

    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM ledger_run_head WHERE run_id = %s FOR UPDATE", [run_id])
        held.set()
        until(lambda: all_wait(cursor), f"{writers} writers that wait")


@pytest.mark.postgres_only
def test_sixteen_writers_on_one_run_fork_nothing(world: World) -> None:
    run_id = world.start_run()
    changes = [_change(world, run_id) for _ in range(16)]
    seqs = {change.expect_seq for change in changes}
    held = threading.Event()

    def write(change: Change) -> Any:
        assert held.wait(20)
        return writer.apply(change)

    hold = partial(_hold_until_waited_for, run_id, len(changes), held)
    waited, *results = _at_once(hold, *[partial(write, change) for change in changes])
    assert waited is None and len(seqs) == 1, "all read the same head, and each began before any ended: they overlapped"
    assert sum(isinstance(result, writer.Written) for result in results) == 1
    assert sum(isinstance(result, Moved) for result in results) == 15
    report = verify.run(run_id)
    assert report.faults == []


@pytest.mark.postgres_only
def test_the_clock_is_read_after_the_lock_and_not_while_waiting_for_it(world: World) -> None:
    run_id = world.start_run()
    change = _change(world, run_id, not_after=facts.read().now + timedelta(seconds=0.6))
    held, waiting = threading.Event(), []

    def hold() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM ledger_run_head WHERE run_id = %s FOR UPDATE", [run_id])
            held.set()
            cursor.execute("SELECT pg_sleep(1.2)")

    def write() -> Any:
        held.wait(10)
        waiting.append(facts.read().now)
        return writer.apply(change)

    _, result = _at_once(hold, write)
    assert change.not_after is not None
    assert waiting[0] < change.not_after, "it began before its time was over and waited for the lock"
    assert isinstance(result, Late)


@pytest.mark.postgres_only
def test_of_several_changes_one_whose_head_is_held_is_passed_over(world: World) -> None:
    free, busy = world.start_run(), world.start_run()
    changes = [_change(world, busy), _change(world, free)]
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM ledger_run_head WHERE run_id = %s FOR UPDATE", [busy])
            held.set()
            assert done.wait(20)

    def write() -> Any:
        assert held.wait(20)
        try:
            return writer.apply_each(changes)
        finally:
            done.set()

    _, written = _at_once(hold, write)
    assert written[0] is None and written[1] is not None, "it waited, or wrote past another's lock"


@pytest.mark.postgres_only
def test_administration_that_changes_while_a_change_waits_for_its_lock_is_seen(world: World) -> None:
    run_id = world.start_run()
    change = _change(world, run_id, tenant_seq=TenantHead.objects.of(world.tenant).get().head_seq)
    held, blocked = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM ledger_run_head WHERE run_id = %s FOR UPDATE", [run_id])
            held.set()
            _wait_for_a_blocked_writer(cursor)
            blocked.set()
            threading.Event().wait(0.4)

    def administer() -> None:
        blocked.wait(10)
        with administration.act(world.admin, "test.touch") as draft:
            draft.body(new_body(b"1", draft.at))

    def write() -> Any:
        held.wait(10)
        return writer.apply(change)

    _, _, result = _at_once(hold, administer, write)
    assert blocked.is_set()
    assert isinstance(result, Moved)


def _wait_for_a_blocked_writer(cursor: Any) -> None:
    for _ in range(500):
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        if cursor.fetchone()[0]:
            return
        cursor.execute("SELECT pg_sleep(0.01)")
    raise AssertionError("nobody waited for the lock: the test proves nothing")


def test_four_threads_lose_no_update(world: World) -> None:
    run_id = world.start_run()

    def several() -> int:
        done = 0
        while done < 5:
            try:
                writer.apply(_change(world, run_id))
                done += 1
            except Moved:
                continue
        return done

    before = world.head(run_id).head_seq
    assert _at_once(several, several, several, several) == [5, 5, 5, 5]
    head: RunHead = world.head(run_id)
    entries = [
        StoredEntry(entry.seq, bytes(entry.content), bytes(entry.digest))
        for entry in JournalEntry.objects.of(world.tenant).filter(stream_id=run_id).order_by("seq")
    ]
    assert head.head_seq == before + 20
    assert check_chain(f"run:{run_id}", entries)[0] == []
