"""Any sequence of steps by workers that die, lie or come back, by people, targets, events and clocks; after each, what must always hold."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from ledger.domain.commits import Next, NextKind
from ledger.domain.effects import Settled, SettleSpec
from ledger.domain.runs import ENDED, Status
from ledger.domain.waits import MemberKind, OnDeadline, SetMode
from ledger.engine import proposals, wakes
from ledger.services import effects, leases, verify
from tests.sequences import invariants
from tests.sequences.others import Others
from tests.sequences.outside import Call
from tests.sequences.stage import FRESH_SECONDS, PROPOSALS, Given, Held, claim, commit, waiting
from tests.sequences.workers import FATES, Workers

MOST_RUNS = 2
MOVES = ("policy_moves", "team_moves", "key_revoked", "target_moves")
SCENES = ("fresh", "noting", "paying", "in doubt", "in doubt", "moved", "moved", "denied", "half approved")


class Sequence(Workers, Others):
    """One sequence. One rule draws each step among those that make sense, so that sequences get to where calls are out and answers are missing."""

    def __init__(self) -> None:
        self.clock.set(0.0)
        super().__init__()

    @initialize(data=st.data(), scene=st.sampled_from(SCENES))
    def begin(self, data: Any, scene: str) -> None:
        """A new run; one in a worker's hands that is to write a note, or whose payment was approved, maybe with something that has moved since, or
        under a policy that denies it by now; one that two have to approve and one has; one whose call nobody knows the end of."""
        if scene == "half approved":
            self.stage.publish("two")
        self.start(data)
        if scene == "fresh":
            return
        (run_id,) = self.views
        held = self.claimed(run_id)
        view = self.views[run_id]
        if scene == "noting":
            commit(self.stage, held, view.head.checkpoint_seq, Next(NextKind.GO_ON, "issue"), PROPOSALS["note"])
        else:
            self.approved_by_alice(run_id, held)
        if scene == "half approved":
            return
        assert str(wakes.run(run_id)) == "resume"
        held = self.claimed(run_id)
        if scene == "in doubt":
            self.doubt(data, held)
        elif scene == "moved":
            getattr(self, data.draw(st.sampled_from(MOVES)))(data)
            self.clock.shift(data.draw(st.sampled_from((0, FRESH_SECONDS + 1))))
            self.permit(data)
            self.permit(data)
        elif scene == "denied":
            self.stage.publish("none")
            self.moved("policy moves")
            self.permit(data)

    def approved_by_alice(self, run_id: UUID, held: Held) -> None:
        """The run waits for leave to pay, and has her vote."""
        view = self.views[run_id]
        wait = waiting(view, self.workflow, [MemberKind.APPROVAL], SetMode.ANY, OnDeadline.WAKE)
        commit(self.stage, held, view.head.checkpoint_seq, wait, PROPOSALS["pay"])
        self.views[run_id], self.effects[run_id] = self.stage.view(run_id)
        self.note_request(run_id, Status.WAITING)
        request = self.asked[run_id]
        assert request is not None
        answer = self.stage.decide(self.stage.person("alice"), request, "approve")
        content, revision = self.content(run_id, request.subject_id), (request.pk, request.revision)
        self.stage.book.voted("alice", content, revision, str(answer.state) == "approved", self.now())
        self.taken["decide approve"] += 1

    def claimed(self, run_id: UUID) -> Held:
        """The run in a worker's hands."""
        held = claim(self.stage, self.workflow, "1")
        assert held is not None and held.run_id == run_id
        self.held.append(held)
        self.views[run_id], self.effects[run_id] = self.stage.view(run_id)
        return held

    def doubt(self, data: Any, held: Held) -> None:
        """The call is out, and its worker can't tell what became of it and gives the run back."""
        (effect,) = self.effects[held.run_id].values()
        given = proposals.permit(self.caller, effect.id, held.fence)
        held.permits.append(Given(effect.id, given.key, given.attempt, given.send_by, given.answer_by))
        self.outside.send(Call(given.key, given.attempt, data.draw(st.sampled_from(FATES)), given.answer_by))
        effects.settle(self.caller, effect.id, SettleSpec(given.attempt, Settled.UNKNOWN), held.fence)
        leases.release(self.caller, held.run_id, held.fence)
        self.views[held.run_id], self.effects[held.run_id] = self.stage.view(held.run_id)

    @rule(data=st.data())
    def step_on(self, data: Any) -> None:
        weighted = [name for name, weight in self.steps().items() for _ in range(weight)]
        name = data.draw(st.sampled_from(weighted), label="step")
        note(f"{name} at +{self.clock.seconds:.0f} s")
        self.clock.shift(0.5)
        self.step = name
        getattr(self, name)(data)

    def steps(self) -> dict[str, int]:
        """The steps that can be tried now, with how often."""
        now, waiting = self.now(), self.runs(Status.WAITING)
        due = {status: [r for r in self.runs(status) if self.overdue(r, now)] for status in Status}
        weights = {
            "start": 2 * (len(self.views) - len(self.runs(*ENDED)) < MOST_RUNS),
            "time_passes": 3,
            "event": 1 + bool(waiting),
            "claim": 8 * bool(self.runs(Status.READY)),
            "wake": 8 * bool(self.runs(Status.WAKING)),
            "decide": 8 * bool(waiting),
            "due": bool(waiting) + 5 * bool(due[Status.WAITING]),
            "lapse": bool(self.runs(Status.RUNNING)) + 5 * bool(due[Status.RUNNING]),
            "not_claimed": 4 * bool(due[Status.READY]),
            "close_handoff": 4 * bool(self.runs(Status.BLOCKED)),
            "arrive": 8 * bool(self.outside.under_way(now)),
            "look": 6 * bool(self.open()),
            **dict.fromkeys(("verdict", "answer_by"), int(bool(self.open()))),
            **self.of_workers(),
            **dict.fromkeys(MOVES, 1),
            "vote_withdrawn": 6 * bool(self.voted_on()),
        }
        return {name: int(weight) for name, weight in weights.items() if weight}

    def of_workers(self) -> dict[str, int]:
        owned, ever = bool(self.runs(Status.RUNNING)), bool(self.held)
        proposed, given = bool(self.every()), bool(self.permits())
        return {
            "commit": 4 * owned + (ever and not owned),
            "propose": 2 * owned,
            "permit": (ever + 6 * owned) * proposed,
            "call": 14 * bool(self.unsent()),
            "settle": (1 + 3 * owned) * given * (1 if self.unsent() else 2),
            "accept": owned * proposed,
            "withdraw": owned * proposed,
            "release": int(owned),
            "heartbeat": int(ever),
        }

    @invariant()
    def everything_that_always_holds(self) -> None:
        invariants.nothing_is_done_twice(self.outside)
        for run_id in self.touched & self.views.keys():
            before, had = self.views[run_id], self.effects[run_id]
            after, has = self.stage.view(run_id)
            invariants.a_checkpoint_comes_before_the_next_action(before, after)
            invariants.every_call_is_under_a_permit_and_a_lost_one_is_unknown(self.step, had, has)
            invariants.unknown_is_never_resent(self.step, had, has)
            invariants.resume_is_single_use(self.step, before, after)
            invariants.every_state_has_a_way_out(after)
            invariants.the_record_says_what_happened(has, self.outside, after.now)
            self.views[run_id], self.effects[run_id] = after, has
            self.note_request(run_id, after.head.status)
        self.touched.clear()

    def teardown(self) -> None:
        for run_id, view in self.views.items():
            report = verify.run(run_id)
            assert report.faults == [], report.faults
            if view.head.status in ENDED:
                self.taken[f"ended as {view.head.status}"] += 1
