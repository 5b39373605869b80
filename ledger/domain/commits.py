"""Commit a transition: the checkpoint before the next action, with its effects, its wait and what comes next. No clock, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from ledger.domain import effects, waits, wakes
from ledger.domain.authority import void_grant
from ledger.domain.canonical import Body
from ledger.domain.checkpoints import CheckpointFields, CheckpointKind, insert_checkpoint
from ledger.domain.drafts import Draft
from ledger.domain.effects import EffectRow, EffectState
from ledger.domain.errors import LedgerError
from ledger.domain.leases import no_permit_out
from ledger.domain.runs import (
    ClearanceState,
    Cleared,
    Fence,
    Status,
    check_fence,
    clear,
    end_ownership,
    leave_instance,
    open_instance,
    to_status,
)
from ledger.domain.views import RunView
from ledger.domain.waits import WaitSpec

Ask = waits.Ask
"""Ask people for leave for an effect, to be decided by a time. Answers the outcome where policy already decides, else ''."""
Withdraw = Callable[[str], None]


def proposed(view: RunView) -> list[EffectRow]:
    """Effects that wait for a permit."""
    return [effect for effect in view.effects if effect.state is EffectState.PROPOSED]


class NextKind(StrEnum):
    GO_ON = "go_on"
    GIVE_BACK = "give_back"
    WAIT = "wait"
    COMPLETE = "complete"
    FAIL = "fail"


ENDS = frozenset({NextKind.COMPLETE, NextKind.FAIL})


@dataclass(frozen=True, slots=True)
class Next:
    """What the agent wants after this checkpoint. `transition` is needed unless the run ends; `wait` for kind `wait`; `reason` is why it
    ends."""

    kind: NextKind
    transition: str = ""
    wait: WaitSpec | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit as parsed and validated: `state` fits the holder's schema; `version` is what the caller says it claimed with, `note` why it
    ends the run."""

    fence: Fence
    expect_seq: int
    code_version: str
    next: Next
    state: Body
    idempotency_key: str
    request_commitment: bytes
    version: str = ""
    note: Body | None = None


def check(view: RunView, commit: Commit) -> None:
    """Refuse a commit that isn't the holder's next one. Raises LedgerError `stale-fence`, `wrong-sequence`, `invalid`."""
    check_fence(view.head, commit.fence)
    if view.head.checkpoint_seq != commit.expect_seq:
        raise LedgerError(
            "wrong-sequence",
            f"the last checkpoint is {view.head.checkpoint_seq}; you expected {commit.expect_seq}",
            "Read the run's checkpoints: somebody or an earlier call of yours has committed.",
            seq=view.head.checkpoint_seq,
        )
    if commit.version and view.holder is not None and commit.version != view.holder.version:
        raise LedgerError(
            "invalid",
            f"you claimed this run with version {view.holder.version}, not {commit.version[:40]!r}",
            "Commit with the version that you claimed with.",
            version=view.holder.version,
        )
    if commit.next.kind in ENDS:
        return
    if view.holder is None or not view.holder.declares(commit.next.transition):
        raise LedgerError(
            "invalid",
            f"the transition {commit.next.transition[:80]!r} isn't declared by version {view.holder.version if view.holder else '?'}",
            "Name a transition of the version that you claimed with.",
        )
    if commit.next.kind is NextKind.WAIT and commit.next.wait is None:
        raise LedgerError(
            "invalid", "a commit that waits needs a wait", "Send next.wait with members, deadline and on_deadline."
        )


