"""One tree of errors. Each has a stable code, a reason and a remedy; none carries payloads or keys.

What a transition may want to catch is an Exception. What only steers the worker (`Signal`) is a BaseException, so that
an `except Exception` in an agent's code can't swallow it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class ResumeappError(Exception):
    """A refusal or failure. `status` is the HTTP status, 0 where no reply was involved; `facts` are machine-readable."""

    def __init__(
        self, code: str, reason: str, remedy: str, status: int = 0, facts: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(f"{code}: {reason}")
        self.code = code
        self.reason = reason
        self.remedy = remedy
        self.status = status
        self.facts = dict(facts or {})


class Unreachable(ResumeappError):
    """No reply of the server could be had within the retries; what was asked may have been done."""


class OwnershipLost(ResumeappError):
    """The fence moved on or the lease is over: somebody else owns the run."""


class EffectDiffers(ResumeappError):
    """An effect of this name is recorded with other content; `facts` has `recorded` and `proposed`."""


class EffectCarried(ResumeappError):
    """The name stands for a call that was made before the run was planned anew: the code says whether it means that one, or another act; `facts` has
    `effect`, `state`, `carried_from` and `carried_to`."""


class RequestDiffers(ResumeappError):
    """A call was about to send something else than what was permitted. Nothing was sent; the effect failed as not dispatched."""


class EffectsUnaccounted(ResumeappError):
    """After a re-claim an effect was neither performed, withdrawn nor accepted."""


class StateMismatch(ResumeappError):
    """The checkpoint's state is damaged, or doesn't fit this code's state model: it needs a migration or an upgrade hook."""


class EffectEnded(ResumeappError):
    """The effect is over without having been done; `facts` has `effect` and `cause`."""


class EffectRejected(EffectEnded):
    """The target refused for good. A corrected request is a new effect with another name."""


class EffectDenied(EffectEnded):
    """A person or the policy said no."""


class EffectExpired(EffectEnded):
    """Nobody decided, or nobody used the grant, in time."""


class EffectWithdrawn(EffectEnded):
    """It was withdrawn: by the agent, by a replan or with the run."""


class EffectGivenUp(EffectEnded):
    """It failed, may not be tried again, and a person let the run go on without it."""


class EffectWrittenOff(EffectEnded):
    """Two people closed it without knowing what it did. It is never retried."""


class Signal(BaseException):
    """Steers the worker out of a transition. Not an Exception: agents' code lets it pass."""


class RunGivenBack(Signal):
    """The run goes back to the ledger, whose wake decides how it goes on: an outcome is unknown, a retry is due, or a stop was asked."""


class RunLost(Signal):
    """The run is no longer ours; nothing more is written to it."""


_BY_CODE: Mapping[str, type[ResumeappError]] = {
    "stale-fence": OwnershipLost,
    "lease-expired": OwnershipLost,
    "effect-differs": EffectDiffers,
    "effect-carried": EffectCarried,
    "effects-unaccounted": EffectsUnaccounted,
}
_OF_A_PROBLEM = frozenset({"type", "title", "status", "code", "detail", "remedy", "facts", "instance"})


def from_problem(status: int, problem: object) -> ResumeappError:
    """The error that an `application/problem+json` body stands for; a body that isn't one keeps its status."""
    if not isinstance(problem, dict) or not isinstance(problem.get("code"), str):
        return ResumeappError(
            f"http-{status}",
            f"the server or something before it answered {status} without saying why",
            "Check the base URL, and the server's log for the time of this call.",
            status,
        )
    facts = problem.get("facts")
    if not isinstance(facts, dict):
        facts = {name: value for name, value in problem.items() if name not in _OF_A_PROBLEM}
    code = problem["code"]
    reason = str(problem.get("detail") or problem.get("title") or "refused")
    return _BY_CODE.get(code, ResumeappError)(code, reason, str(problem.get("remedy") or ""), status, facts)
