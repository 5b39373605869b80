"""Gather what a wake decides on: the record's own integrity, code, effects, people, policy, grants, and how the world looks now.

Nothing is locked here. Targets are asked only when nothing in the database already stands against going on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from django.conf import settings

from ledger.domain import decisions
from ledger.domain.authority import GrantRow, Requirement, Verdict, grant_of, requirement
from ledger.domain.checkpoints import able_versions
from ledger.domain.effects import (
    OPEN,
    EffectRow,
    EffectState,
    SeenVersion,
    barred,
    callable_next,
    called_twice,
    disputes,
)
from ledger.domain.handoffs import Outcome as Handed
from ledger.domain.runs import Intent
from ledger.domain.transitions import Gathered
from ledger.domain.views import RunView
from ledger.domain.waits import (
    DEAD,
    MAX_MEMBERS,
    Internal,
    MemberKind,
    MemberRow,
    OnDeadline,
    Outcome,
    SetRow,
    SetState,
)
from ledger.domain.wakes import ATTEMPTS, Answer, Check, DecisionKind, WakeRow
from ledger.engine import integrity, probes
from ledger.engine.observe import Unseen
from ledger.engine.probes import Question
from ledger.services import contents, permissions, plans, ports
from ledger.services.background import Background, background
from ledger.services.effects import sighted
from ledger.services.ids import new_body
from ledger.services.ports import FIRST

_ASKED = {"missing": FIRST, "changed": "changed", "policy_changed": "changed"}
"""What is wrong with a grant → why people are asked."""

HANDED_BACK = f"handoff_{Handed.WAKE}"
"""The reason of a wake that a person asked for by closing a handoff."""

_CUT_OFF: dict[SetState | None, str] = {SetState.EXPIRED: Outcome.EXPIRED, SetState.SATISFIED: Outcome.WITHDRAWN}
"""How its wait closed → what became of a request that had no answer yet."""


def gather(run_id: UUID, wake: WakeRow) -> Gathered:
    """Read, check and ask, for the wake as its checker took it."""
    return check(background(run_id, wake, integrity.ENTRIES))


def check(known: Background) -> Gathered:
    """Check a run as it was read for its wake, and ask the targets that it rests on."""
    view = known.view
    refused = _refused(known)
    stuck = _barred(known)
    ahead = [effect for effect in callable_next(view) if effect.id not in refused and effect.id not in stuck]
    wanted = {effect.id: requirement(view.policy, effect.tool, view.targets[effect.target_id].name) for effect in ahead}
    wrong = {effect.id: why for effect in ahead if (why := _why_ask(known, effect, wanted[effect.id]))}
    if denied := _denied_before(view, ahead, wrong):
        refused |= denied
        ahead = [effect for effect in ahead if effect.id not in denied]
    asked = {effect.id: _ASKED.get(wrong[effect.id], "voided") for effect in ahead if effect.id in wrong}
    checks = [_integrity(known), _attempts(known), _code(known), _effects(known), _deadline(known), _identity(known)]
    checks += _disputes(known) + _retries(known, stuck, refused)
    for effect in ahead:
        checks += [_policy(known, effect, wanted[effect.id]), _grant(known, effect, wrong.get(effect.id, ""))]
    decision_facts = _facts(known)
    denying = [each for each, needs in wanted.items() if needs.verdict is Verdict.DENY]
    refused |= {each: Outcome.DENIED_BY_POLICY for each in denying if _let_go(known, "policy", "denied", each)}
    ahead = [effect for effect in ahead if effect.id not in refused]
    seen: dict[UUID, SeenVersion] = {}
    if _worth_asking(checks, decision_facts):
        bound = [effect for effect in ahead if effect.resource and effect.observed_version]
        now = _as_they_are(view, bound)
        found = {each.id: _target(known, each, wanted[each.id], now[each.id], seen) for each in bound}
        if twice := _called_twice(known, decision_facts, found.values()):
            decision_facts = replace(decision_facts, replan_to="")
            checks.append(_plan(known, twice))
        for effect_id, check in found.items():
            let_go = _let_go(known, "target", check.reason, effect_id)
            without = let_go and decisions.of_person(check, decision_facts)
            if without:
                refused[effect_id] = Outcome.WITHDRAWN
            elif check.reason == "moved":
                asked[effect_id] = "changed"
            checks.append(replace(check, answer=Answer.PASS) if without else check)
    fields = contents.fields(known.checkpoint) if known.checkpoint else None
    own = _own_wait(known)
    return Gathered(
        wake_id=known.wake.id,
        attempt=known.wake.attempt,
        view=view,
        checks=tuple(checks),
        facts=decision_facts,
        versions=_accepted(known),
        ask=asked,
        refused=refused,
        sightings=seen,
        checkpoint=fields,
        state_id=known.checkpoint["state_id"] if known.checkpoint else None,
        on_deadline=own.on_deadline if own else OnDeadline.HAND_OFF,
        deadline=own.deadline if own else None,
    )


def _facts(known: Background) -> decisions.Facts:
    head = known.view.head
    conflict, replan_to = known.view.version.on_conflict(head.transition) if known.view.version else ("hand_off", "")
    groups = max(1, -(-len(callable_next(known.view)) // MAX_MEMBERS))
    return decisions.Facts(
        intent=head.intent,
        on_conflict=conflict,
        replan_to=replan_to,
        asks=head.asks // groups,
        retries=_in_a_row(known.decided, DecisionKind.RETRY_LATER),
        replans=_in_a_row(known.planned, DecisionKind.REPLAN),
    )


def _in_a_row(decided: Sequence[str], kind: DecisionKind) -> int:
    """How many of the newest decisions are of this kind."""
    return next((number for number, each in enumerate(decided) if each != kind), len(decided))


def _worth_asking(checks: list[Check], known: decisions.Facts) -> bool:
    so_far = decisions.decide(checks, known).decision
    return so_far in decisions.CLEARS or so_far is DecisionKind.ASK_AGAIN


def _integrity(known: Background) -> Check:
    fault = integrity.check(known.view.head, known.checkpoint, known.state, known.entries)
    recorded = known.view.head.checkpoint_digest.hex()[:16]
    if fault:
        return Check("integrity", Answer.FAIL, fault, recorded)
    return Check("integrity", Answer.PASS, "intact", recorded, recorded)


def _attempts(known: Background) -> Check:
    counted = str(known.wake.attempt)
    if known.wake.attempt > ATTEMPTS:
        return Check("attempts", Answer.FAIL, "never_finished", str(ATTEMPTS), counted)
    return Check("attempts", Answer.PASS, "counted", str(ATTEMPTS), counted)


def _accepted(known: Background) -> tuple[str, ...]:
    head = known.view.head
    return able_versions(known.versions, head.version, head.transition)


def _code(known: Background) -> Check:
    accepted, at = _accepted(known), known.view.head.version
    if not accepted:
        return Check("code", Answer.FAIL, "no_version_takes_over", at, known.current)
    if known.current not in accepted:
        return Check("code", Answer.CHANGED, "only_old_versions", at, known.current)
    return Check("code", Answer.PASS, "taken_over", at, known.current)


def _effects(known: Background) -> Check:
    """An accepted call has its reconciler and may be out while the agent goes on; to end the run it must be known too."""
    ending = known.view.head.intent is not Intent.NONE
    out = [effect for effect in known.view.effects if effect.state in OPEN and (ending or not _owned(effect))]
    if out:
        return Check("effects", Answer.FAIL, "outcome_unknown", str(out[0].state), "", str(out[0].id))
    return Check("effects", Answer.PASS, "all_known")


def _owned(effect: EffectRow) -> bool:
    return effect.state is EffectState.IN_FLIGHT and effect.accepted


def _deadline(known: Background) -> Check:
    last = known.waits[0] if known.waits else None
    if f"deadline_{OnDeadline.HAND_OFF}" in known.wake.reasons:
        if last is None or last.internal != Internal.RECONCILE:
            return Check("deadline", Answer.FAIL, "passed_hand_off")
        out = [effect for effect in known.view.effects if effect.state in OPEN]
        if out:
            return Check("deadline", Answer.FAIL, "unreconciled", last.deadline.isoformat(), "", str(out[0].id))
        return Check("deadline", Answer.PASS, "kept")
    if last is not None and last.state is SetState.EXPIRED:
        return Check("deadline", Answer.CHANGED, "passed", last.deadline.isoformat(), str(last.cause))
    return Check("deadline", Answer.PASS, "kept" if last else "none")


def _identity(known: Background) -> Check:
    run = known.view.run
    if not known.agent_active:
        return Check("identity", Answer.FAIL, "agent_inactive", "active", "inactive", str(run.agent_id))
    if run.on_behalf_of_id and not permissions.member(run.on_behalf_of_id, run.tenant_id):
        return Check("identity", Answer.FAIL, "person_inactive", "active", "inactive", str(run.on_behalf_of_id))
    return Check("identity", Answer.PASS, "active")


def _refused(known: Background) -> dict[UUID, str]:
    """Effects whose latest request came to nothing: the agent is told, and they aren't asked for again."""
    states = {wait.id: wait.state for wait in known.waits}
    newest = {wait_id: number for number, wait_id in enumerate(states)}
    latest: dict[UUID, MemberRow] = {}
    for member in sorted(known.members, key=lambda each: newest.get(each.wait_id, len(newest)), reverse=True):
        if member.kind is MemberKind.APPROVAL and member.effect_id is not None:
            latest[member.effect_id] = member
    came_to = {effect: _came_to(member, states.get(member.wait_id)) for effect, member in latest.items()}
    return {effect: outcome for effect, outcome in came_to.items() if outcome in DEAD}


