"""Permits: leave for one attempt, written before the call. No clock, no I/O."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from ledger.domain import authority, runs, wakes
from ledger.domain.drafts import Draft
from ledger.domain.effects.base import (
    MACHINE,
    RETRYABLE,
    EffectRow,
    EffectState,
    FailCause,
    PermitRow,
    ReportKind,
    ReportRow,
    TargetRow,
    move,
    subject_digest,
    subject_of,
)
from ledger.domain.effects.proposals import SeenVersion, check_accounted, observe
from ledger.domain.errors import LedgerError
from ledger.domain.handoffs import open_handoff
from ledger.domain.runs import Fence, Intent, LeaseRow, check_fence

if TYPE_CHECKING:
    from ledger.domain.views import RunView

INCURABLE = frozenset({"changed", "forbidden", "policy-denies", "grant-missing", "grant-void", "expired"})
"""Refusals that the holder can do nothing about: the run goes back to waking in the same transaction."""


@dataclass(frozen=True, slots=True)
class PermitAsk:
    """What a permit is decided from beside the run's view: earlier permits of the effect, newest first; the newest observation of its resource, and
    whether that was made for this very call; how long a permit may wait to be sent; the key behind the call; what the people's side says against the
    votes behind the grant; who behind the run is no longer active ('' when all are); what counted last of all that was said of the effect; the key's
    scopes; which of the fields that matter have moved in the observation, None where the target names none."""

    fence: Fence
    permits: Sequence[PermitRow]
    seen: SeenVersion | None
    seen_now: bool
    send_within: timedelta
    key_id: UUID | None
    doubt: str = ""
    inactive: str = ""
    last_word: ReportRow | None = None
    scopes: Collection[str] = ()
    moved: Sequence[str] | None = None


def permit(draft: Draft, view: RunView, effect: EffectRow, ask: PermitAsk) -> tuple[EffectRow, PermitRow, bool]:
    """Give leave for the next attempt, or hand out the same leave again. Answers effect, permit, and whether it is new.

    Order of checks: fence; replay; lease; identity; intent; state; clearance; accounting; retention; the subject's integrity; policy; grant;
    observation. Raises LedgerError; those in `INCURABLE` are followed by `send_to_wake`.
    """
    check_fence(view.head, ask.fence)
    again = _replayed(view, effect, ask)
    if again is not None:
        return effect, again, False
    lease = _lease(view, ask.fence)
    if ask.inactive:
        raise LedgerError(
            "forbidden",
            f"the {ask.inactive} behind this run is no longer active",
            "Stop: the run's wake hands it to a person.",
        )
    if view.head.intent is not Intent.NONE:
        raise LedgerError(
            "not-cleared",
            f"the run is being ended as asked ({view.head.intent})",
            "Stop; commit or release the run.",
            intent=str(view.head.intent),
        )
    MACHINE.step(effect.state, "permit")
    target = view.targets[effect.target_id]
    _check_cleared(view, effect, target)
    check_accounted(view, effect)
    _check_retry(draft, effect, target, ask.last_word)
    _check_subject(effect, target, draft.stream.salt)
    grant_id = _authority(draft, view, effect, ask.doubt)
    _check_observed(draft, view, effect, target, ask)
    draft.before(lease.expires_at)
    return _write(draft, view, effect, target, lease, ask, grant_id)


def _replayed(view: RunView, effect: EffectRow, ask: PermitAsk) -> PermitRow | None:
    last = ask.permits[0] if ask.permits else None
    if effect.state is not EffectState.IN_FLIGHT or effect.accepted or last is None or last.fence != ask.fence:
        return None
    if view.now >= last.send_by:
        raise LedgerError(
            "send-by-passed",
            "this permit's send-by has passed",
            "Don't send. Settle as not_dispatched if nothing was sent, as unknown if you can't tell.",
            send_by=last.send_by.isoformat(),
            attempt=last.attempt,
        )
    return last


def _lease(view: RunView, fence: Fence) -> LeaseRow:
    lease = view.lease
    held = lease is not None and lease.active and Fence(lease.fence_epoch, lease.fence_count) == fence
    if lease is None or not held or lease.expires_at <= view.now:
        raise LedgerError(
            "lease-expired", "your lease on the run has expired", "Stop; settle what you sent; claim again for more."
        )
    return lease


def _check_cleared(view: RunView, effect: EffectRow, target: TargetRow) -> None:
    clearance = view.clearance
    if clearance is None or effect.instance_id != clearance.instance_id:
        raise LedgerError(
            "not-cleared",
            "the run has no clearance for the transition that this effect belongs to",
            "Commit the transition and claim the run again.",
        )
    if target.name not in clearance.targets:
        raise LedgerError(
            "not-cleared",
            f"the transition {clearance.transition} may not act on the target {target.name}",
            "Go on to a transition that names this target.",
            targets=list(clearance.targets),
        )
    if clearance.tools and effect.tool not in clearance.tools:
        raise LedgerError(
            "tool-not-allowed",
            f"the transition {clearance.transition} may not use this tool",
            "Go on to a transition that names this tool.",
            tools=list(clearance.tools),
        )


def barred(effect: EffectRow, target: TargetRow, at: datetime, last_word: ReportRow | None) -> str:
    """Why only a person may have this effect tried again: `no_keys`, `key_forgotten`, or '' where it may be.

    A person who saw that the last attempt did nothing, and said so, gives leave for one more, and for no other after it.
    """
    if effect.state is not EffectState.FAILED or allows_another(effect, last_word):
        return ""
    if effect.cause == FailCause.CONFIRMED_ABSENT and not target.keyed:
        return "no_keys"
    return "key_forgotten" if forgotten(effect, target, at) else ""


def allows_another(effect: EffectRow, last_word: ReportRow | None) -> bool:
    """Is the last that counted about this effect a person's word that its last attempt did nothing?"""
    return (
        last_word is not None
        and last_word.kind is ReportKind.VERDICT
        and last_word.cause == FailCause.CONFIRMED_ABSENT
        and last_word.attempt == effect.attempt
    )


