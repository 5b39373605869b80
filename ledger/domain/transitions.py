"""What each wake decision opens: clearance, another instance, a wait of the engine's own, an end, a handoff. No clock, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from ledger.domain import effects, handoffs, runs, waits, wakes
from ledger.domain.authority import void_grant
from ledger.domain.canonical import digest
from ledger.domain.checkpoints import CheckpointFields, CheckpointKind, insert_checkpoint
from ledger.domain.decisions import LONGEST_BACK_OFF, Decided, Facts, back_off
from ledger.domain.drafts import Draft
from ledger.domain.effects import OPEN, Done, EffectRow, EffectState, SeenVersion, WithdrawCause
from ledger.domain.runs import ClearanceState, Cleared, Intent, Status
from ledger.domain.views import RunView
from ledger.domain.waits import Asked, Internal, MemberKind, MemberSpec, OnDeadline, Outcome, SetMode, WaitSpec
from ledger.domain.wakes import RULE_VERSION, Answer, Check, DecisionKind, WakeRow, WakeState

Ask = Callable[[EffectRow, datetime, str], Asked]
"""Ask for leave for an effect: by when at the latest, and why it is asked again."""

Withdraw = Callable[[str], None]
"""Withdraw what is still asked for the run, with the cause."""

RECONCILED_WITHIN = timedelta(hours=24)
ASKED_FOR = timedelta(days=7)
MACHINE_DECISION = "decide"
OF_OUTCOMES = frozenset({"retry", "dispute", "deadline"})
"""Checks of what became of one effect: a handoff for them is about it, and is over when that is known."""

CAUSES: Mapping[str, WithdrawCause] = {
    Outcome.DENIED: WithdrawCause.DENIED,
    Outcome.DENIED_BY_POLICY: WithdrawCause.DENIED,
    Outcome.EXPIRED: WithdrawCause.EXPIRED,
    Outcome.WITHDRAWN: WithdrawCause.SUPERSEDED,
}


@dataclass(frozen=True, slots=True)
class Gathered:
    """What a wake found, before anything is locked: good only while head and tenant are as they were then.

    By effect: `ask` why it is asked for again, `refused` the outcome that its request had, `sightings` what its target looks like.
    """

    wake_id: UUID
    attempt: int
    view: RunView
    checks: tuple[Check, ...]
    facts: Facts
    versions: tuple[str, ...]
    ask: Mapping[UUID, str]
    refused: Mapping[UUID, str]
    sightings: Mapping[UUID, SeenVersion]
    checkpoint: CheckpointFields | None
    state_id: UUID | None
    on_deadline: OnDeadline
    deadline: datetime | None = None

    @property
    def head_seq(self) -> int:
        return self.view.head.head_seq

    @property
    def tenant_seq(self) -> int:
        return self.view.tenant_seq

    def digest(self) -> bytes:
        """SHA-256 over everything that the decision was made of, texts as the journal has them: commitments under the salt of the run's stream."""
        return digest(
            "wake-facts/2",
            {
                "head_seq": self.head_seq,
                "tenant_seq": self.tenant_seq,
                "checks": [wakes.hashed(check, self.view.head.salt) for check in self.checks],
                "intent": str(self.facts.intent),
                "on_conflict": [self.facts.on_conflict, self.facts.replan_to],
                "asks": self.facts.asks,
                "retries": self.facts.retries,
                "replans": self.facts.replans,
                "versions": list(self.versions),
            },
        )


def never_finished(view: RunView, wake: WakeRow) -> Gathered:
    """All that is known of a wake whose facts can't be gathered: that it was tried often enough."""
    tried = Check("attempts", Answer.FAIL, "never_finished", str(wakes.ATTEMPTS), str(wake.attempt))
    return Gathered(
        wake_id=wake.id,
        attempt=wake.attempt,
        view=view,
        checks=(tried,),
        facts=Facts(view.head.intent, "hand_off", "", view.head.asks, 0),
        versions=(),
        ask={},
        refused={},
        sightings={},
        checkpoint=None,
        state_id=None,
        on_deadline=OnDeadline.HAND_OFF,
    )


