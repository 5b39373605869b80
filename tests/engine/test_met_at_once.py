"""Waits of the engine's own that are met as their wake opens them: the run goes on with one open wake, whatever people's side answers at once."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import pytest

from ledger.domain import decisions, transitions
from ledger.domain.change import Change
from ledger.domain.effects import EffectRow
from ledger.domain.transitions import Gathered
from ledger.domain.views import RunView
from ledger.domain.waits import Asked, Outcome
from ledger.domain.wakes import DecisionKind
from ledger.engine.gather import gather
from ledger.models import Wake
from ledger.services import verify, waits, wakes, writer
from ledger.services.drafts import run_draft
from ledger.services.explain import explain
from ledger.services.views import run_view
from tests.engine.waking import asking, claim, last_wait, say, wake
from tests.shop import Shop
from tests.world import World


def moved(world: World, shop: Shop) -> UUID:
    """A run whose approved order has moved, so that its wake asks again."""
    run_id = asking(world)
    say(world, world.alice, run_id)
    shop.version = "2"
    return run_id


def ask_again(run_id: UUID, outcome: str) -> None:
    """Apply the wake's decision, with people's side answering at once."""
    taken = wakes.begin(run_id)
    assert taken is not None
    gathered = gather(run_id, taken)
    decided = decisions.decide(gathered.checks, gathered.facts)
    assert decided.decision is DecisionKind.ASK_AGAIN

    def answered(effect: EffectRow, by: datetime, reason: str) -> Asked:
        return Asked(outcome)

    def rule(view: RunView) -> tuple[Change, Gathered]:
        draft = run_draft(view, wakes.ACTOR, "wake.decide", fresh_authority=True)
        transitions.apply(draft, view, gathered, decided, answered, lambda cause: None)
        return draft.change(), gathered

    writer.settle(lambda: run_view(run_id), rule)


@pytest.mark.parametrize("outcome", [Outcome.DENIED, Outcome.DENIED_BY_POLICY, Outcome.EXPIRED])
def test_leave_that_is_refused_at_once_wakes_the_run_again_and_its_agent_is_told(
    world: World, shop: Shop, outcome: Outcome
) -> None:
    run_id = moved(world, shop)
    ask_again(run_id, outcome)
    assert (world.head(run_id).status, last_wait(world, run_id).state) == ("waiting", "open")
    assert explain(run_id).sentence
    assert run_id in waits.due(100), "due at once: no message and nobody's word is needed"
    assert waits.expire_due(run_id) and not waits.expire_due(run_id)
    assert [row.state for row in Wake.objects.of(world.tenant).filter(run=run_id).order_by("opened_at")][-1] == "queued"
    assert wake(world, run_id).decision == "resume"
    assert world.effect(run_id).state == "withdrawn" and claim(world, run_id).run.id == run_id


@pytest.mark.parametrize("outcome", [Outcome.NOT_NEEDED, Outcome.APPROVED])
def test_leave_that_is_given_at_once_is_looked_at_by_another_wake(world: World, shop: Shop, outcome: Outcome) -> None:
    run_id = moved(world, shop)
    ask_again(run_id, outcome)
    assert waits.expire_due(run_id)
    assert last_wait(world, run_id).state == "satisfied"
    assert wake(world, run_id).decision == "ask_again", "no grant stands behind it: people are asked after all"
    assert verify.run(run_id).intact