def forgotten(effect: EffectRow, target: TargetRow, at: datetime) -> bool:
    """May the target no longer know the key of this effect?"""
    return target.keyed and effect.first_permit_at is not None and at >= effect.first_permit_at + target.remembers_for


def _check_retry(draft: Draft, effect: EffectRow, target: TargetRow, last_word: ReportRow | None) -> None:
    """A failed effect is tried again only for a cause that says it didn't happen, and only while the target remembers its key, or where a person
    said that it may be."""
    if effect.state is not EffectState.FAILED:
        return
    if effect.disputed:
        raise LedgerError(
            "wrong-state",
            "it is disputed whether this effect failed",
            "Give the run back: a person says which account holds.",
            cause=effect.cause,
        )
    if effect.cause not in RETRYABLE:
        raise LedgerError(
            "wrong-state",
            f"the target refused this effect for good ({effect.cause})",
            "Propose a corrected effect under another name.",
            state=str(effect.state),
            cause=effect.cause,
        )
    why = barred(effect, target, draft.at, last_word)
    if why == "no_keys":
        raise LedgerError(
            "wrong-state",
            "this target knows no keys: a person decides whether to do it again",
            "Give the run back: a person says on the Reconcile page whether it may be done once more.",
            cause=effect.cause,
        )
    if why:
        raise LedgerError(
            "expired",
            "the target no longer remembers this effect's key: a repeat might act twice",
            "Give the run back: somebody has to look at the target, and say on the Reconcile page what they found.",
            until=_known_until(effect, target).isoformat(),
        )
    if target.keyed and not forgotten(effect, target, draft.at):
        draft.before(_known_until(effect, target))


def _known_until(effect: EffectRow, target: TargetRow) -> datetime:
    return (effect.first_permit_at or effect.proposed_at) + target.remembers_for


def _check_subject(effect: EffectRow, target: TargetRow, salt: bytes | None) -> None:
    # Under an erased salt no digest is bound to the texts, and whatever stands there now would fit.
    if salt is None or subject_digest(subject_of(effect, target), salt) != bytes(effect.subject_digest):
        raise LedgerError(
            "integrity", "the effect's row doesn't fit its digest", "Verify the run before anything else is done."
        )


def _authority(draft: Draft, view: RunView, effect: EffectRow, doubt: str) -> UUID | None:
    needs = authority.requirement(view.policy, effect.tool, view.targets[effect.target_id].name)
    grant = authority.use_grant(draft, view, effect, needs, doubt)
    return grant.id if grant is not None else None


