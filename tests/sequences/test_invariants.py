"""Each invariant seen broken once: what never fails proves nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from ledger.domain.effects import EffectRow, EffectState
from ledger.domain.runs import Fence, Status
from ledger.domain.views import RunView
from tests.domain.effect_facts import NOW, Scene, effect
from tests.sequences import invariants
from tests.sequences.outside import Call, Fate, Outside

P, I, U, F, C = (
    EffectState.PROPOSED,
    EffectState.IN_FLIGHT,
    EffectState.UNKNOWN,
    EffectState.FAILED,
    EffectState.COMMITTED,
)


def view(status: Status = Status.RUNNING, **head: Any) -> RunView:
    """A run in a worker's hands, as rules read it."""
    made = Scene(effect(P), status=status).view
    return replace(made, head=replace(made.head, **head))


def among(*rows: EffectRow) -> dict[Any, EffectRow]:
    return {row.id: row for row in rows}


def broken(check: Callable[..., None], *args: Any) -> None:
    with pytest.raises(AssertionError):
        check(*args)


def test_a_checkpoint_that_is_taken_back_or_altered_is_found() -> None:
    check, now = invariants.a_checkpoint_comes_before_the_next_action, view()
    check(now, now)
    broken(check, now, view(checkpoint_seq=now.head.checkpoint_seq - 1))
    broken(check, now, view(checkpoint_digest=b"\x07" * 32))
    broken(check, now, view(head_seq=now.head.head_seq - 1))


@pytest.mark.parametrize("step", sorted(invariants.SILENT))
def test_a_call_that_silence_made_anything_but_unknown_is_found(step: str) -> None:
    check = invariants.every_call_is_under_a_permit_and_a_lost_one_is_unknown
    check(step, among(effect(I)), among(effect(U)))
    broken(check, step, among(effect(I)), among(effect(F)))
    broken(check, step, among(effect(I)), among(effect(C)))


def test_an_attempt_that_was_counted_without_going_into_flight_is_found() -> None:
    check = invariants.every_call_is_under_a_permit_and_a_lost_one_is_unknown
    broken(check, "settle", among(effect(I, attempt=1)), among(effect(U, attempt=2)))
    broken(check, "propose", {}, among(effect(I)))


@pytest.mark.parametrize(("was", "now"), [(U, I), (U, P), (C, U), (C, F), (F, C), (P, U), (P, C)])
def test_a_move_that_no_table_has_is_found(was: EffectState, now: EffectState) -> None:
    broken(invariants.unknown_is_never_resent, "any", among(effect(was)), among(effect(now)))


def test_a_failure_that_is_final_and_tried_again_or_says_no_why_is_found() -> None:
    check = invariants.unknown_is_never_resent
    check("permit", among(effect(F, cause="throttled")), among(effect(I, due_at=NOW)))
    broken(check, "permit", among(effect(F, cause="rejected")), among(effect(I, due_at=NOW)))
    broken(check, "settle", among(effect(I)), among(effect(F, cause="")))
    broken(check, "settle", among(effect(I)), among(effect(U, due_at=None)))
    broken(check, "any", among(effect(P)), among(effect(P, key="ra_another")))


def test_a_fence_that_falls_or_stays_where_an_ownership_ends_is_found() -> None:
    check, owned = invariants.resume_is_single_use, view()
    check("heartbeat", owned, owned)
    fence = owned.head.fence
    broken(check, "any", owned, view(fence_count=fence.count - 1))
    free = replace(view(Status.WAKING), lease=None)
    broken(check, "lapse", owned, free)
    risen = replace(free, head=replace(free.head, fence_count=fence.next().count))
    check("lapse", owned, risen)
    broken(check, "lapse", owned, replace(risen, lease=owned.lease))
    broken(check, "any", owned, replace(owned, lease=None))
    assert Fence(0, 1) != Fence(0, 2)


@pytest.mark.parametrize("status", [Status.WAITING, Status.BLOCKED, Status.WAKING, Status.READY, Status.RUNNING])
def test_a_state_without_a_way_out_is_found(status: Status) -> None:
    bare = replace(view(status), lease=None, clearance=None, wait=None, wake=None, handoff=None)
    broken(invariants.every_state_has_a_way_out, bare)


def test_an_ended_run_that_left_something_open_is_found() -> None:
    ended = replace(
        view(Status.COMPLETED, ended_at=NOW), lease=None, clearance=None, handoff=None, wait=None, wake=None
    )
    invariants.every_state_has_a_way_out(replace(ended, effects=[]))
    broken(invariants.every_state_has_a_way_out, replace(ended, effects=[effect(U)]))
    broken(invariants.every_state_has_a_way_out, replace(ended, effects=[], head=replace(ended.head, ended_at=None)))


def told(*fates: Fate) -> Outside:
    outside = Outside()
    for attempt, fate in enumerate(fates, 1):
        outside.send(Call(effect().key, attempt, fate, NOW + timedelta(minutes=1)))
    return outside


def test_what_was_done_twice_is_found() -> None:
    invariants.nothing_is_done_twice(told(Fate.LOST, Fate.APPLIED))
    broken(invariants.nothing_is_done_twice, told(Fate.APPLIED, Fate.APPLIED))
    late = told(Fate.DELAYED, Fate.APPLIED)
    late.arrive(late.under_way(NOW)[0])
    broken(invariants.nothing_is_done_twice, late)


def test_a_record_that_says_what_did_not_happen_is_found() -> None:
    check = invariants.the_record_says_what_happened
    check(among(effect(C)), told(Fate.APPLIED), NOW)
    check(among(effect(F)), told(Fate.LOST), NOW)
    check(among(effect(U)), told(Fate.APPLIED), NOW)
    broken(check, among(effect(C)), told(Fate.LOST), NOW)
    broken(check, among(effect(F)), told(Fate.APPLIED), NOW)
    broken(check, among(effect(F)), told(Fate.DELAYED), NOW)
    check(among(effect(F)), told(Fate.DELAYED), NOW + timedelta(minutes=1))