@dataclass(frozen=True, slots=True)
class Opening:
    """One decision at hand, with what it needs of the people's side."""

    draft: Draft
    view: RunView
    gathered: Gathered
    decided: Decided
    decision_id: UUID
    ask: Ask
    withdraw: Withdraw
    done: Sequence[Done]


def apply(
    draft: Draft,
    view: RunView,
    gathered: Gathered,
    decided: Decided,
    ask: Ask,
    withdraw: Withdraw,
    done: Sequence[Done] = (),
) -> UUID:
    """Write the decision with every check, close the wake, and open what the decision opens. Answers the decision's id.

    `done` is what was called under the plan that a replan leaves.
    """
    decision_id = draft.mint()
    _record(draft, view, gathered, decided, decision_id)
    seen = _sightings(draft, view, gathered)
    opening = Opening(draft, view, gathered, decided, decision_id, ask, withdraw, done)
    _OPENS[decided.decision](opening, seen)
    return decision_id


def _record(draft: Draft, view: RunView, gathered: Gathered, decided: Decided, decision_id: UUID) -> None:
    draft.insert(
        "decision",
        id=decision_id,
        run_id=view.run.id,
        wake_id=gathered.wake_id,
        decision=decided.decision,
        reasons=list(decided.reasons),
        rule_version=RULE_VERSION,
        facts_digest=gathered.digest(),
        transition=view.head.transition,
        instance_id=view.head.instance_id,
        decided_at=draft.at,
    )
    for ordinal, check in enumerate(map(wakes.kept, gathered.checks)):
        draft.insert(
            "wake_check",
            id=draft.mint(),
            run_id=view.run.id,
            decision_id=decision_id,
            ordinal=ordinal,
            name=check.name,
            subject=check.subject,
            answer=check.answer,
            reason=check.reason,
            recorded=check.recorded,
            observed=check.observed,
        )
    draft.move(
        "wake",
        gathered.wake_id,
        {"state": WakeState.CHECKING, "attempt": gathered.attempt},
        state=wakes.MACHINE.step(WakeState.CHECKING, "decide"),
        decision_id=decision_id,
        until=None,
        closed_at=draft.at,
    )


def _sightings(draft: Draft, view: RunView, gathered: Gathered) -> dict[UUID, UUID]:
    """Store what was seen with the decision. Answers the observation of each effect."""
    return {effect_id: effects.observe(draft, view, seen) for effect_id, seen in gathered.sightings.items()}


def _proposed(view: RunView) -> list[EffectRow]:
    return [effect for effect in view.effects if effect.state is EffectState.PROPOSED]


def _ready(opening: Opening, seen: Mapping[UUID, UUID]) -> None:
    """The present transition goes on: a clearance, and what was refused is withdrawn with its own cause."""
    draft, view, gathered = opening.draft, opening.view, opening.gathered
    for effect in _proposed(view):
        if outcome := gathered.refused.get(effect.id):
            effects.withdraw(draft, view, effect, CAUSES[outcome])
    opening.withdraw("wait_closed")
    version = view.version
    cleared = Cleared(
        view.head.transition,
        view.head.instance_id,
        gathered.versions,
        tuple(version.targets(view.head.transition)) if version else (),
        tuple(version.tools(view.head.transition)) if version else (),
    )
    runs.to_status(draft, view, MACHINE_DECISION, Status.READY)
    runs.clear(draft, view.run.id, cleared, ClearanceState.LIVE, opening.decision_id)


