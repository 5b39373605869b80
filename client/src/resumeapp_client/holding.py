"""What a worker does to a run that it holds: every write, with what its refusal means for going on.

A lost reply is never guessed at: what may be repeated is repeated with the same key or fence, and otherwise the run is
left to the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx2 as httpx

from resumeapp_client import effects
from resumeapp_client.calls import Call, Report, TargetHttp, make
from resumeapp_client.client import Client
from resumeapp_client.clocks import monotonic
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
from resumeapp_client.wire import jittered

T = TypeVar("T")

# What the server finds wrong with a report's values, as opposed to its being late or foreign.
_BAD_REPORT = frozenset({400, 413, 422})
# Refusals that pass by themselves: the target has to be asked first, or didn't answer, or the run is being written to.
_PASSING = frozenset({"target-unreachable", "observation-due", "busy"})
# Refusals of a permit that only other code or another registration cures; all others are for the run's wake to cure.
_OF_THE_CODE = frozenset({"tool-not-allowed", "not-found", "integrity"})
_LONGEST_PAUSE = 30.0
ACCEPTED_SECONDS = 60.0
"""How long a worker keeps a run whose target has accepted a request and not finished it."""


@dataclass(frozen=True, slots=True)
class Targets:
    """How calls reach targets: base URLs by name, a transport for each exchange, and how often a call is tried that
    didn't happen, with the first pause between two tries in seconds."""

    base_urls: Mapping[str, str] = field(default_factory=dict)
    transport: Callable[[], httpx.BaseTransport] | None = None
    tries: int = 5
    pause: float = 0.5


@dataclass(slots=True)
class Position:
    """Where a held run stands; moves on with each commit."""

    run: Run
    seq: int
    transition: str
    effects: dict[str, Effect]
    wait: WaitSeen | None = None
    earlier: tuple[Effect, ...] = ()
    without: Mapping[str, str] = field(default_factory=dict)
    """Failed effects, by id, that a person let the run go on without, with why."""

    @classmethod
    def of(cls, packet: Packet) -> Position:
        """Where a claimed run stands."""
        seq, earlier = packet.checkpoint.seq, tuple(packet.earlier)
        without = (packet.decision or {}).get("without") or {}
        return cls(packet.run, seq, packet.transition, dict(packet.effects), packet.wait, earlier, without)

    def after(self, done: Committed, transition: str) -> Position:
        """Where it stands after a commit that kept it: what a new plan brought along goes on until the transition that called it."""
        along = {
            name: effect for name, effect in self.effects.items() if effect.carried_to not in ("", self.transition)
        }
        return Position(self.run, done.seq, transition, along | done.effects)