def write(draft: Draft, view: RunView, commit: Commit, ask: Ask, withdraw: Withdraw) -> None:
    """Write the checkpoint and go where `next` says. `view` has the proposals, settles and withdrawals of the same commit in it."""
    if commit.next.kind not in ENDS and commit.next.kind is not NextKind.GO_ON:
        no_permit_out(view)
    seq = view.head.checkpoint_seq + 1
    instance_id = _instance(draft, view, commit, seq)
    insert_checkpoint(
        draft,
        CheckpointFields(
            run_id=view.run.id,
            seq=seq,
            kind=CheckpointKind.END if commit.next.kind in ENDS else CheckpointKind.COMMIT,
            previous_digest=view.head.checkpoint_digest,
            last_transition=view.head.transition,
            next_transition=commit.next.transition,
            instance_id=instance_id,
            version=view.holder.version if view.holder else view.head.version,
            code_version=commit.code_version,
            fence=commit.fence,
            state_commitment=commit.state.commitment,
        ),
        state_id=commit.state.id,
        idempotency_key=commit.idempotency_key,
        request_commitment=commit.request_commitment,
        note_id=commit.note.id if commit.note else None,
    )
    draft.body(commit.state)
    if commit.note is not None:
        draft.body(commit.note)
    draft.head(claims_since_commit=0)
    _NEXT[commit.next.kind](draft, view, commit, ask, withdraw, instance_id)


def _instance(draft: Draft, view: RunView, commit: Commit, seq: int) -> UUID:
    """Ending leaves the last instance as it is; everything else opens the next one and hands it what is proposed."""
    leave_instance(draft, view)
    if commit.next.kind in ENDS:
        return view.head.instance_id
    instance_id = open_instance(draft, view.run.id, commit.next.transition, seq)
    _end_leave(draft, view, {effect.id for effect in effects.hand_over(draft, view, instance_id)})
    draft.head(asks=0)
    return instance_id


def _end_leave(draft: Draft, view: RunView, kept: Collection[UUID]) -> None:
    """Leave for calls that stay behind with their instance ends with it: nothing is permitted there any more."""
    for grant in view.grants:
        effect = view.effect(grant.subject_id)
        withdrawn = effect is not None and effect.state is EffectState.WITHDRAWN
        if grant.subject_id not in kept and not withdrawn:
            void_grant(draft, grant, "left_behind")


def _go_on(draft: Draft, view: RunView, commit: Commit, ask: Ask, withdraw: Withdraw, instance_id: UUID) -> None:
    holder = view.holder
    targets = holder.targets(commit.next.transition) if holder else ["?"]
    if holder is None or targets or proposed(view) or effects.disputes(view):
        no_permit_out(view)
        end_ownership(draft, view)
        to_status(draft, view, "go_on", Status.WAKING)
        wakes.queue(draft, view, "committed")
        return
    to_status(draft, view, "go_on", Status.RUNNING)
    cleared = Cleared(
        commit.next.transition, instance_id, (holder.version,), (), tuple(holder.tools(commit.next.transition))
    )
    clear(draft, view.run.id, cleared, ClearanceState.USED)


def _give_back(draft: Draft, view: RunView, commit: Commit, ask: Ask, withdraw: Withdraw, instance_id: UUID) -> None:
    end_ownership(draft, view)
    to_status(draft, view, "give_back", Status.WAKING)
    wakes.queue(draft, view, "given_back")


def _wait(draft: Draft, view: RunView, commit: Commit, ask: Ask, withdraw: Withdraw, instance_id: UUID) -> None:
    if commit.next.wait is None:
        raise ValueError("check() lets no wait without its specification pass")
    named = view.by_name()
    effects.check_known(view, [named[member.effect] for member in commit.next.wait.members if member.effect in named])
    end_ownership(draft, view)
    to_status(draft, view, "wait", Status.WAITING)
    waits.open_set(draft, view, commit.next.wait, named, ask)


def _end(draft: Draft, view: RunView, commit: Commit, ask: Ask, withdraw: Withdraw, instance_id: UUID) -> None:
    effects.check_closed(view)
    left = proposed(view)
    for effect in left:
        effects.withdraw(draft, view, effect, effects.WithdrawCause.SUPERSEDED)
    for grant in view.grants:
        if grant.subject_id not in {effect.id for effect in left}:
            void_grant(draft, grant, "superseded")
    withdraw("superseded")
    end_ownership(draft, view)
    to_status(draft, view, "complete" if commit.next.kind is NextKind.COMPLETE else "fail")


_NEXT = {
    NextKind.GO_ON: _go_on,
    NextKind.GIVE_BACK: _give_back,
    NextKind.WAIT: _wait,
    NextKind.COMPLETE: _end,
    NextKind.FAIL: _end,
}
