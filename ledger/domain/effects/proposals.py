"""Propose, withdraw, hand over, and account for what is recorded. No clock, no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from ledger.domain.authority import void_grant
from ledger.domain.canonical import Body, canonical, parse
from ledger.domain.drafts import Draft
from ledger.domain.effects.base import (
    MACHINE,
    OPEN,
    EffectRow,
    EffectState,
    Subject,
    TargetRow,
    WithdrawCause,
    effect_key,
    move,
    names,
    subject_digest,
)
from ledger.domain.effects.carried import REMEDY, check_own, goes_along
from ledger.domain.errors import LedgerError
from ledger.domain.workflows import CODE

if TYPE_CHECKING:
    from ledger.domain.views import RunView

SETTLED = frozenset({EffectState.COMMITTED, EffectState.FAILED, EffectState.WITHDRAWN, EffectState.WRITTEN_OFF})
LONGEST = {"name": 80, "tool": 120, "tool_digest": 80, "resource": 200}


@dataclass(frozen=True, slots=True)
class ProposalSpec:
    """What an agent wants to do. `request` is canonical JSON; `target` a target's name; `call_key` the call's Idempotency-Key and
    `trace` its W3C trace id, which say nothing of what is proposed."""

    name: str
    tool: str
    target: str
    resource: str
    request: bytes
    call_key: str | None = None
    tool_digest: str = ""
    trace: UUID | None = None


@dataclass(frozen=True, slots=True)
class SeenVersion:
    """A resource as somebody saw it: `at` is the database's clock before the question was sent, `since` what the target's `guaranteed_at` was
    then, where that is known."""

    target_id: UUID
    resource: str
    version: str
    at: datetime
    source: str
    body: Body | None = None
    since: datetime | None = None

    def outlived(self, target: TargetRow) -> bool:
        """Was the target registered anew, with another address or other guarantees, since it was asked?"""
        return self.at < target.guaranteed_at or self.since not in (None, target.guaranteed_at)


def propose(
    draft: Draft,
    view: RunView,
    spec: ProposalSpec,
    observation: SeenVersion | None,
    known: Body | None,
    request: Body,
) -> EffectRow:
    """Record an effect under its explicit name, or answer the one that is recorded under it already.

    `known` is the stored request of the effect that has this name, `request` the new one with its salt. Raises LedgerError `effect-differs`,
    `effect-carried`, `effects-unaccounted`, `target-unknown`, `target-unreachable`, `observation-due`, `invalid`.
    """
    _check_names(spec)
    target = view.target(spec.target)
    if target is None:
        raise LedgerError(
            "target-unknown",
            f"there is no target named {spec.target[:80]!r}",
            "Name a registered target, or ask an administrator to register it.",
        )
    recorded = view.named(spec.name)
    if recorded is not None:
        _check_same(recorded, spec, target, known)
        check_own(recorded)
        return account(draft, view, recorded)
    check_accounted(view)
    if spec.resource and target.observe is not None and observation is None:
        raise LedgerError(
            "target-unreachable",
            f"the target {target.name} couldn't be asked for the version of the resource",
            "Propose again when the target answers.",
        )
    if observation is not None and observation.outlived(target):
        raise LedgerError(
            "observation-due",
            f"the target {target.name} was registered anew after it was asked for the resource's version",
            "Propose again: the target is asked first.",
        )
    return _insert(draft, view, spec, target, observation, request)


def _check_names(spec: ProposalSpec) -> None:
    """Name and tool are codes: they stand in the journal, from which nothing can ever be erased."""
    for field, limit in LONGEST.items():
        if len(getattr(spec, field)) > limit:
            raise LedgerError("invalid", f"{field} has at most {limit} characters", f"Send a shorter {field}.")
    for field in ("name", "tool"):
        if not CODE.fullmatch(getattr(spec, field)):
            raise LedgerError(
                "invalid",
                f"an effect's {field} is a code, and this isn't one",
                "Use letters, digits, and . _ : / - after the first of them; what people are to read belongs into the request.",
            )


def _check_same(recorded: EffectRow, spec: ProposalSpec, target: TargetRow, known: Body | None) -> None:
    differs = [
        field
        for field, ours, theirs in (
            ("tool", recorded.tool, spec.tool),
            ("target", recorded.target_id, target.id),
            ("resource", recorded.resource, spec.resource),
            ("tool_digest", recorded.tool_digest, spec.tool_digest),
        )
        if ours != theirs
    ]
    if known is None or not known.same(spec.request):
        differs += _paths(known, spec.request)
    if differs:
        raise LedgerError(
            "effect-differs",
            f"the effect {recorded.name} is recorded with other content ({', '.join(differs[:5])})",
            REMEDY if recorded.carried_to else _REMEDY.get(recorded.state, _ACCEPT),
            effect=str(recorded.id),
            state=str(recorded.state),
            key=recorded.key,
            recorded=bytes(recorded.request_commitment).hex(),
            offered=known.commitment_of(spec.request).hex() if known else "",
            differs=differs[:20],
        )


_ACCEPT = "Take its recorded outcome with accept; another act needs another name."
_REMEDY = {
    EffectState.PROPOSED: "Perform it as it is recorded, or withdraw it and propose the other act under another name.",
    EffectState.WITHDRAWN: "A withdrawn effect keeps its name: propose the other act under another one.",
    EffectState.IN_FLIGHT: "Settle it first; another act needs another name.",
    EffectState.UNKNOWN: "Its outcome is being looked for; another act needs another name.",
}
"""What to do about other content under a name, by what became of the recorded effect."""


def _paths(known: Body | None, offered: bytes) -> list[str]:
    if known is None:
        return ["request"]
    return difference(parse(known.content), parse(offered), "request")


def difference(recorded: Any, offered: Any, path: str) -> list[str]:
    """The paths of fields that differ between two parsed documents, never their values."""
    if isinstance(recorded, dict) and isinstance(offered, dict):
        found: list[str] = []
        for key in sorted({*recorded, *offered}):
            if key not in recorded or key not in offered:
                found.append(f"{path}.{key[:40]}")
            else:
                found += difference(recorded[key], offered[key], f"{path}.{key[:40]}")
        return found
    if isinstance(recorded, list) and isinstance(offered, list) and len(recorded) == len(offered):
        return [
            item
            for index, pair in enumerate(zip(recorded, offered, strict=True))
            for item in difference(*pair, f"{path}[{index}]")
        ]
    return [] if canonical(recorded) == canonical(offered) else [path]


def _insert(
    draft: Draft,
    view: RunView,
    spec: ProposalSpec,
    target: TargetRow,
    observation: SeenVersion | None,
    request: Body,
) -> EffectRow:
    instance_id = view.head.instance_id
    key = effect_key(view.run.tenant_id, view.run.lineage_id, instance_id, spec.name)
    version = observation.version if observation else ""
    subject = Subject(
        tool=spec.tool,
        tool_digest=spec.tool_digest,
        target=target.name,
        target_id=target.id,
        resource=spec.resource,
        observed_version=version,
        request_commitment=request.commitment,
        key=key,
    )
    effect = EffectRow(
        id=draft.mint(),
        run_id=view.run.id,
        lineage_id=view.run.lineage_id,
        opened_instance_id=instance_id,
        instance_id=instance_id,
        name=spec.name,
        key=key,
        call_key=spec.call_key,
        tool=spec.tool,
        tool_digest=spec.tool_digest,
        target_id=target.id,
        resource=spec.resource,
        request_id=request.id,
        request_commitment=request.commitment,
        observation_id=observe(draft, view, observation) if observation else None,
        observed_version=version,
        subject_digest=subject_digest(subject, draft.stream.salt),
        state=EffectState.PROPOSED,
        cause="",
        disputed=False,
        held="",
        accepted=False,
        attempt=0,
        accounted_count=view.head.fence_count,
        reference="",
        result_id=None,
        due_at=None,
        looks=0,
        first_permit_at=None,
        answer_by=None,
        proposed_at=draft.at,
        settled_at=None,
        trace=spec.trace,
    )
    draft.body(request)
    draft.insert("effect", **{field: getattr(effect, field) for field in EffectRow.__dataclass_fields__})
    return effect


def observe(draft: Draft, view: RunView, seen: SeenVersion) -> UUID:
    """Record what was seen of a resource, once for all effects that rest on it. Answers the observation's id."""
    sighting = {"target_id": seen.target_id, "resource": seen.resource, "observed_at": seen.at, "source": seen.source}
    if shared := draft.inserted("observation", **sighting):
        known: UUID = shared["id"]
        return known
    observation_id = draft.mint()
    if seen.body is not None:
        draft.body(seen.body)
    draft.insert(
        "observation",
        id=observation_id,
        run_id=view.run.id,
        target_id=seen.target_id,
        resource=seen.resource,
        version=seen.version,
        body_id=seen.body.id if seen.body else None,
        commitment=seen.body.commitment if seen.body else None,
        source=seen.source,
        observed_at=seen.at,
    )
    return observation_id


