"""What moves under those who wait: policies, teams, keys, targets, and votes that are taken back."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from approvals.models import ApprovalRequest
from approvals.services.votes import withdraw_vote
from ledger.domain.effects import EffectRow
from ledger.domain.identity import Caller
from ledger.domain.runs import Status
from tests.sequences.leave import POLICIES, Content
from tests.sequences.player import Player
from tests.sequences.stage import FRESH_SECONDS

PEOPLE = ("alice", "bob")


class Authority(Player):
    """Steps that write nothing of a run: none of them is seen by anybody who doesn't read again."""

    def policy_moves(self, data: Any) -> None:
        self.stage.publish(data.draw(st.sampled_from(sorted(POLICIES.keys() - {self.stage.book.policy}))))
        self.moved("policy moves")

    def team_moves(self, data: Any) -> None:
        """Somebody leaves the team that approves, or comes back."""
        person = data.draw(st.sampled_from(PEOPLE))
        (self.stage.leaves if person in self.stage.book.team else self.stage.joins)(person)
        self.moved("leaves team" if person not in self.stage.book.team else "joins team")

    def key_revoked(self, data: Any) -> None:
        self.stage.revoke_key()
        self.moved("key revoked")

    def target_moves(self, data: Any) -> None:
        self.stage.target.version += 1
        self.moved("target moves")

    def vote_withdrawn(self, data: Any) -> None:
        """Somebody takes back an approval that wasn't enough yet."""
        run_id, request, person = data.draw(st.sampled_from(self.voted_on()))
        content = self.content(run_id, request.subject_id)
        user = self.stage.person(person)
        if self.take("vote withdrawn", run_id, lambda: withdraw_vote(user, request.pk, request.revision)):
            self.stage.book.withdrew(person, content)

    def moved(self, step: str) -> None:
        self.step = step
        self.touched |= self.views.keys()
        self.taken[step] += 1

    # What the book is asked and told -----------------------------------------------------------------

    def voted_on(self) -> list[tuple[UUID, ApprovalRequest, str]]:
        """Pending requests with somebody's approval on them."""
        found = []
        for run_id in self.runs(Status.WAITING):
            request = self.asked.get(run_id)
            if request is not None:
                voters = self.stage.book.votes.get(self.content(run_id, request.subject_id), ())
                found += [(run_id, request, person) for person in sorted(voters)]
        return found

    def content(self, run_id: UUID, effect_id: UUID) -> Content:
        """What a vote on this effect is for now."""
        effect = self.effects[run_id][effect_id]
        return effect.id, bytes(effect.subject_digest)

    def note_request(self, run_id: UUID, status: Status) -> None:
        """What is asked of people now about a run, and under which policy that was opened."""
        request = self.stage.request(run_id) if status is Status.WAITING else None
        self.asked[run_id] = request
        if request is not None:
            self.stage.book.opened((request.pk, request.revision))

    def has_leave(self, effect: EffectRow, caller: Caller) -> None:
        """7 and 8. What was true when somebody decided allows nothing: a new permit rests on what is so now, and on exactly what was approved."""
        against = self.stage.book.against_call(effect.tool, caller.key_id)
        if not against and effect.tool.startswith("payments."):
            content = (effect.id, bytes(effect.subject_digest))
            against = self.stage.book.against_payment(
                content, effect.observed_version, self.now(), timedelta(seconds=FRESH_SECONDS)
            )
        assert not against, f"permitted, and {against}"
