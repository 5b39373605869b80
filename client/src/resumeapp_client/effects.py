"""What a recorded effect or wait means to a transition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from resumeapp_client.errors import (
    EffectCarried,
    EffectDenied,
    EffectDiffers,
    EffectEnded,
    EffectExpired,
    EffectGivenUp,
    EffectRejected,
    EffectWithdrawn,
    EffectWrittenOff,
    RunGivenBack,
)
from resumeapp_client.records import Effect, WaitSeen

_ENDED: Mapping[tuple[str, str], type[EffectEnded]] = {
    ("failed", "rejected"): EffectRejected,
    ("withdrawn", "denied"): EffectDenied,
    ("withdrawn", "expired"): EffectExpired,
}
_BY_STATE: Mapping[str, type[EffectEnded]] = {"withdrawn": EffectWithdrawn, "written_off": EffectWrittenOff}
_OPTIONAL = ("resource", "tool_digest")
_UNWELCOME = ("denied", "denied_by_policy", "expired", "withdrawn")


def require_open(effect: Effect, passing: tuple[str, ...] = ("failed", "proposed")) -> None:
    """Pass where a call may come next. Raises an EffectEnded where none ever will, RunGivenBack where the ledger must find out first."""
    ended = _ENDED.get((effect.state, effect.cause or "")) or _BY_STATE.get(effect.state)
    if ended is not None:
        cause = effect.cause or effect.state
        raise ended(
            f"effect-{cause.replace('_', '-')}",
            f"the effect {effect.name!r} is {effect.state} ({cause})",
            "Decide what the run does without it; a corrected request is a new effect with another name.",
            facts={"effect": effect.name, "cause": cause},
        )
    if effect.state not in passing:
        raise RunGivenBack(effect.state)


def given_up(effect: Effect, why: str) -> EffectGivenUp:
    """The error for a failed effect that a person let the run go on without: to try it would only bring the run back to them."""
    return EffectGivenUp(
        "effect-given-up",
        f"the effect {effect.name!r} failed ({effect.cause}), and a person let the run go on without it ({why})",
        "Decide what the run does without it; another act is a new effect with another name.",
        facts={"effect": effect.name, "cause": f"given_up_{why}"},
    )


def differs(recorded: Effect, proposal: Mapping[str, Any]) -> bool:
    """Would the ledger call the proposal another effect than the recorded one?"""
    asked = [
        proposal["tool"],
        proposal["target"],
        *(proposal.get(name) or "" for name in _OPTIONAL),
        proposal["request"],
    ]
    optional = [getattr(recorded, name) or "" for name in _OPTIONAL]
    return asked != [recorded.tool, recorded.target, *optional, recorded.request]


def as_proposal(effect: Effect) -> dict[str, Any]:
    """A recorded effect as it was proposed: proposing it again accounts for it."""
    fields = {"name": effect.name, "tool": effect.tool, "target": effect.target, "request": effect.request}
    return fields | {name: getattr(effect, name) for name in _OPTIONAL if getattr(effect, name)}


def result(effect: Effect) -> Any:
    """What a committed effect came to. Raises EffectRejected where a person found that it was not done after all."""
    if effect.held == "failed":
        raise EffectRejected(
            "effect-found-undone",
            f"the effect {effect.name!r} was recorded as done, and a person found that it was not",
            "Decide what the run does without it; another try is a new effect with another name.",
            facts={"effect": effect.name, "cause": "found_undone"},
        )
    return effect.result


_CARRIED = (
    'Where it is this very act that is planned once more, say so with on_carried="take". For any other act, one of the same content too, '
    "account for it with ctx.accept(name), and propose under another name."
)


def carried(recorded: Effect) -> EffectCarried:
    """The error for a name under which a call was made before the run was planned anew."""
    return EffectCarried(
        "effect-carried",
        f"the effect {recorded.name!r} was called by {recorded.carried_to!r} before the run was planned anew, and is {recorded.state}",
        _CARRIED,
        facts={
            "effect": recorded.id,
            "state": recorded.state,
            "carried_from": recorded.carried_from,
            "carried_to": recorded.carried_to,
        },
    )


def differing(recorded: Effect, proposal: Mapping[str, Any]) -> EffectDiffers:
    """The error that shows both sides."""
    both = ("tool", "target", *_OPTIONAL, "request")
    return EffectDiffers(
        "effect-differs",
        f"the effect {recorded.name!r} is recorded with other content",
        "Account for the recorded one with ctx.accept(name): it was called before the run was planned anew. Propose under another name."
        if recorded.carried_to
        else "Take the recorded effect, or withdraw it and propose under another name.",
        facts={
            "recorded": {name: getattr(recorded, name) for name in both},
            "proposed": {name: proposal.get(name) for name in both},
        },
    )


def outcome(wait: WaitSeen | None) -> str | None:
    """A wait's outcome in one word: a refusal before anything else, else what met it, else how it closed."""
    if wait is None:
        return None
    words = [member.outcome for member in wait.members if member.outcome]
    for word in words:
        if word in _UNWELCOME:
            return word
    return wait.state if wait.state == "expired" or not words else words[-1]


def reason(wait: WaitSeen | None) -> str:
    """What people said when they denied what a wait asked for, a line each."""
    return "\n".join(member.reason for member in wait.members if member.reason) if wait else ""