def account(draft: Draft, view: RunView, effect: EffectRow) -> EffectRow:
    """The present holder knows of this effect. Nothing is written when that is recorded already."""
    if effect.accounted_count == view.head.fence_count:
        return effect
    return move(draft, effect, accounted_count=view.head.fence_count)


def accept(draft: Draft, view: RunView, effect: EffectRow) -> EffectRow:
    """Take the recorded outcome of a settled effect as it is, or know of what a replan carried, whatever it is. Raises LedgerError `wrong-state`
    for any other that has no outcome."""
    if effect.state not in SETTLED and not effect.carried_to:
        raise LedgerError(
            "wrong-state",
            f"the effect {effect.name} is {effect.state}: it has no outcome to take",
            "Perform or withdraw a proposed effect; wait for one that is in flight or unknown.",
            state=str(effect.state),
        )
    return account(draft, view, effect)


def unaccounted(view: RunView) -> list[EffectRow]:
    """Effects of the present instance that the present holder has neither performed, withdrawn nor accepted."""
    return [
        effect
        for effect in view.effects
        if effect.instance_id == view.head.instance_id
        and effect.state is not EffectState.WITHDRAWN
        and effect.accounted_count != view.head.fence_count
        and (not effect.carried_to or view.head.transition in (effect.carried_from, effect.carried_to))
    ]


