"""Who works on a run: claim, release, lapse. The fence changes whenever ownership begins or ends. No clock, no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from ledger.domain import effects, handoffs, wakes
from ledger.domain.drafts import Draft
from ledger.domain.effects import EffectState
from ledger.domain.errors import LedgerError
from ledger.domain.runs import (
    CLAIMS_BEFORE_POISONED,
    RELEASES_BEFORE_STUCK,
    ClearanceRow,
    ClearanceState,
    Fence,
    Head,
    LeaseRow,
    Status,
    check_fence,
    close_clearance,
    comes_round_after,
    end_ownership,
    to_status,
)
from ledger.domain.views import RunView


@dataclass(frozen=True, slots=True)
class Offer:
    """What a worker process offers: `versions` by workflow name, in its order of preference; `seconds` is the length of its leases."""

    worker_id: UUID
    name: str
    code_digest: str
    versions: Mapping[str, tuple[str, ...]]
    limit: int
    seconds: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """A ready run, as a claimer sees it."""

    workflow: str
    head: Head
    clearance: ClearanceRow
    lease: LeaseRow | None


def fitting_version(candidate: Candidate, offer: Offer) -> str | None:
    """The offered version that the clearance accepts, or None."""
    offered = offer.versions.get(candidate.workflow, ())
    return next((version for version in offered if version in candidate.clearance.versions), None)


@dataclass(frozen=True, slots=True)
class Claimer:
    """Who takes a run: the worker process, its key, and the agent behind the key."""

    worker_id: UUID
    key_id: UUID
    agent_id: UUID | None


def claim(draft: Draft, candidate: Candidate, version: str, by: Claimer, seconds: int) -> Fence:
    """Begin ownership: ready → running under a new fence, with the clearance used up. Only before the clearance ends."""
    head = candidate.head
    if head.status is not Status.READY or candidate.clearance.state is not ClearanceState.LIVE:
        raise LedgerError(
            "not-cleared",
            f"the run is {head.status} and can't be claimed",
            "Claim another one.",
            state=str(head.status),
        )
    fence = head.fence.next()
    draft.before(candidate.clearance.valid_until)
    draft.head(
        status=Status.RUNNING,
        moved_at=draft.at,
        fence_epoch=fence.epoch,
        fence_count=fence.count,
        claims_since_commit=head.claims_since_commit + 1,
    )
    draft.move("clearance", candidate.clearance.id, {"state": ClearanceState.LIVE}, state=ClearanceState.USED)
    held = {
        "worker_id": by.worker_id,
        "key_id": by.key_id,
        "fence_epoch": fence.epoch,
        "fence_count": fence.count,
        "version": version,
        "agents": _holders(candidate.lease, by.agent_id),
        "seconds": seconds,
        "active": True,
        "claimed_at": draft.at,
        "expires_at": draft.at + timedelta(seconds=seconds),
        "beaten_at": draft.at,
    }
    if candidate.lease is None:
        draft.insert("lease", run_id=head.run_id, **held)
    else:
        draft.move("lease", head.run_id, {"active": False}, **held)
    return fence


def _holders(lease: LeaseRow | None, agent_id: UUID | None) -> list[str]:
    before = lease.agents if lease is not None else ()
    return list(dict.fromkeys([*before, *([str(agent_id)] if agent_id else [])]))


def refuse_stale_clearance(draft: Draft, view: RunView) -> None:
    """A clearance past its time is no leave: the run wakes again before anyone may claim it."""
    close_clearance(draft, view, ClearanceState.STALE)
    to_status(draft, view, "claim", Status.WAKING)
    wakes.queue(draft, view, "clearance_stale")


def no_permit_out(view: RunView) -> None:
    """A run with a call out isn't given back, doesn't wait and doesn't end. Raises LedgerError `permit-out`."""
    out = [effect for effect in view.effects if effect.state is EffectState.IN_FLIGHT and not effect.accepted]
    if out:
        raise LedgerError(
            "permit-out",
            f"the effect {out[0].name} is permitted and not settled",
            "Settle it with what your call answered; if you don't know, settle it as unknown.",
            effects=[str(effect.id) for effect in out],
        )


def release(draft: Draft, view: RunView, fence: Fence) -> None:
    """The holder gives the run back. Refused while a permit is out. Raises LedgerError."""
    check_fence(view.head, fence)
    no_permit_out(view)
    _back_to_waking(draft, view, "release", "released")


def lapse(draft: Draft, view: RunView) -> bool:
    """The lease ran out: ownership ends and every call that was permitted becomes unknown. False when there is nothing to lapse."""
    lease = view.lease
    if lease is None or not lease.active or lease.expires_at > view.now:
        return False
    # A heartbeat that came between the reading and the lock keeps the lease: then its row isn't as read.
    draft.move("lease", view.run.id, {"active": True, "expires_at": lease.expires_at}, active=False)
    effects.lapse_effects(draft, view)
    _back_to_waking(draft, view, "lapse", "lapsed")
    return True


def _back_to_waking(draft: Draft, view: RunView, event: str, reason: str) -> None:
    end_ownership(draft, view)
    claims = view.head.claims_since_commit
    poison = "poisoned" if event == "lapse" and claims >= CLAIMS_BEFORE_POISONED else ""
    stuck = "no-progress" if event == "release" and claims >= RELEASES_BEFORE_STUCK else ""
    if poison or stuck:
        to_status(draft, view, event, Status.BLOCKED)
        handoffs.open_handoff(draft, view, poison or stuck)
        return
    to_status(draft, view, event, Status.WAKING)
    # A run that is given back again and again without a commit comes round ever more slowly.
    pause = comes_round_after(claims) if event == "release" else timedelta(0)
    wakes.queue(draft, view, reason, draft.at + pause)
