"""Nobody decides what their own agent asked for, whichever of their agents it was; and the votes looked at are those of the grant in force."""

from __future__ import annotations

from uuid import uuid4

import pytest

from approvals.services import inbox
from approvals.services.votes import withdraw_vote
from ledger.domain.effects import Settled, SettleSpec
from ledger.domain.errors import LedgerError
from ledger.domain.identity import Caller
from ledger.engine import wakes
from ledger.models import Permit, User
from ledger.services import effects, identity, keys, leases
from tests.approvals.asking import Asked, asked, rule
from tests.clock import Clock
from tests.world import ANYTHING, EVERYTHING, World


def agent_of(world: World, owner: User) -> Caller:
    """An agent with a key, owned by this person."""
    agent_id = identity.add_agent(world.admin, f"agent-{uuid4().hex[:8]}", owner)
    issued = identity.issue_key(world.admin, "agent", EVERYTHING, agent_id=agent_id, **ANYTHING)
    return keys.authenticate(f"Bearer {issued.secret}")


def asked_by(world: World, caller: Caller) -> Asked:
    """A request that this agent made on a run which another agent had started."""
    run_id = world.start_run()
    starter, world.caller = world.caller, caller
    try:
        return asked(world, run_id=run_id)
    finally:
        world.caller = starter


def test_the_owner_of_the_agent_that_asks_doesn_t_decide_though_another_agent_started_the_run(world: World) -> None:
    run = asked_by(world, agent_of(world, world.alice))
    assert run.request_id not in inbox.pending_for(world.alice, world.tenant).values_list("pk", flat=True)
    with pytest.raises(LedgerError, match="self-approval"):
        run.decide(world.alice)
    assert not run.votes
    assert run.decide(world.bob).state == "approved"


def test_a_new_revision_excludes_whom_the_one_before_excluded(world: World) -> None:
    carol = world.person("carol")
    identity.add_to_team(world.admin, world.approvers, carol)
    world.policy((rule(quorum=2),))
    run = asked_by(world, agent_of(world, world.alice))
    run.decide(world.bob)
    withdraw_vote(world.bob, run.request_id, 1)
    assert run.request.revision == 2
    with pytest.raises(LedgerError, match="self-approval"):
        run.decide(world.alice)


def test_the_owner_of_the_agent_that_only_performs_what_was_approved_may_have_approved_it(world: World) -> None:
    run = asked(world)
    run.decide(world.alice)
    wakes.run(run.run_id)
    performer = agent_of(world, world.alice)
    (packet,) = leases.claim(performer, world.offer())
    assert effects.permit(performer, run.effect_id, packet.fence).attempt == 1


def test_the_votes_behind_the_grant_in_force_are_looked_at_and_not_those_of_a_used_one(
    world: World, clock: Clock
) -> None:
    run = asked(world, rule(use_by=30))
    run.decide(world.alice)
    wakes.run(run.run_id)
    packet = world.claim()
    effects.permit(world.caller, run.effect_id, packet.fence)
    effects.settle(world.caller, run.effect_id, SettleSpec(1, Settled.FAILED, "throttled"), packet.fence)
    assert [grant.state for grant in run.grants] == ["used"]
    _grant_again(world, run, world.bob)
    identity.remove_from_team(world.admin, world.approvers, world.bob)
    with pytest.raises(LedgerError) as refusal:
        effects.permit(world.caller, run.effect_id, packet.fence)
    assert (refusal.value.code, refusal.value.facts.get("why")) == ("grant-void", "votes-lost")
    assert Permit.objects.of(world.tenant).filter(effect_id=run.effect_id).count() == 1


def _grant_again(world: World, run: Asked, voter: User) -> None:
    """A second revision of the same request, approved by somebody else, beside the used grant of the first."""
    from approvals.domain import requests
    from approvals.domain.requests import Asking
    from approvals.services.asking import revision_of
    from ledger.domain.authority import give_grant, requirement
    from ledger.services import writer
    from ledger.services.drafts import run_draft
    from ledger.services.views import run_view

    view = run_view(run.run_id)
    effect = view.effect(run.effect_id)
    assert effect is not None
    (request,) = requests.rows_of(view)
    draft = run_draft(view, "system:wake", "request.again")
    needs = requirement(view.policy, effect.tool, "payments")
    again = Asking(view.run.id, view.head.workflow_id, effect, needs, frozenset(), request.decide_by, "expired")
    requests.revise(draft, again, request, revision_of(view, request))
    vote = run.votes[0]
    vote.voter_id = voter.pk
    requests.carry(draft, request, vote, ["approvers"])
    give_grant(draft, "effect", effect.id, effect.subject_digest, needs, request.id, 2)
    writer.apply(draft.change())
    assert [grant.state for grant in run.grants] == ["used", "live"]