def _replan(opening: Opening, seen: Mapping[UUID, UUID]) -> None:
    """The world moved under the transition: what it proposed is withdrawn, and the declared one opens on the same state. What was called under the
    old plan goes along, under its names and keys."""
    draft, view, gathered = opening.draft, opening.view, opening.gathered
    last, version = gathered.checkpoint, view.version
    if last is None or gathered.state_id is None or version is None:
        raise ValueError("a run without a whole checkpoint is handed off, never replanned")
    for effect in _proposed(view):
        effects.withdraw(draft, view, effect, WithdrawCause.SUPERSEDED)
    _void(draft, view, "superseded")
    opening.withdraw("superseded")
    runs.leave_instance(draft, view)
    to = gathered.facts.replan_to
    seq = view.head.checkpoint_seq + 1
    instance_id = runs.open_instance(draft, view.run.id, to, seq)
    effects.carry(draft, opening.done, instance_id)
    fields = replace(
        last,
        seq=seq,
        kind=CheckpointKind.REPLAN,
        previous_digest=view.head.checkpoint_digest,
        last_transition=view.head.transition,
        next_transition=to,
        instance_id=instance_id,
        fence=view.head.fence,
    )
    insert_checkpoint(draft, fields, state_id=gathered.state_id)
    draft.head(asks=0)
    cleared = Cleared(to, instance_id, gathered.versions, tuple(version.targets(to)), tuple(version.tools(to)))
    runs.to_status(draft, view, MACHINE_DECISION, Status.READY)
    runs.clear(draft, view.run.id, cleared, ClearanceState.LIVE, opening.decision_id)


def _ask_again(opening: Opening, seen: Mapping[UUID, UUID]) -> None:
    """Void what was granted on other facts, ask on the facts as they are now, and wait for the answer: until the agent's own deadline, with its
    action, where it is still to come."""
    draft, view, gathered = opening.draft, opening.view, opening.gathered
    asked = {}
    wanted = [effect for effect in effects.callable_next(view) if effect.id in gathered.ask]
    # What doesn't fit into one wait is asked for by the wake after it.
    for effect in wanted[: waits.MAX_MEMBERS]:
        asked[str(effect.id)] = _renewed(opening, effect, seen)
    draft.head(asks=view.head.asks + 1)
    own = gathered.deadline
    _wait(
        opening,
        Internal.ASK_AGAIN,
        tuple(MemberSpec(MemberKind.APPROVAL, effect=name) for name in asked),
        own if own is not None and own > draft.at else draft.at + ASKED_FOR,
        gathered.on_deadline,
        asked,
    )


def _renewed(opening: Opening, effect: EffectRow, seen: Mapping[UUID, UUID]) -> EffectRow:
    """The effect bound to what its target looks like now."""
    if effect.id not in seen:
        return effect
    version = opening.gathered.sightings[effect.id].version
    target = opening.view.targets[effect.target_id]
    subject = effects.subject_of(replace(effect, observed_version=version), target)
    bound = replace(
        effect,
        observation_id=seen[effect.id],
        observed_version=version,
        subject_digest=effects.subject_digest(subject, opening.draft.stream.salt),
    )
    opening.draft.move(
        "effect",
        effect.id,
        {"state": effect.state, "observed_version": effect.observed_version},
        observation_id=bound.observation_id,
        observed_version=bound.observed_version,
        subject_digest=bound.subject_digest,
    )
    return bound


def _void(draft: Draft, view: RunView, cause: str) -> None:
    for grant in view.grants:
        void_grant(draft, grant, cause)


def _retry_later(opening: Opening, seen: Mapping[UUID, UUID]) -> None:
    """Look again after a back-off that doubles with each try."""
    at = opening.draft.at + back_off(opening.gathered.facts.retries)
    timer = MemberSpec(MemberKind.TIMER, at=at)
    _wait(opening, Internal.RETRY_LATER, (timer,), at + LONGEST_BACK_OFF, OnDeadline.WAKE, {})


def _reconcile(opening: Opening, seen: Mapping[UUID, UUID]) -> None:
    """Wait until the outcome of every call that is out or unknown is known."""
    unknown = {str(effect.id): effect for effect in opening.view.effects if effect.state in OPEN}
    members = tuple(MemberSpec(MemberKind.EFFECT, effect=name) for name in unknown)
    deadline = opening.draft.at + RECONCILED_WITHIN
    _wait(opening, Internal.RECONCILE, members[: waits.MAX_MEMBERS], deadline, OnDeadline.HAND_OFF, unknown)


