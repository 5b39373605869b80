"""Taking one's own vote back, while nothing is decided."""

from __future__ import annotations

import pytest

from approvals.services import inbox
from approvals.services.votes import withdraw_vote
from ledger.domain.errors import LedgerError
from ledger.services import identity, verify
from tests.approvals.asking import Asked, asked, rule
from tests.clock import Clock
from tests.world import World


def refused(user: object, ask: Asked, revision: int = 1) -> str:
    with pytest.raises(LedgerError) as refusal:
        withdraw_vote(user, ask.request_id, revision)  # type: ignore[arg-type]
    return refusal.value.code


def test_who_has_not_voted_has_nothing_to_take_back(world: World) -> None:
    ask = asked(world, rule(quorum=2))
    ask.decide(world.alice)
    assert refused(world.bob, ask) == "changed"
    assert refused(World().alice, ask) == "not-found"
    assert refused(world.alice, ask, revision=2) == "changed"
    assert ask.request.revision == 1


def test_after_the_quorum_or_decide_by_nothing_is_taken_back(world: World, clock: Clock) -> None:
    ask = asked(world)
    ask.decide(world.alice)
    late = asked(world, rule(quorum=2, decide_by=30))
    assert refused(world.alice, ask) == "already-decided"
    late.decide(world.alice)
    clock.shift(31)
    assert refused(world.alice, late) == "expired"


def test_a_vote_that_was_taken_back_counts_no_more_and_stays_in_the_record(world: World) -> None:
    identity.add_to_team(world.admin, world.approvers, world.charlie)
    ask = asked(world, rule(quorum=3))
    for user in (world.alice, world.bob):
        ask.decide(user)
    before = ask.request.decide_by
    assert withdraw_vote(world.alice, ask.request_id, 1) == 2
    assert ask.request.decide_by == before
    assert [(vote.voter_id, vote.revision) for vote in ask.votes if vote.revision == 2] == [(world.bob.pk, 2)]
    assert len([vote for vote in ask.votes if vote.revision == 1]) == 2
    assert ask.request_id in inbox.pending_for(world.alice, world.tenant).values_list("pk", flat=True)
    assert ask.decide(world.charlie).state == "pending"
    assert ask.decide(world.alice).state == "approved"
    assert not verify.run(ask.run_id).faults
