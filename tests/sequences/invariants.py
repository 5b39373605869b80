"""The invariants of the record, each as a pure function over a run as it was before a step and as it is after it.

They are named after the list in `docs/ARCHITECTURE.md` and say nothing of how a step is carried out.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from ledger.domain.effects import RETRYABLE, EffectRow, EffectState
from ledger.domain.explain import explain
from ledger.domain.handoffs import HandoffState
from ledger.domain.runs import ENDED, ClearanceState, Status
from ledger.domain.views import RunView
from ledger.domain.waits import SetState
from ledger.domain.wakes import WakeState
from tests.sequences.outside import Outside

P, I, U, F, C, WD = (
    EffectState.PROPOSED,
    EffectState.IN_FLIGHT,
    EffectState.UNKNOWN,
    EffectState.FAILED,
    EffectState.COMMITTED,
    EffectState.WITHDRAWN,
)
WAYS: Mapping[EffectState, frozenset[EffectState]] = {
    P: frozenset({P, I, WD}),
    I: frozenset({I, C, F, U}),
    U: frozenset({U, C, F}),
    F: frozenset({F, I, U}),
    C: frozenset({C}),
    WD: frozenset({WD}),
}
SILENT = frozenset({"lapse", "answer_by", "wake", "release", "clock"})
"""Steps in which nobody says what happened to a call."""

Effects = Mapping[UUID, EffectRow]


def a_checkpoint_comes_before_the_next_action(before: RunView, after: RunView) -> None:
    """2. The next transition is exposed only with the checkpoint that names it; checkpoints only grow."""
    head, was = after.head, before.head
    assert head.checkpoint_seq >= was.checkpoint_seq and head.head_seq >= was.head_seq
    assert (head.checkpoint_seq == was.checkpoint_seq) == (head.checkpoint_digest == was.checkpoint_digest)
    if after.clearance is not None and head.status in (Status.RUNNING, Status.READY):
        assert after.clearance.instance_id == head.instance_id


def every_call_is_under_a_permit_and_a_lost_one_is_unknown(step: str, before: Effects, after: Effects) -> None:
    """3. An attempt is counted only into flight, and only somebody's word ends one as failed or committed."""
    for effect_id, effect in after.items():
        was = before.get(effect_id)
        if was is None:
            assert effect.state in (P, WD) and effect.attempt == 0
            continue
        assert effect.attempt - was.attempt == int(effect.state is I and was.state in (P, F)), (step, effect)
        if was.state is I and effect.state is not I and step in SILENT:
            assert effect.state is U, f"{step} made {effect.state} of a call in flight"


def unknown_is_never_resent(step: str, before: Effects, after: Effects) -> None:
    """4 and 5. Only moves of the table; final states stay; what failed says why, and is tried again only if it certainly didn't happen."""
    for effect_id, effect in after.items():
        if (was := before.get(effect_id)) is None:
            continue
        assert effect.state in WAYS[was.state], f"{step} moved an effect from {was.state} to {effect.state}"
        assert (effect.key, effect.name, effect.request_commitment) == (was.key, was.name, was.request_commitment)
        if was.state is F and effect.state is I:
            assert was.cause in RETRYABLE
    for effect in after.values():
        assert bool(effect.cause) == (effect.state in (F, WD))
        assert effect.due_at is not None or effect.state not in (I, U), "nobody will ask"


def resume_is_single_use(step: str, before: RunView, after: RunView) -> None:
    """6. The fence never falls, and rises whenever ownership begins or ends."""
    was, now = before.head.fence, after.head.fence
    assert (now.epoch, now.count) >= (was.epoch, was.count)
    owned = before.head.status is Status.RUNNING, after.head.status is Status.RUNNING
    if owned[0] != owned[1] or (all(owned) and before.lease != after.lease and step == "claim"):
        assert now != was, f"{step} began or ended an ownership under the same fence"
    if owned[1]:
        assert after.lease is not None and after.lease.active
        assert (after.lease.fence_epoch, after.lease.fence_count) == (now.epoch, now.count)
    else:
        assert after.lease is None or not after.lease.active


def every_state_has_a_way_out(view: RunView) -> None:
    """9. A deadline or an owner, and one sentence that says why it isn't moving."""
    head = view.head
    if head.status is Status.WAITING:
        assert view.wait is not None and view.wait.state is SetState.OPEN and view.wait.due_at <= view.wait.deadline
    elif head.status is Status.BLOCKED:
        assert view.handoff is not None and view.handoff.state in (HandoffState.OPEN, HandoffState.ACCEPTED)
    elif head.status is Status.WAKING:
        assert view.wake is not None and view.wake.state in (WakeState.QUEUED, WakeState.CHECKING)
    elif head.status is Status.READY:
        assert view.clearance is not None and view.clearance.state is ClearanceState.LIVE
    elif head.status is Status.RUNNING:
        assert view.lease is not None and view.lease.active
    else:
        assert head.status in ENDED and head.ended_at is not None and view.wait is None
        assert not [effect for effect in view.effects if effect.state in (P, I, U)]
    assert (view.handoff is None) == (head.status is not Status.BLOCKED)
    told = explain(view)
    assert told.sentence and told.items and told.sentence[-1] in ".;"
    assert "verify this run" not in told.sentence, told.sentence


def nothing_is_done_twice(outside: Outside) -> None:
    """4, seen from outside: the target acted once at most under each key, whoever died or lied in between."""
    assert not [key for key, count in outside.changes.items() if count > 1], "done twice"


def the_record_says_what_happened(effects: Effects, outside: Outside, now: datetime) -> None:
    """3 and 5, seen from outside: committed was done once; failed was not done, and can't be any more."""
    for effect in effects.values():
        done = outside.changes[effect.key]
        if effect.state is C:
            assert done == 1, f"{effect.name} is committed and was done {done} times"
        if effect.state in (F, P, WD):
            assert not done, f"{effect.name} is {effect.state} and was done"
            assert effect.state is not F or not outside.under_way(now, effect.key), "failed, and it may still arrive"
