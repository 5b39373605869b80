"""What a transition function works with: proposing, performing, waiting, ending."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

import httpx2 as httpx
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from resumeapp_client import effects
from resumeapp_client.calls import Call, Report, TargetHttp, make
from resumeapp_client.client import Client
from resumeapp_client.errors import (
    EffectsUnaccounted,
    OwnershipLost,
    ResumeappError,
    RunGivenBack,
    RunLost,
    Unreachable,
)
from resumeapp_client.leases import Held
from resumeapp_client.records import Committed, Effect, Packet, Permit, Run, Settled, WaitSeen
from resumeapp_client.waits import ON_DEADLINE, Member
from resumeapp_client.waits import deadline as deadline_fields
from resumeapp_client.workflows import Workflow

S = TypeVar("S", bound=BaseModel)
T = TypeVar("T")

# What the server finds wrong with a report's values, as opposed to its being late or foreign.
_BAD_REPORT = frozenset({400, 413, 422})


@dataclass(frozen=True, slots=True)
class Step:
    """How a transition ended: the commit's `next`, and the state to commit. Made by the context's methods only."""

    next: Mapping[str, Any]
    state: Any


@dataclass(frozen=True, slots=True)
class Targets:
    """How calls reach targets: base URLs by name, and a transport that wraps every exchange."""

    base_urls: Mapping[str, str] = field(default_factory=dict)
    transport: Callable[[], httpx.BaseTransport] | None = None


@dataclass(slots=True)
class Position:
    """Where a held run stands; moves on with each commit."""

    run: Run
    seq: int
    transition: str
    effects: dict[str, Effect]
    wait: WaitSeen | None = None

    @classmethod
    def of(cls, packet: Packet) -> Position:
        """Where a claimed run stands."""
        return cls(packet.run, packet.checkpoint.seq, packet.transition, dict(packet.effects), packet.wait)


class Context(Generic[S]):
    """One execution of one transition. Methods that reach the server raise ResumeappError, or a Signal that the agent's code lets pass."""

    def __init__(
        self,
        client: Client,
        workflow: Workflow[S],
        held: Held,
        position: Position,
        state: S,
        *,
        code_digest: str,
        targets: Targets | None = None,
        draining: Callable[[], bool] = lambda: False,
    ) -> None:
        self._client = client
        self._workflow = workflow
        self._held = held
        self._position = position
        self._code_digest = code_digest
        self._targets = targets or Targets()
        self._draining = draining
        self._buffer: dict[str, dict[str, Any]] = {}
        self._own: set[str] = set()
        self._taken: set[str] = set()
        self._http: TargetHttp | None = None
        self.state = state

    # -- what is known

    @property
    def run(self) -> Run:
        """The run as it was claimed."""
        return self._position.run

    @property
    def effects(self) -> Mapping[str, Effect]:
        """The transition instance's effects by name, this execution's proposals included."""
        return self._position.effects

    @property
    def waited(self) -> WaitSeen | None:
        """The wait that the run was woken from, with each member and its event."""
        return self._position.wait

    @property
    def outcome(self) -> str | None:
        """The outcome of the last wait in one word: `approved`, `denied`, `expired`, `withdrawn`, `received`, `fired` …"""
        return effects.outcome(self._position.wait)

    @property
    def http(self) -> TargetHttp:
        """The handle of the call that is being performed."""
        if self._http is None:
            raise RuntimeError("ctx.http is there only inside the call of ctx.perform")
        return self._http

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
    ) -> Effect:
        """Propose an effect under a name that is unique in the transition instance; it is recorded with the next commit or perform.

        Where this name is recorded already (this code runs again after a crash) the recorded effect is the answer, and
        with other arguments too, unless `on_differs="raise"`, which raises EffectDiffers with both.
        """
        if on_differs not in ("recorded", "raise"):
            raise ValueError('on_differs is "recorded" or "raise"')
        self._go_on()
        plain = to_jsonable_python(request, by_alias=True)
        proposal = {"name": name, "tool": tool or f"{target}.{name}", "target": target, "request": plain}
        proposal |= {} if observes is None else {"resource": observes}
        proposal |= {} if tool_digest is None else {"tool_digest": tool_digest}
        recorded = self._position.effects.get(name)
        if recorded is not None:
            if effects.differs(recorded, proposal) and (on_differs == "raise" or name in self._own):
                raise effects.differing(recorded, proposal)
            self._taken.add(name)
            return recorded
        self._own.add(name)
        self._buffer[name] = proposal
        effect = Effect.model_validate(proposal)
        self._position.effects[name] = effect
        return effect

    def perform(self, effect: Effect | str, call: Call) -> Any:
        """Do an effect, at most once: its recorded result where it is committed, else permit, `call(http, permit)`, settle.

        Answers the call's result as JSON. Raises EffectRejected, EffectDenied, EffectExpired, EffectWithdrawn or
        EffectWrittenOff when it is over without having been done. While its outcome is unknown, or a retry is not due,
        the run is given back and the ledger's wake decides.
        """
        name = effect if isinstance(effect, str) else effect.name
        self._record_proposals()
        recorded = self._recorded(name)
        self._taken.add(name)
        for _ in range(2):
            if recorded.state == "committed":
                return recorded.result
            effects.require_open(recorded)
            self._go_on()
            permit = self._permit(recorded)
            if permit is None:
                recorded = self._position.effects[name] = self._client.effect(recorded.id)
                continue
            return self._under(permit, recorded, call)
        raise RunGivenBack("wrong-state")

    def withdraw(self, effect: Effect | str) -> Effect:
        """Withdraw a proposed effect."""
        name = effect if isinstance(effect, str) else effect.name
        recorded = self._recorded(name)
        if self._buffer.pop(name, None) is not None:
            self._own.discard(name)
            return self._position.effects.pop(name).model_copy(update={"state": "withdrawn", "cause": "by_agent"})
        self._position.effects[name] = self._owned(lambda: self._client.withdraw(recorded.id, self._held.fence))
        self._taken.discard(name)
        return self._position.effects[name]

    def accept(self, name: str) -> Effect:
        """Take an effect's recorded outcome although this execution didn't arrive at it (its code no longer proposes it)."""
        self._recorded(name)
        answer = self._owned(lambda: self._client.accept(self._held.run_id, self._held.fence, name))
        self._moved_to(answer.seq)
        self._position.effects[name] = Effect.model_validate(answer.model_dump())
        self._taken.discard(name)
        return self._position.effects[name]

    # -- ends of a transition

    def go_on(self, transition: str, state: S | None = None) -> Step:
        """Commit and go on with another transition, keeping the lease where the ledger clears it at once."""
        return self._step("go_on", state, transition=self._declared(transition))

    def give_back(self, transition: str | None = None, state: S | None = None) -> Step:
        """Commit and give the run back; any worker goes on with the transition (default: this one)."""
        return self._step("give_back", state, transition=self._declared(transition or self._position.transition))

    def wait(
        self,
        *members: Member,
        deadline: datetime | timedelta | str | int,
        then: str,
        on_deadline: str = "wake",
        mode: str = "any",
        state: S | None = None,
    ) -> Step:
        """Commit and wait for any or all members until the deadline; then go on with `then`."""
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
        """Commit and end the run as failed."""
        return self._step("fail", state, reason=reason)

    def commit(self, step: Step) -> Committed:
        """Commit what a transition returned; the worker calls it. Raises ResumeappError, RunLost, RunGivenBack."""
        if self._held.stop_after_call:
            raise RunGivenBack(self._held.reason)
        commit = {
            "fence": self._held.fence,
            "expect_seq": self._position.seq,
            "state": self._workflow.dump(step.state),
            "code_version": self._code_digest,
            "version": self._workflow.version,
            "next": dict(step.next),
        }
        if self._buffer:
            commit["propose"] = list(self._buffer.values())
        return self._owned(lambda: self._client.commit(self._held.run_id, commit))

    # -- inside

    def _step(self, kind: str, state: S | None, **fields: Any) -> Step:
        return Step({"kind": kind, **fields}, self.state if state is None else state)

    def _declared(self, transition: str) -> str:
        return self._workflow.require(transition).name

    def _recorded(self, name: str) -> Effect:
        effect = self._position.effects.get(name)
        if effect is None:
            known = ", ".join(sorted(self._position.effects)) or "none"
            raise LookupError(f"no effect is named {name!r} here (named: {known})")
        return effect

    def _go_on(self) -> None:
        if self._held.lost:
            raise RunLost(self._held.reason)
        if self._held.stop_after_call:
            raise RunGivenBack(self._held.reason)
        if self._draining():
            raise RunGivenBack("draining")

    def _owned(self, write: Callable[[], T]) -> T:
        """A write of the holder: none once the run is lost; a lost one is looked up by the ledger, not guessed here."""
        if self._held.lost:
            raise RunLost(self._held.reason)
        try:
            return self._accounted(write)
        except (OwnershipLost, Unreachable) as error:
            raise RunLost(error.code) from None

    def _accounted(self, write: Callable[[], T]) -> T:
        """Where the ledger misses an account of effects that this execution has taken, give it, and ask again."""
        try:
            return write()
        except EffectsUnaccounted:
            if not self._taken:
                raise
            for name in sorted(self._taken):
                if self._position.effects[name].state not in ("proposed", "in_flight", "unknown"):
                    self.accept(name)
            return write()

    def _record_proposals(self) -> None:
        for name, proposal in list(self._buffer.items()):
            self._go_on()
            answer = self._owned(
                lambda proposal=proposal: self._client.propose(  # type: ignore[misc]
                    self._held.run_id, self._held.fence, self._position.seq, proposal
                )
            )
            self._moved_to(answer.seq)
            self._position.effects[name] = Effect.model_validate(answer.model_dump())
            del self._buffer[name]

    def _permit(self, effect: Effect) -> Permit | None:
        """Leave to call; None where the effect's state isn't what it was taken for."""
        try:
            return self._accounted(lambda: self._client.permit(effect.id, self._held.fence))
        except OwnershipLost as lost:
            raise RunLost(lost.code) from None
        except Unreachable as error:
            raise RunGivenBack(error.code) from None
        except ResumeappError as refused:
            if refused.code == "wrong-state":
                return None
            raise _refusal(refused) from None

    def _moved_to(self, seq: int | None) -> None:
        self._position.seq = self._client.run(self._held.run_id).seq if seq is None else seq

    def _under(self, permit: Permit, effect: Effect, call: Call) -> Any:
        transport = self._targets.transport() if self._targets.transport else None
        base_url = self._targets.base_urls.get(effect.target, "")
        http = self._http = TargetHttp(permit, base_url, transport, lambda: self._held.lost)
        try:
            report = make(call, http, permit)
        except BaseException:
            self._settle(permit, effect, Report("unknown"))
            raise
        finally:
            self._http = None
        settled = self._settle(permit, effect, report)
        if self._held.lost or not settled.counted:
            raise RunLost(self._held.reason or "the report was kept as evidence")
        if settled.effect.state == "committed":
            return settled.effect.result
        effects.require_open(settled.effect, passing=("failed",))
        raise RunGivenBack(report.cause or report.outcome)

    def _settle(self, permit: Permit, effect: Effect, report: Report) -> Settled:
        """Report the outcome, also of a lost run: there it is evidence."""
        fields = {
            "cause": report.cause,
            "reference": report.reference,
            "result": report.result,
            "ask_after_seconds": report.ask_after_seconds,
        }
        try:
            try:
                answer = self._client.settle(effect.id, self._held.fence, permit.attempt, report.outcome, **fields)
            except ResumeappError as refused:
                if refused.status not in _BAD_REPORT or report.outcome == "unknown":
                    raise
                answer = self._client.settle(effect.id, self._held.fence, permit.attempt, "unknown")
        except ResumeappError as error:
            raise RunLost(error.code) from None
        self._position.effects[effect.name] = answer.effect
        return answer


def _refusal(refused: ResumeappError) -> BaseException:
    """A permit refused for good has taken the run to its wake already; what the agent's code must cure is its own error."""
    curable = refused.status == 422 or isinstance(refused, EffectsUnaccounted)
    return refused if curable else RunGivenBack(refused.code)