def _denied_before(view: RunView, ahead: Sequence[EffectRow], wrong: Mapping[UUID, str]) -> dict[UUID, str]:
    """Of the effects that nobody was asked about yet, those that people have denied under another name: they need not be asked."""
    unasked = [effect for effect in ahead if _ASKED.get(wrong.get(effect.id, "")) == FIRST]
    return {effect.id: Outcome.DENIED for effect in unasked if ports.approvals().denied(view, effect)}


def _came_to(member: MemberRow, closed: SetState | None) -> str:
    """What became of a request: its answer, or what cut it off: its wait's deadline, or another member that was met first."""
    if member.met_at is not None:
        return member.outcome
    return _CUT_OFF.get(closed, "")


def _barred(known: Background) -> dict[UUID, str]:
    """Failed effects that only a person may have tried again, with why."""
    view, words = known.view, known.last_words
    found = {
        effect.id: barred(effect, view.targets[effect.target_id], view.now, words.get(effect.id))
        for effect in callable_next(view)
    }
    return {effect_id: why for effect_id, why in found.items() if why}


def _disputes(known: Background) -> list[Check]:
    """Two accounts of one effect: nothing goes on before a person said which holds."""
    return [
        Check("dispute", Answer.FAIL, "unresolved", str(effect.state), "", str(effect.id))
        for effect in disputes(known.view)
    ]