def check_accounted(view: RunView, effect: EffectRow | None = None) -> None:
    """Nothing new before everything recorded is accounted for. To perform a recorded effect accounts for it, and is allowed unless a call that a
    replan carried isn't: it may be the same one.

    Raises LedgerError `effects-unaccounted` with their names.
    """
    missing = unaccounted(view)
    if effect in missing:
        missing = [each for each in missing if each.carried_to and each != effect]
    if not missing:
        return
    raise LedgerError(
        "effects-unaccounted",
        f"effects of an earlier owner aren't accounted for: {', '.join(names(missing)[:5])}",
        "Perform, withdraw or accept each of them under its recorded name first.",
        effects=names(missing),
    )


def withdraw(draft: Draft, view: RunView, effect: EffectRow, cause: WithdrawCause) -> EffectRow:
    """Take back a proposed effect, and the leave that was given for it. Raises LedgerError `wrong-state` for any other."""
    state = MACHINE.step(effect.state, "withdraw")
    for grant in view.grants:
        if grant.subject_id == effect.id:
            void_grant(draft, grant, "withdrawn")
    return move(
        draft, effect, state=state, cause=cause, settled_at=draft.at, due_at=None, accounted_count=view.head.fence_count
    )


def hand_over(draft: Draft, view: RunView, instance_id: UUID) -> tuple[EffectRow, ...]:
    """Give the next instance what belongs to it of the present one; their keys stay."""
    return tuple(
        move(draft, effect, instance_id=instance_id)
        for effect in view.effects
        if effect.instance_id == view.head.instance_id and goes_along(view, effect)
    )


def disputes(view: RunView) -> list[EffectRow]:
    """Effects of which two accounts stand against each other, and no person has said which holds."""
    return [effect for effect in view.effects if effect.disputed]


def check_closed(view: RunView, effect_id: UUID | None = None) -> None:
    """A run can't end while an effect of it (or this one) may have happened unseen, or is disputed. Raises LedgerError `effects-open`."""
    missing = [
        effect
        for effect in view.effects
        if (effect.state in OPEN or effect.disputed) and effect_id in (None, effect.id)
    ]
    if missing:
        raise LedgerError(
            "effects-open",
            f"effects are in flight, unknown or disputed: {', '.join(names(missing)[:5])}",
            "Settle what is in flight; give the run back while an outcome is unknown or disputed: the look-up decides it, or a person does.",
            effects=names(missing),
        )


def observed(seen: Mapping[tuple[str, str], SeenVersion], spec: ProposalSpec) -> SeenVersion | None:
    """The observation made for a proposal, by (target name, resource)."""
    return seen.get((spec.target, spec.resource)) if spec.resource else None
