"""What workers do: those that own a run, and those that think so."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from hypothesis import strategies as st

from ledger.domain.commits import Next, NextKind
from ledger.domain.effects import EffectRow, EffectState, Settled, SettleSpec
from ledger.domain.runs import Status
from ledger.domain.views import RunView
from ledger.domain.waits import MemberKind, OnDeadline, SetMode
from ledger.engine import proposals
from ledger.services import effects, leases
from tests.sequences.authority import Authority
from tests.sequences.outside import Call, Fate
from tests.sequences.stage import PROPOSALS, Given, Held, claim, commit, waiting

ENDS = (NextKind.COMPLETE, NextKind.FAIL)
KINDS = (*[NextKind.GO_ON, NextKind.WAIT, NextKind.GIVE_BACK] * 2, *ENDS)
TRANSITIONS = ("issue", "issue", "issue", "think")
WAITED_FOR = (MemberKind.APPROVAL, MemberKind.APPROVAL, MemberKind.EVENT, MemberKind.TIMER, MemberKind.EFFECT)
FATES = (*[Fate.DELAYED, Fate.APPLIED] * 3, Fate.LOST, Fate.REFUSED, Fate.THROTTLED)


class Workers(Authority):
    """Steps of workers. A step that was taken must have been allowed by what was true before it."""

    @property
    def caller(self) -> Any:
        return self.stage.caller

    def start(self, data: Any) -> None:
        run_id = self.stage.start(self.workflow)
        self.views[run_id], self.effects[run_id] = self.stage.view(run_id)

    def claim(self, data: Any) -> None:
        self.step = "claim"
        self.touched |= self.views.keys()
        version = data.draw(st.sampled_from(("1", "2")))
        held = claim(self.stage, self.workflow, version)
        if held is None:
            return
        view = self.views[held.run_id]
        assert view.head.status is Status.READY, "it was claimed, and wasn't ready"
        assert view.clearance is not None and view.clearance.valid_until > view.now, "a stale clearance was honoured"
        assert version in view.clearance.versions and held.fence == view.head.fence.next()
        self.held.append(held)
        self.taken["claim"] += 1

    def heartbeat(self, data: Any) -> None:
        held = self.holder(data)
        (beat,) = leases.heartbeat(self.caller, held.worker, [(held.run_id, held.fence)])
        self.step = "heartbeat"
        self.touched.add(held.run_id)
        assert held.holds(self.views[held.run_id]) or str(beat.directive) == "stop"

    def release(self, data: Any) -> None:
        held = self.holder(data)
        if self.take("release", held.run_id, lambda: leases.release(self.caller, held.run_id, held.fence)):
            assert held.holds(self.views[held.run_id]) and not self.out(held.run_id)

    def propose(self, data: Any) -> None:
        held = self.holder(data)
        spec = PROPOSALS[data.draw(st.sampled_from(sorted(PROPOSALS)))]
        seq = self.views[held.run_id].head.checkpoint_seq
        args = (self.caller, held.run_id, held.fence, seq, spec, str(uuid4()))
        if self.take("propose", held.run_id, lambda: proposals.propose(*args)):
            assert held.holds(self.views[held.run_id])

    def commit(self, data: Any) -> None:
        held = self.holder(data)
        view = self.views[held.run_id]
        kind = data.draw(st.sampled_from(KINDS))
        proposed = () if kind in ENDS else data.draw(st.sampled_from(((), ("pay",), ("note",), ("note", "pay"))))
        next_ = self.next(data, view, kind, "pay" in proposed)
        specs = [PROPOSALS[name] for name in proposed]
        seq = view.head.checkpoint_seq
        if self.take(f"commit {kind}", held.run_id, lambda: commit(self.stage, held, seq, next_, *specs)):
            assert held.holds(view)
            assert kind not in ENDS or not self.open(held.run_id), "it ended with an outcome open"
            assert kind is NextKind.GO_ON or not self.out(held.run_id), "it left with a call out"

    def next(self, data: Any, view: RunView, kind: NextKind, pays: bool) -> Next:
        if kind in ENDS:
            return Next(kind)
        if kind is not NextKind.WAIT:
            return Next(kind, data.draw(st.sampled_from(TRANSITIONS)))
        first = MemberKind.APPROVAL if pays else data.draw(st.sampled_from(WAITED_FOR))
        others = data.draw(st.sets(st.sampled_from(WAITED_FOR), max_size=2)) - {first}
        mode, action = data.draw(st.sampled_from(SetMode)), data.draw(st.sampled_from(OnDeadline))
        return waiting(view, self.workflow, [first, *sorted(others)], mode, action)

    # Calls ----------------------------------------------------------------------------------------

    def some_effect(self, data: Any, held: Held) -> EffectRow | None:
        every = list(self.effects[held.run_id].values())
        callable_ = [effect for effect in every if effect.state in (EffectState.PROPOSED, EffectState.FAILED)]
        if callable_ and data.draw(st.integers(0, 3)):
            every = callable_
        return data.draw(st.sampled_from(every)) if every else None

    def permit(self, data: Any) -> None:
        held = self.holder(data)
        effect = self.some_effect(data, held)
        if effect is None:
            return
        now = self.now()
        caller = held.caller if data.draw(st.integers(0, 2)) else self.caller
        given = self.take("permit", held.run_id, lambda: proposals.permit(caller, effect.id, held.fence))
        if given and given.new:
            self.check_new_permit(held, effect, now)
            self.has_leave(effect, caller)
            held.permits.append(Given(effect.id, given.key, given.attempt, given.send_by, given.answer_by))
        elif given:
            assert held.holds(self.views[held.run_id]) and effect.id in [one.effect_id for one in held.permits]

    def check_new_permit(self, held: Held, effect: EffectRow, now: datetime) -> None:
        """A second attempt needs a definite no of the first; a payment, a person's leave; every call, a lease and a clearance."""
        view = self.views[held.run_id]
        assert held.holds(view)
        assert not self.outside.changes[effect.key], "permitted again, and it had been done"
        assert not self.may_still_be_done(effect.key, now), "permitted again, and the first call may still arrive"
        assert view.lease is not None and view.lease.expires_at > view.now
        assert view.clearance is not None and view.targets[effect.target_id].name in view.clearance.targets

    def may_still_be_done(self, key: str, now: datetime) -> bool:
        """A call is under way, or somebody holds a permit that they may still send."""
        unsent = [
            given
            for held in self.held
            for given in held.permits
            if given.key == key and now < given.send_by and self.outside.sent(key, given.attempt) is None
        ]
        return bool(unsent or self.outside.under_way(now, key))

    def call(self, data: Any) -> None:
        """A worker sends what it was permitted, in time and once. Whether it still owns the run is nothing that a target knows."""
        given = data.draw(st.sampled_from(self.permits()))[1]
        if self.now() < given.send_by and self.outside.sent(given.key, given.attempt) is None:
            fate = data.draw(st.sampled_from(FATES))
            self.outside.send(Call(given.key, given.attempt, fate, given.answer_by))
            self.taken[f"call {fate}"] += 1

    def settle(self, data: Any) -> None:
        """A worker says what it knows of its call; one that lost the run may say anything but that it was done."""
        called = [each for each in self.permits() if self.outside.sent(each[1].key, each[1].attempt)]
        held, given = data.draw(st.sampled_from(called or self.permits()))
        owns = held.holds(self.views[held.run_id])
        spec = self.report(given, told=data.draw(st.integers(0, 3)) > 0, lies=not owns and data.draw(st.booleans()))
        was = self.effects[held.run_id][given.effect_id].state
        settle = (self.caller, given.effect_id, spec, held.fence)
        answer = self.take(f"settle {spec.outcome}", held.run_id, lambda: effects.settle(*settle))
        if answer and not owns and answer.effect.state is not was:
            assert answer.effect.state is not EffectState.FAILED, "a stale worker's word made a call fail"
            self.taken["settle by a stale worker that counts"] += 1

    def report(self, given: Given, told: bool, lies: bool) -> SettleSpec:
        call = self.outside.sent(given.key, given.attempt)
        if call is None and not lies:
            # Whoever says so sends nothing any more.
            self.outside.send(Call(given.key, given.attempt, Fate.LOST, given.answer_by))
        if call is None or lies:
            return SettleSpec(given.attempt, Settled.FAILED, cause="not_dispatched")
        known = {Fate.REFUSED: "rejected", Fate.THROTTLED: "throttled"}
        if told and call.fate is Fate.APPLIED:
            return SettleSpec(given.attempt, Settled.COMMITTED, reference="rf_1")
        if told and call.fate in known:
            return SettleSpec(given.attempt, Settled.FAILED, cause=known[call.fate])
        return SettleSpec(given.attempt, Settled.UNKNOWN)

    def accept(self, data: Any) -> None:
        self.account(data, "accept", lambda held, it: effects.accept(self.caller, held.run_id, it.name, held.fence))

    def withdraw(self, data: Any) -> None:
        self.account(data, "withdraw", lambda held, it: effects.withdraw(self.caller, it.id, held.fence))

    def account(self, data: Any, step: str, verb: Any) -> None:
        held = self.holder(data)
        effect = self.some_effect(data, held)
        if effect and self.take(step, held.run_id, lambda: verb(held, effect)):
            assert held.holds(self.views[held.run_id])

    def unsent(self) -> list[UUID]:
        """Effects whose permit somebody may still send."""
        now = self.now()
        return [
            given.effect_id
            for _, given in self.permits()
            if now < given.send_by and self.outside.sent(given.key, given.attempt) is None
        ]