def _wait(
    opening: Opening,
    internal: Internal,
    members: Sequence[MemberSpec],
    deadline: datetime,
    on_deadline: OnDeadline,
    named: dict[str, Any],
) -> None:
    draft, view = opening.draft, opening.view
    spec = WaitSpec(SetMode.ALL, tuple(members), deadline, on_deadline, internal)
    runs.to_status(draft, view, MACHINE_DECISION, Status.WAITING)
    waits.open_set(
        draft, view, spec, named, lambda effect, by: opening.ask(effect, by, opening.gathered.ask[effect.id])
    )


def _finish(opening: Opening, seen: Mapping[UUID, UUID]) -> None:
    """End the run as its intent says; nothing of it is out."""
    draft, view = opening.draft, opening.view
    for effect in _proposed(view):
        effects.withdraw(draft, view, effect, WithdrawCause.CANCELLED)
    _void(draft, view, "cancelled")
    opening.withdraw("cancelled")
    runs.end_ownership(draft, view)
    runs.leave_instance(draft, view)
    ended = Status.CANCELLED if view.head.intent is Intent.CANCEL else Status.FAILED
    runs.to_status(draft, view, MACHINE_DECISION, ended)


def _hand_off(opening: Opening, seen: Mapping[UUID, UUID]) -> None:
    """Give the run to a person, with the decision that says why."""
    reason = opening.decided.reasons[0][:40]
    runs.to_status(opening.draft, opening.view, MACHINE_DECISION, Status.BLOCKED)
    about = next(
        (
            UUID(check.subject)
            for check in opening.gathered.checks
            if check.name in OF_OUTCOMES and check.subject and check.code == reason
        ),
        None,
    )
    handoffs.open_handoff(opening.draft, opening.view, reason, effect_id=about, decision_id=opening.decision_id)


_OPENS: Mapping[DecisionKind, Callable[[Opening, Mapping[UUID, UUID]], None]] = {
    DecisionKind.RESUME: _ready,
    DecisionKind.ROUTE_OLD: _ready,
    DecisionKind.REPLAN: _replan,
    DecisionKind.ASK_AGAIN: _ask_again,
    DecisionKind.RETRY_LATER: _retry_later,
    DecisionKind.RECONCILE: _reconcile,
    DecisionKind.FINISH: _finish,
    DecisionKind.HAND_OFF: _hand_off,
}


def not_claimed(draft: Draft, view: RunView, *, routed_old: bool) -> bool:
    """Nobody claimed by `ready_by`: wake again; after a route to old code nobody runs it any more, so a person takes it. False when not so."""
    clearance = view.clearance
    if view.head.status is not Status.READY or clearance is None or clearance.ready_by > draft.at:
        return False
    runs.close_clearance(draft, view, ClearanceState.STALE)
    if routed_old:
        runs.to_status(draft, view, "not_claimed", Status.BLOCKED)
        handoffs.open_handoff(draft, view, "code:no_worker_of_old_version")
        return True
    runs.to_status(draft, view, "not_claimed", Status.WAKING)
    wakes.queue(draft, view, "not_claimed")
    return True


def outdated(draft: Draft, view: RunView, registered_at: datetime, able: Sequence[str]) -> bool:
    """A version was registered after the run was cleared, or is able to go on with it and isn't named by the clearance. False when not so."""
    clearance = view.clearance
    if view.head.status is not Status.READY or clearance is None:
        return False
    if clearance.opened_at >= registered_at and set(able) == set(clearance.versions):
        return False
    runs.close_clearance(draft, view, ClearanceState.STALE)
    runs.to_status(draft, view, "not_claimed", Status.WAKING)
    wakes.queue(draft, view, "version_registered")
    return True