def _retries(known: Background, stuck: Mapping[UUID, str], refused: Mapping[UUID, str]) -> list[Check]:
    """May what failed be tried again? A person who woke the run knows that it may not, and what the agent is to do without it."""
    checks = []
    for effect in callable_next(known.view):
        if effect.state is not EffectState.FAILED:
            continue
        why = stuck.get(effect.id, "")
        if effect.id in refused:
            why = "asked_and_refused"
        answer = Answer.FAIL if why and not _let_go(known, "retry", why, effect.id) else Answer.PASS
        checks.append(Check("retry", answer, why or "may_be_tried", effect.cause, "", str(effect.id)))
    return checks


def _usable(known: Background, effect: EffectRow) -> GrantRow | None:
    """The effect's live grant, or the used one that covers further attempts of it."""
    return grant_of(replace(known.view, grants=[*known.view.grants, *known.usable]), effect.id)


def _why_ask(known: Background, effect: EffectRow, wanted: Requirement) -> str:
    """Why leave must be asked for (again), or '' when it needn't."""
    if wanted.verdict is not Verdict.APPROVE:
        return ""
    view, grant = known.view, _usable(known, effect)
    if grant is None:
        return "missing"
    if grant.use_by <= view.now:
        return "expired"
    if grant.subject_digest != effect.subject_digest:
        return "changed"
    if grant.requirement_digest != wanted.digest():
        return "policy_changed"
    return ports.approvals().still_good(grant, view)


