"""Taking one's own vote back, while nothing is decided."""

from __future__ import annotations

import pytest
from django.urls import reverse

from approvals.services import inbox
from approvals.services.votes import withdraw_vote
from ledger.domain.errors import LedgerError
from ledger.engine import wakes
from ledger.services import identity, targets, verify
from ledger.services.targets import TargetSpec
from tests.approvals.asking import Asked, asked, rule
from tests.clock import Clock
from tests.ui.asking import client_of
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


def set_up_otherwise(world: World) -> None:
    """The target is registered anew at another address."""
    spec = TargetSpec("payments", "http://127.0.0.1:8", True, key_retention=86_400, private=True)
    targets.register(world.admin, spec)


def test_votes_for_a_target_as_it_was_are_not_carried_when_another_is_taken_back(world: World) -> None:
    identity.add_to_team(world.admin, world.approvers, world.charlie)
    ask = asked(world, rule(quorum=3))
    for user in (world.alice, world.bob):
        ask.decide(user)
    set_up_otherwise(world)
    assert withdraw_vote(world.bob, ask.request_id, 1) == 2
    assert not [vote for vote in ask.votes if vote.revision == 2]
    assert [ask.decide(user).state for user in (world.bob, world.charlie, world.alice)][-1] == "approved"
    assert str(wakes.run(ask.run_id)) == "resume" and not verify.run(ask.run_id).faults


def test_votes_for_a_target_as_it_was_are_not_carried_when_another_lost_its_right(world: World) -> None:
    identity.add_to_team(world.admin, world.approvers, world.charlie)
    ask = asked(world, rule(quorum=2))
    for user in (world.alice, world.bob):
        ask.decide(user)
    set_up_otherwise(world)
    identity.remove_from_team(world.admin, world.approvers, world.bob)
    assert str(wakes.run(ask.run_id)) == "ask_again"
    assert not [vote for vote in ask.votes if vote.revision == 2]
    assert ask.decide(world.charlie).state == "pending", "Alice approved it at the address before"


def test_the_card_says_what_changed_when_a_vote_was_taken_back(world: World) -> None:
    ask = asked(world, rule(quorum=2))
    ask.decide(world.alice)
    withdraw_vote(world.alice, ask.request_id, 1)
    assert "Nothing of it changed: an approver took their vote back." in card(world, ask)
    ask.decide(world.alice)
    set_up_otherwise(world)
    withdraw_vote(world.alice, ask.request_id, 2)
    told = card(world, ask)
    assert (
        "The target is set up otherwise now (payments was at http://127.0.0.1:9 and is at http://127.0.0.1:8 now)."
        in told
        and "Nothing of it changed" not in told
    )
    assert "carried over;" not in told and "other approvals were carried over" not in told


def card(world: World, ask: Asked) -> str:
    return client_of(world.bob).get(reverse("approval", args=[world.tenant.slug, ask.request_id])).content.decode()