def _check_observed(draft: Draft, view: RunView, effect: EffectRow, target: TargetRow, ask: PermitAsk) -> None:
    """The resource must have been seen within the target's freshness, as it was when the effect was proposed: in all that matters of it, where its
    target says what does."""
    if not effect.observed_version:
        return
    seen = ask.seen
    if seen is None or seen.outlived(target) or seen.at + timedelta(seconds=target.freshness) <= draft.at:
        raise LedgerError(
            "observation-due",
            f"the target {target.name} wasn't asked for the resource's version within {target.freshness} s, as it is registered now",
            "Ask again: the target is asked first.",
        )
    if seen.version != effect.observed_version and (ask.moved is None or ask.moved):
        raise LedgerError(
            "changed",
            "the target's resource has another version than the one the effect was proposed on",
            "Claim the run again: its wake decides what the change means.",
            recorded=effect.observed_version,
            observed=seen.version,
            fields=list(ask.moved or ()),
        )
    draft.before(seen.at + timedelta(seconds=target.freshness))
    if ask.seen_now:
        observe(draft, view, seen)


def _write(
    draft: Draft,
    view: RunView,
    effect: EffectRow,
    target: TargetRow,
    lease: LeaseRow,
    ask: PermitAsk,
    grant_id: UUID | None,
) -> tuple[EffectRow, PermitRow, bool]:
    send_by: datetime = min(draft.at + ask.send_within, lease.expires_at)
    given = PermitRow(
        id=draft.mint(),
        effect_id=effect.id,
        attempt=effect.attempt + 1,
        fence_epoch=ask.fence.epoch,
        fence_count=ask.fence.count,
        precondition=ask.seen.version if ask.seen is not None and effect.observed_version else "",
        send_by=send_by,
        answer_by=send_by + timedelta(seconds=target.call_limit),
    )
    draft.insert(
        "permit",
        run_id=effect.run_id,
        worker_id=lease.worker_id,
        key_id=ask.key_id or lease.key_id,
        scopes=sorted(str(scope) for scope in ask.scopes),
        lease_until=lease.expires_at,
        clearance_id=view.head.clearance_id,
        grant_id=grant_id,
        policy_id=view.policy.id if view.policy else None,
        policy_seq=view.tenant_seq,
        permitted_at=draft.at,
        **{field: getattr(given, field) for field in PermitRow.__dataclass_fields__},
    )
    moved = move(
        draft,
        effect,
        state=EffectState.IN_FLIGHT,
        cause="",
        accepted=False,
        attempt=given.attempt,
        accounted_count=view.head.fence_count,
        due_at=given.answer_by,
        answer_by=given.answer_by,
        looks=0,
        first_permit_at=_first(effect, target, draft.at),
        held="",
        settled_at=None,
    )
    return moved, given, True


def _first(effect: EffectRow, target: TargetRow, at: datetime) -> datetime:
    """From when on the target knows the key: from the first attempt, or from this one where that is forgotten."""
    return at if effect.first_permit_at is None or forgotten(effect, target, at) else effect.first_permit_at


def callable_next(view: RunView) -> list[EffectRow]:
    """The effects of the run that may be called next: those proposed, and those of its present transition that failed and can be tried again."""
    present = view.head.instance_id
    return [
        effect
        for effect in view.effects
        if effect.state is EffectState.PROPOSED
        or (
            effect.state is EffectState.FAILED
            and effect.cause in RETRYABLE
            and effect.instance_id == present
            and not effect.disputed
        )
    ]


def calls_out(view: RunView) -> bool:
    """Is a call of this run under way, so that its ownership can't be ended from here?"""
    return any(effect.state is EffectState.IN_FLIGHT and not effect.accepted for effect in view.effects)


def send_to_wake(draft: Draft, view: RunView, effect: EffectRow, refusal: LedgerError, ask: PermitAsk) -> None:
    """A permit was refused for good: the run wakes again, so that its conditions are looked at anew; ever more slowly, and at last by a person."""
    if ask.seen is not None and ask.seen_now:
        observe(draft, view, ask.seen)
    runs.end_ownership(draft, view)
    claims = view.head.claims_since_commit
    if claims >= runs.RELEASES_BEFORE_STUCK:
        runs.to_status(draft, view, "permit_refused", runs.Status.BLOCKED)
        open_handoff(draft, view, "no-progress", effect_id=effect.id)
        return
    runs.to_status(draft, view, "permit_refused", runs.Status.WAKING)
    wakes.queue(draft, view, f"permit_refused:{refusal.code}", draft.at + runs.comes_round_after(claims))