def _told(known: Background) -> bool:
    """Did a person wake the run? What only a person can resolve they know of: the agent goes on without it, and is told so."""
    return HANDED_BACK in known.wake.reasons


def _let_go(known: Background, check: str, reason: str, effect_id: UUID) -> bool:
    """Does the run go on without this effect, as a person said who woke it now, or before the engine only asked or waited for something else?"""
    return _told(known) or (check, reason, str(effect_id)) in known.let_go


def _policy(known: Background, effect: EffectRow, wanted: Requirement) -> Check:
    policy = known.view.policy
    number = str(policy.number) if policy else "none"
    if wanted.verdict is Verdict.DENY:
        answer = Answer.PASS if _let_go(known, "policy", "denied", effect.id) else Answer.FAIL
        return Check("policy", answer, "denied", "", number, str(effect.id))
    return Check("policy", Answer.PASS, str(wanted.verdict), "", number, str(effect.id))


def _grant(known: Background, effect: EffectRow, why: str) -> Check:
    grant = _usable(known, effect)
    recorded = grant.subject_digest.hex()[:16] if grant else ""
    observed = effect.subject_digest.hex()[:16]
    if why in {"changed", "policy_changed"}:
        return Check("grant", Answer.CHANGED, why, recorded, observed, str(effect.id))
    if why:
        return Check("grant", Answer.FAIL, why, recorded, observed, str(effect.id))
    return Check("grant", Answer.PASS, str(grant.state) if grant else "not_needed", recorded, observed, str(effect.id))


def _as_they_are(view: RunView, bound: Sequence[EffectRow]) -> dict[UUID, SeenVersion | str]:
    """How the target of each effect looks now, or the code of why it can't be told; a resource is asked for once, whoever rests on it."""
    wanted = [(view.targets[effect.target_id], effect.resource) for effect in bound]
    found: dict[Question, SeenVersion | str] = {}
    for question, answer in probes.ask_all(wanted, view.now, settings.RESUMEAPP_CHECK_SECONDS / 3).items():
        if isinstance(answer, Unseen):
            found[question] = answer.reason[:40]
            continue
        body = new_body(answer.body, view.now, answer.media)
        found[question] = SeenVersion(question.target_id, question.resource, answer.version, answer.at, "wake", body)
    return {effect.id: found[Question(effect.target_id, effect.resource)] for effect in bound}


def _target(
    known: Background,
    effect: EffectRow,
    wanted: Requirement,
    answer: SeenVersion | str,
    seen: dict[UUID, SeenVersion],
) -> Check:
    if isinstance(answer, str):
        return Check("target", Answer.CANNOT_TELL, answer, effect.observed_version, "", str(effect.id))
    seen[effect.id] = answer
    if answer.version == effect.observed_version:
        return Check("target", Answer.PASS, "same", effect.observed_version, answer.version, str(effect.id))
    target = known.view.targets[effect.target_id]
    fields = sighted.moved(effect, target, answer, known.bound, known.bound_bodies)
    if fields == ():
        return Check("target", Answer.PASS, "immaterial", effect.observed_version, answer.version, str(effect.id))
    reason = "moved" if wanted.verdict is Verdict.APPROVE else decisions.MOVED_UNASKED
    observed = " ".join([answer.version, *(fields or ())])
    return Check("target", Answer.CHANGED, reason, effect.observed_version, observed, str(effect.id))


def _called_twice(known: Background, facts: decisions.Facts, targets: Iterable[Check]) -> list[str]:
    """Names under which the plan that a replan would leave has called more than once."""
    if not any(decisions.replans(check, facts) for check in targets):
        return []
    return called_twice(plans.done(known.view, facts.replan_to))


def _plan(known: Background, twice: Sequence[str]) -> Check:
    """Nobody but a person lets a plan be left that no new one could tell apart from its next round; the agent goes on where it is then."""
    answer = Answer.PASS if _told(known) else Answer.FAIL
    return Check("plan", answer, "name_called_twice", ", ".join(twice))


def _own_wait(known: Background) -> SetRow | None:
    """The agent's own last wait: what it wanted of silence, and when, goes for the engine's waits that follow it."""
    return next((wait for wait in known.waits if not wait.internal), None)