class Holding:
    """One transition of one held run. Raises ResumeappError, RunGivenBack or RunLost."""

    def __init__(
        self, client: Client, held: Held, position: Position, targets: Targets, draining: Callable[[], bool]
    ) -> None:
        self._client = client
        self.held = held
        self.position = position
        self.targets = targets
        self._draining = draining
        self.buffer: dict[str, dict[str, Any]] = {}
        self.taken: set[str] = set()
        self._known_of: set[str] = set()
        self.http: TargetHttp | None = None

    def go_on(self) -> None:
        """Pass while something new may be begun."""
        if self.held.lost:
            raise RunLost(self.held.reason)
        if self.held.stop_after_call:
            raise RunGivenBack(self.held.reason)
        if self._draining():
            raise RunGivenBack("draining")

    def recorded(self, name: str) -> Effect:
        """The effect of that name. Raises LookupError."""
        effect = self.position.effects.get(name)
        if effect is None:
            known = ", ".join(sorted(self.position.effects)) or "none"
            raise LookupError(f"no effect is named {name!r} here (named: {known})")
        return effect

    # -- writes

    def commit(self, commit: Mapping[str, Any]) -> Committed:
        """Commit with the buffered proposals."""
        if self.held.stop_after_call:
            raise RunGivenBack(self.held.reason)
        proposals = {"propose": list(self.buffer.values())} if self.buffer else {}
        body = {"fence": self.held.fence, **commit, **proposals}
        return self._write(lambda: self._client.commit(self.held.run_id, body | {"expect_seq": self.position.seq}))

    def record_proposals(self) -> None:
        """Record what is buffered, each a checkpoint of its own."""
        for name, proposal in list(self.buffer.items()):
            self.go_on()
            self._propose(name, proposal)
            del self.buffer[name]

    def withdraw(self, name: str) -> Effect:
        """Withdraw a proposed effect; one that was only buffered leaves no trace."""
        effect = self.recorded(name)
        if self.buffer.pop(name, None) is not None:
            return self.position.effects.pop(name).model_copy(update={"state": "withdrawn", "cause": "by_agent"})
        self.position.effects[name] = self._write(lambda: self._client.withdraw(effect.id, self.held.fence))
        self.taken.discard(name)
        return self.position.effects[name]

    def accept(self, name: str) -> Effect:
        """Take the recorded outcome of a settled effect."""
        self.recorded(name)
        answer = self._write(lambda: self._client.accept(self.held.run_id, self.held.fence, name))
        self.taken.discard(name)
        self._known_of.add(name)
        return self._known(answer)

    def take(self, name: str, on_carried: str) -> Effect:
        """An effect that was called before the run was planned anew, where the code says that it means that one. Raises EffectCarried."""
        if on_carried != "take":
            raise effects.carried(self.recorded(name))
        return self.accept(name)

    def _propose(self, name: str, proposal: Mapping[str, Any]) -> Effect:
        held, position = self.held, self.position
        answer = self._write(lambda: self._client.propose(held.run_id, held.fence, position.seq, proposal))
        if answer.seq is not None:
            position.seq = answer.seq
        return self._known(answer)

    def _known(self, effect: Effect) -> Effect:
        self.position.effects[effect.name] = effect
        return effect

    def _write(self, write: Callable[[], T]) -> T:
        """A write of the holder: none once the run is lost, and none after one of which nobody knows whether it was done."""
        if self.held.lost:
            raise RunLost(self.held.reason)
        try:
            return self._patiently(lambda: self._accounted(write))
        except (OwnershipLost, Unreachable) as error:
            raise self._lose(error.code) from None

    def _accounted(self, write: Callable[[], T]) -> T:
        """Where the ledger misses an account of effects that this execution has taken, give it, and ask again."""
        try:
            return write()
        except EffectsUnaccounted:
            taken = [self.position.effects[name] for name in sorted(self.taken)]
            if not taken:
                raise
        self.taken.clear()
        for effect in taken:
            if effect.carried_to or effect.state in ("committed", "failed", "written_off"):
                self.accept(effect.name)
            elif effect.state != "withdrawn":
                self._propose(effect.name, effects.as_proposal(effect))
        return write()

    def _patiently(self, ask: Callable[[], T]) -> T:
        """Ask again, after growing pauses, while a refusal is of those that pass; then give the run back."""
        for turn in range(self.targets.tries):
            try:
                return ask()
            except ResumeappError as refused:
                if refused.code not in _PASSING:
                    raise
                code = refused.code
            self._pause(turn)
        raise RunGivenBack(code)

    def _pause(self, turn: int, at_least: float = 0.0) -> None:
        """Wait before the next try, unless there is none; what ends the holding ends the wait."""
        if turn + 1 >= self.targets.tries:
            return
        until = monotonic() + max(at_least, jittered(self.targets.pause, turn, _LONGEST_PAUSE))
        self._wait_until(until)

    def _wait_until(self, until: float) -> None:
        while (left := until - monotonic()) > 0:
            self.go_on()
            self.held.disturbed.wait(min(left, 0.25))

    def _lose(self, reason: str) -> RunLost:
        self.held.lose(reason)
        return RunLost(reason)

    # -- effects

    def perform(self, name: str, call: Call, on_carried: str = "raise") -> Any:
        """An effect's result: recorded, or of a call under a permit. A call that didn't happen is tried again, after pauses."""
        self.record_proposals()
        if self.recorded(name).carried_to and name not in self._known_of:
            self.take(name, on_carried)
        self.taken.add(name)
        why = ""
        for turn in range(self.targets.tries):
            effect = self._finished(self.recorded(name))
            if effect.state == "committed":
                return effects.result(effect)
            effects.require_open(effect)
            if effect.state == "failed" and (left := self.position.without.get(effect.id)):
                raise effects.given_up(effect, left)
            self.go_on()
            self.taken.discard(name)  # the permit accounts for it
            permit = self._permit(effect)
            if permit is None:
                continue
            report, settled = self._under(permit, effect, call)
            if settled.state == "committed":
                return effects.result(settled)
            effects.require_open(settled, passing=("failed", "in_flight"))
            why = report.cause or report.outcome
            if report.outcome != "accepted":
                self._pause(turn, float(report.retry_after or 0))
        raise RunGivenBack(why or "wrong-state")

    def _finished(self, effect: Effect) -> Effect:
        """An accepted request is the reconciler's until the target has finished it; the run is kept for a while."""
        until = monotonic() + ACCEPTED_SECONDS
        turn = 0
        while effect.state == "in_flight" and effect.accepted and monotonic() < until:
            self._wait_until(monotonic() + jittered(self.targets.pause, turn, 5.0))
            effect = self._known(self._write(lambda: self._client.effect(effect.id)))  # noqa: B023 - called at once
            turn += 1
        return effect

    def _permit(self, effect: Effect) -> Permit | None:
        """Leave to call; None where the effect must be looked at again first."""
        try:
            permit = self._write(lambda: self._client.permit(effect.id, self.held.fence))
        except ResumeappError as refused:
            self._no_permit(effect, refused)
            return None
        if not self.held.use(effect.id, permit.attempt):
            # The ledger hands out a permit again while it isn't settled. This process has called under it already.
            raise self._lose("the outcome of a call couldn't be reported")
        return permit

    def _no_permit(self, effect: Effect, refused: ResumeappError) -> None:
        """Go on without a permit, or raise: what the code must cure is its error, what the wake must cure gives the run back."""
        if refused.code == "wrong-state":
            self._known(self._write(lambda: self._client.effect(effect.id)))
            return
        if refused.code == "send-by-passed":
            attempt = refused.facts.get("attempt")
            if isinstance(attempt, int) and self.held.use(effect.id, attempt):
                # Its reply never arrived here, so nothing was sent under it.
                self._settle(effect, attempt, Report("failed", "not_dispatched"))
                return
        uncleared = refused.code == "not-cleared" and "intent" not in refused.facts
        if (
            refused.status == 422
            or uncleared
            or refused.code in _OF_THE_CODE
            or isinstance(refused, EffectsUnaccounted)
        ):
            raise refused
        raise RunGivenBack(refused.code)

    def _under(self, permit: Permit, effect: Effect, call: Call) -> tuple[Report, Effect]:
        transport = self.targets.transport() if self.targets.transport else None
        base_url = self.targets.base_urls.get(effect.target, "")
        http = self.http = TargetHttp(permit, base_url, transport, lambda: self.held.lost)
        try:
            report = make(call, http, permit)
        except BaseException:
            self._settle(effect, permit.attempt, http.verdict or Report("unknown"))
            raise
        finally:
            self.http = None
        settled = self._settle(effect, permit.attempt, report)
        if self.held.lost or not settled.counted:
            raise self._lose(self.held.reason or "the report was kept as evidence")
        return report, settled.effect

    def _settle(self, effect: Effect, attempt: int, report: Report) -> Settled:
        """Report the outcome, also of a lost run: there it is evidence."""
        fields = {
            "cause": report.cause,
            "reference": report.reference,
            "result": report.result,
            "ask_after_seconds": report.ask_after_seconds,
        }
        try:
            try:
                answer = self._client.settle(effect.id, self.held.fence, attempt, report.outcome, **fields)
            except ResumeappError as refused:
                if refused.status not in _BAD_REPORT or report.outcome == "unknown":
                    raise
                answer = self._client.settle(effect.id, self.held.fence, attempt, "unknown")
        except ResumeappError as error:
            raise self._lose(error.code) from None
        self._known(answer.effect)
        return answer
