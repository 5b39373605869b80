"""What a transition function works with: proposing, performing, waiting, ending."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from resumeapp_client import effects
from resumeapp_client.calls import Call, TargetHttp
from resumeapp_client.holding import Holding
from resumeapp_client.records import Effect, Run, WaitSeen
from resumeapp_client.waits import ON_DEADLINE, Member
from resumeapp_client.waits import deadline as deadline_fields
from resumeapp_client.workflows import Workflow

S = TypeVar("S", bound=BaseModel)

REASON_LENGTH = 200
"""Characters of a failure's reason that the ledger keeps."""


@dataclass(frozen=True, slots=True)
class Step:
    """How a transition ended: the commit's `next`, and the state to commit. Made by the context's methods only."""

    next: Mapping[str, Any]
    state: Any


class Context(Generic[S]):
    """One execution of one transition. Methods that reach the server raise ResumeappError, or a Signal that the agent's code lets pass."""

    def __init__(self, workflow: Workflow[S], holding: Holding, state: S) -> None:
        self._workflow = workflow
        self._holding = holding
        self._own: set[str] = set()
        self.state = state

    # -- what is known

    @property
    def run(self) -> Run:
        """The run as it was claimed."""
        return self._holding.position.run

    @property
    def effects(self) -> Mapping[str, Effect]:
        """The transition instance's effects by name, this execution's proposals included."""
        return self._holding.position.effects

    @property
    def earlier(self) -> Sequence[Effect]:
        """Effects of earlier transition instances whose outcome was still open at the claim; their names are free again."""
        return self._holding.position.earlier

    @property
    def waited(self) -> WaitSeen | None:
        """The wait that the run was woken from, with each member and its event."""
        return self._holding.position.wait

    @property
    def outcome(self) -> str | None:
        """The outcome of the last wait in one word: `approved`, `denied`, `expired`, `withdrawn`, `received`, `fired` …"""
        return effects.outcome(self._holding.position.wait)

    @property
    def reason(self) -> str:
        """What people said when they denied what the last wait asked for; '' where nobody did or nothing was said."""
        return effects.reason(self._holding.position.wait)

    @property
    def http(self) -> TargetHttp:
        """The handle of the call that is being performed."""
        if self._holding.http is None:
            raise RuntimeError("ctx.http is there only inside the call of ctx.perform")
        return self._holding.http

    # -- effects

    def propose(
        self,
        name: str,
        *,
        target: str,
        request: Any,
        tool: str | None = None,
        observes: str | None = None,
        tool_digest: str | None = None,
        on_differs: str = "recorded",
        on_carried: str = "raise",
    ) -> Effect:
        """Propose an effect under a name that is unique in the transition instance; it is recorded with the next commit or perform.

        Where this name is recorded already (this code runs again after a crash) the recorded effect is the answer, and
        with other arguments too, unless `on_differs="raise"`, which raises EffectDiffers with both.

        Where it was called before the run was planned anew (`carried_to` says by which transition), nothing is taken for it unasked: EffectCarried,
        unless `on_carried="take"` says that this name means the same act under each plan; with other arguments EffectDiffers all the same.
        """
        if on_differs not in ("recorded", "raise"):
            raise ValueError('on_differs is "recorded" or "raise"')
        _check_on_carried(on_carried)
        self._holding.go_on()
        plain = to_jsonable_python(request, by_alias=True)
        proposal = {"name": name, "tool": tool or f"{target}.{name}", "target": target, "request": plain}
        proposal |= {} if observes is None else {"resource": observes}
        proposal |= {} if tool_digest is None else {"tool_digest": tool_digest}
        recorded = self._holding.position.effects.get(name)
        if recorded is not None:
            strict = on_differs == "raise" or name in self._own or recorded.carried_to
            if strict and effects.differs(recorded, proposal):
                raise effects.differing(recorded, proposal)
            if recorded.carried_to:
                return self._holding.take(name, on_carried)
            self._holding.taken.add(name)
            return recorded
        self._own.add(name)
        self._holding.buffer[name] = proposal
        effect = Effect.model_validate(proposal)
        self._holding.position.effects[name] = effect
        return effect

    def perform(self, effect: Effect | str, call: Call, *, on_carried: str = "raise") -> Any:
        """Do an effect, at most once: its recorded result where it is committed, else permit, `call(http, permit)`, settle.

        Answers the call's result as JSON; what the target showed, where the answer was lost and the call was looked up;
        None where a person said that it was done (see the effect's reference). Raises EffectRejected, EffectDenied, EffectExpired, EffectWithdrawn or
        EffectWrittenOff when it is over without having been done, EffectGivenUp where it failed and a person let the run go on
        without it. While its outcome is unknown, or a retry is not due,
        the run is given back and the ledger's wake decides. An effect that was called before the run was planned anew raises EffectCarried, unless
        this execution has taken it: here or in `propose`, by `on_carried="take"`, or by `accept`.
        """
        _check_on_carried(on_carried)
        return self._holding.perform(_name(effect), call, on_carried)

    def withdraw(self, effect: Effect | str) -> Effect:
        """Withdraw a proposed effect. Raises ResumeappError `wrong-state` once it was permitted."""
        self._own.discard(_name(effect))
        return self._holding.withdraw(_name(effect))

    def accept(self, name: str) -> Effect:
        """Take an effect's recorded outcome although this execution didn't arrive at it (its code no longer proposes it); or say that one knows of
        what was called before the run was planned anew."""
        return self._holding.accept(name)

    # -- ends of a transition

    def go_on(self, transition: str, state: S | None = None) -> Step:
        """Commit and go on with another transition, keeping the lease where the ledger clears it at once."""
        return self._step("go_on", state, transition=self._declared(transition))

    def give_back(self, transition: str | None = None, state: S | None = None) -> Step:
        """Commit and give the run back; any worker goes on with the transition (default: this one)."""
        return self._step(
            "give_back", state, transition=self._declared(transition or self._holding.position.transition)
        )

    def wait(
        self,
        *members: Member,
        deadline: datetime | timedelta | str | int,
        then: str,
        on_deadline: str = "wake",
        mode: str = "any",
        state: S | None = None,
    ) -> Step:
        """Commit and wait for any or all (`mode`) members until the deadline; then go on with `then`.

        `deadline` is a time with an offset, or a length: a timedelta, seconds, or text such as `24h` or `1d12h`. What happens when it passes is
        `on_deadline`: `wake` goes on with `then` all the same, `cancel` and `fail` end the run, `hand_off` gives it to a person. `ctx.outcome`
        of the next transition says which it was. Raises ValueError for what is none of these.
        """
        if not members:
            raise ValueError("a wait needs a member: approval(), event(), timer() or settled()")
        if mode not in ("any", "all") or on_deadline not in ON_DEADLINE:
            raise ValueError(f'mode is "any" or "all", on_deadline one of {", ".join(ON_DEADLINE)}')
        wait = {"mode": mode, "members": [dict(member.fields) for member in members], "on_deadline": on_deadline}
        wait |= deadline_fields(deadline)
        return self._step("wait", state, transition=self._declared(then), wait=wait)

    def complete(self, state: S | None = None) -> Step:
        """Commit and end the run as completed."""
        return self._step("complete", state)

    def fail(self, reason: str, state: S | None = None) -> Step:
        """Commit and end the run as failed; the reason's first 200 characters are kept."""
        return self._step("fail", state, reason=reason[:REASON_LENGTH])

    # -- inside

    def _step(self, kind: str, state: S | None, **fields: Any) -> Step:
        return Step({"kind": kind, **fields}, self.state if state is None else state)

    def _declared(self, transition: str) -> str:
        return self._workflow.require(transition).name


def _check_on_carried(on_carried: str) -> None:
    if on_carried not in ("raise", "take"):
        raise ValueError('on_carried is "raise" or "take"')


def _name(effect: Effect | str) -> str:
    return effect if isinstance(effect, str) else effect.name
