"""What everybody else does: targets, senders of events, people, the sweep and the clock."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from approvals.services import requests
from ledger.domain.effects import EffectRow, EffectState, LookAnswer
from ledger.domain.handoffs import Outcome
from ledger.domain.runs import Status
from ledger.engine import wakes
from ledger.services import effects, handoffs, leases, waits
from ledger.services import wakes as wake_rows
from ledger.services.effects import Looked
from tests.sequences.authority import PEOPLE, Authority

OUTCOMES = (Outcome.WAKE, Outcome.WAKE, Outcome.CANCEL, Outcome.FAIL)
SECONDS = (1, 1, 20, 20, 40, 61, 61, 100, 301, 3_601, 20_000)


class Others(Authority):
    """Steps of whoever is no worker."""

    # The outside ----------------------------------------------------------------------------------

    def arrive(self, data: Any) -> None:
        self.outside.arrive(data.draw(st.sampled_from(self.outside.under_way(self.now()))))
        self.taken["arrive"] += 1

    def look(self, data: Any) -> None:
        """A target says what it knows at that moment; a call that is still under way is nothing that it knows of."""
        effect = data.draw(st.sampled_from(self.open()))
        answer, cause = self.answer(effect, silent=not data.draw(st.integers(0, 4)))
        looked = Looked(answer, self.views[effect.run_id].now, effect.attempt, cause=cause)
        self.take(f"look {answer}", effect.run_id, lambda: effects.look(effect.id, looked))

    def answer(self, effect: EffectRow, silent: bool) -> tuple[LookAnswer, str]:
        if effect.name == "note":
            return LookAnswer.CANNOT_TELL, "no-lookup"
        if silent:
            return LookAnswer.CANNOT_TELL, ""
        if self.outside.changes[effect.key]:
            return LookAnswer.APPLIED, ""
        return (LookAnswer.REFUSED if self.outside.refused(effect.key) else LookAnswer.ABSENT), ""

    def event(self, data: Any) -> None:
        self.step = "event"
        self.touched |= self.views.keys()
        self.stage.event(self.workflow, f"{self.workflow}/{data.draw(st.sampled_from('abcd'))}")
        self.taken["event"] += 1

    # People ---------------------------------------------------------------------------------------

    def decide(self, data: Any) -> None:
        run_id = data.draw(st.sampled_from(self.runs(Status.WAITING)))
        request = self.asked.get(run_id)
        if request is None:
            return
        choice = data.draw(st.sampled_from(("approve", "approve", "approve", "deny")))
        person = data.draw(st.sampled_from(PEOPLE))
        now, book = self.now(), self.stage.book
        decided = self.take(
            f"decide {choice}", run_id, lambda: self.stage.decide(self.stage.person(person), request, choice)
        )
        if decided and not decided.repeated:
            assert request.decide_by > now, "decided after its time"
            assert person in book.team, "decided by somebody who may no longer"
            if choice == "approve":
                revision = (request.pk, request.revision)
                approved = str(decided.state) == "approved"
                book.voted(person, self.content(run_id, request.subject_id), revision, approved, now)

    def verdict(self, data: Any) -> None:
        """An operator says what they found, and finds what is so."""
        effect = data.draw(st.sampled_from(self.open()))
        outcome, cause = EffectState.COMMITTED, ""
        if not self.outside.changes[effect.key]:
            outcome = EffectState.FAILED
            cause = "rejected" if self.outside.refused(effect.key) else "confirmed_absent"
        args = (self.stage.operator, effect.id, outcome, cause, "seen in the statement")
        read = effects.read_now(effect.id)
        self.take(f"verdict {outcome}", effect.run_id, lambda: effects.verdict(*args, read=read))

    def close_handoff(self, data: Any) -> None:
        run_id = data.draw(st.sampled_from(self.runs(Status.BLOCKED)))
        handoff, outcome = self.views[run_id].handoff, data.draw(st.sampled_from(OUTCOMES))
        assert handoff is not None
        close = (self.stage.operator, handoff.id, outcome, "looked at")
        if self.take(f"handoff {outcome}", run_id, lambda: handoffs.close(*close)):
            assert not self.open(run_id), "closed while an outcome was open"

    # The machinery --------------------------------------------------------------------------------

    def wake(self, data: Any) -> None:
        run_id = data.draw(st.sampled_from(self.runs(Status.WAKING)))
        decision = self.take("wake", run_id, lambda: wakes.run(run_id) or False)
        if decision:
            self.taken[f"wake: {decision}"] += 1
        if str(decision) == "resume":
            assert not self.open(run_id), "it was cleared with an outcome open"

    def lapse(self, data: Any) -> None:
        run_id = data.draw(st.sampled_from(self.runs(Status.RUNNING)))
        lease = self.views[run_id].lease
        if self.take("lapse", run_id, lambda: leases.lapse(run_id)):
            assert lease is not None and lease.expires_at <= self.now(), "a lease was ended before its time"

    def answer_by(self, data: Any) -> None:
        run_id = data.draw(st.sampled_from(self.open())).run_id
        self.take("answer_by", run_id, lambda: effects.lapse(run_id))

    def due(self, data: Any) -> None:
        run_id = data.draw(st.sampled_from(self.runs(Status.WAITING)))
        what = data.draw(st.sampled_from((waits.expire_due, requests.expire_of)))
        self.take("due", run_id, lambda: what(run_id))

    def not_claimed(self, data: Any) -> None:
        run_id = data.draw(st.sampled_from(self.runs(Status.READY)))
        self.take("not claimed", run_id, lambda: wake_rows.not_claimed(run_id))

    def time_passes(self, data: Any) -> None:
        self.clock.shift(data.draw(st.sampled_from(SECONDS)))
        self.step = "clock"
        self.touched |= self.views.keys()

    # When something has become due ----------------------------------------------------------------

    def overdue(self, run_id: UUID, now: datetime) -> bool:
        view = self.views[run_id]
        lease, wait, clearance = view.lease, view.wait, view.clearance
        return bool(
            (lease and lease.active and lease.expires_at <= now)
            or (wait and wait.due_at <= now)
            or (clearance and view.head.status is Status.READY and clearance.ready_by <= now)
        )
