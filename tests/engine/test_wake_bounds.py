"""What a wake may do again has a bound, what is no fault of the run isn't counted, and what a person answered isn't asked of one again."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from approvals.models import ApprovalRequest
from ledger.domain.commits import Next, NextKind
from ledger.domain.handoffs import Outcome
from ledger.domain.workflows import VersionSpec
from ledger.engine import gather, wakes
from ledger.models import Effect, Handoff, WaitMember, Wake
from ledger.services import handoffs, workflows
from ledger.services import wakes as wake_rows
from tests.clock import Clock
from tests.documents import SCHEMA, TRANSITIONS
from tests.engine.waking import answer, asking, check, claim, commit, pay, replanning, say, timer, wake
from tests.shop import Shop
from tests.world import World

ALLOW = ({"tool": "*", "verdict": "allow"},)
ISSUE = Next(NextKind.GIVE_BACK, "issue")


def overtake(world: World, clock: Clock, run_id: UUID, times: int) -> None:
    """So many checks of the run, during each of which somebody is added to the tenant."""
    for number in range(times):
        clock.shift(30)
        taken = wake_rows.begin(run_id)
        assert taken is not None
        gathered = gather.gather(run_id, taken)
        world.person(f"p{number}")
        assert wake_rows.apply(run_id, gathered) is None


def person_wakes(world: World, run_id: UUID) -> None:
    operator = replace(world.caller, person_id=world.charlie.pk, actor=f"person:{world.charlie.pk}")
    blocked = Handoff.objects.of(world.tenant).get(run_id=run_id, state="open")
    handoffs.close(operator, blocked.pk, Outcome.WAKE, "looked into it")


def state(world: World, run_id: UUID) -> tuple[str, str]:
    row = Effect.objects.of(world.tenant).get(run_id=run_id)
    return row.state, row.cause


def test_people_who_are_added_during_every_check_use_up_no_attempt(world: World, clock: Clock) -> None:
    run_id = commit(world, world.claimed_run(), timer(-1))
    overtake(world, clock, run_id, 5)
    clock.shift(30)
    assert wake(world, run_id).decision == "resume"
    row = Wake.objects.of(world.tenant).get(run_id=run_id)
    assert (row.attempt, row.overtaken) == (1, 5)


def test_administration_that_never_rests_gives_the_run_to_a_person_in_the_end(world: World, clock: Clock) -> None:
    run_id = commit(world, world.claimed_run(), timer(-1))
    overtake(world, clock, run_id, 10 + 3)
    clock.shift(30)
    assert wake(world, run_id).reasons == ["attempts:never_finished"]


def test_after_a_persons_wake_the_agent_goes_on_without_what_the_policy_denies(world: World, shop: Shop) -> None:
    run_id = asking(world)
    say(world, world.alice, run_id)
    world.policy(({"tool": "payments.*", "verdict": "deny"},))
    assert wake(world, run_id).reasons == ["policy:denied"]
    person_wakes(world, run_id)
    decision = wake(world, run_id)
    assert decision.decision == "resume" and check(world, decision, "policy").reason == "denied"
    assert state(world, run_id) == ("withdrawn", "denied")
    assert [each.row.cause for each in claim(world, run_id).effects] == ["denied"]


def test_a_policy_that_allows_it_again_by_then_lets_the_call_be_made(world: World, shop: Shop) -> None:
    run_id = asking(world)
    say(world, world.alice, run_id)
    world.policy(({"tool": "payments.*", "verdict": "deny"},))
    wake(world, run_id)
    world.policy(ALLOW)
    person_wakes(world, run_id)
    assert wake(world, run_id).decision == "resume" and state(world, run_id) == ("proposed", "")


@pytest.mark.parametrize("conflict", ["hand_off", "ask_again"])
def test_after_a_persons_wake_the_agent_goes_on_without_a_call_whose_target_moved(
    world: World, shop: Shop, conflict: str
) -> None:
    if conflict == "ask_again":
        world.policy(ALLOW)
    moved = {**TRANSITIONS, "issue": {**TRANSITIONS["issue"], "on_conflict": [conflict]}}
    workflows.register(world.caller, "refund", "3", VersionSpec(SCHEMA, "assess", moved, ("1", "2")))
    world.start_run(version="3")
    run_id = commit(world, world.claim("3"), ISSUE, pay())
    if conflict == "hand_off":
        assert wake(world, run_id).decision == "ask_again"
        say(world, world.alice, run_id)
    shop.version = "2"
    assert wake(world, run_id).decision == "hand_off"
    person_wakes(world, run_id)
    decision = wake(world, run_id)
    assert decision.decision == "resume" and check(world, decision, "target").answer == "pass"
    assert state(world, run_id) == ("withdrawn", "superseded")


def test_more_calls_than_a_wait_holds_are_asked_for_in_groups(world: World, shop: Shop) -> None:
    world.policy(ALLOW)
    many = [pay(name=f"pay-{number:02}") for number in range(21)]
    run_id = commit(world, world.claimed_run(), ISSUE, *many)
    world.policy(({"tool": "*", "verdict": "approve", "group": "approvers"},))
    asked = []
    for _ in range(2):
        assert wake(world, run_id).decision == "ask_again"
        open_ones = ApprovalRequest.objects.of(world.tenant).filter(run_id=run_id, state="pending")
        asked.append(WaitMember.objects.of(world.tenant).filter(run_id=run_id, state="open").count())
        for request in open_ones:
            answer(world, world.alice, request)
    assert asked == [20, 1]
    assert wake(world, run_id).decision == "resume"


def test_an_order_that_moves_at_every_wake_is_planned_anew_three_times_and_then_shown_to_a_person(
    world: World, shop: Shop
) -> None:
    world.policy(ALLOW)
    packet, decided = replanning(world), []
    for number in range(4):
        run_id = commit(world, packet, ISSUE, pay())
        shop.version = f"moved-{number}"
        decided.append(wake(world, run_id))
        if number < 3:
            packet = world.claim("3")
    assert [row.decision for row in decided] == ["replan"] * 3 + ["hand_off"]
    assert decided[-1].reasons == ["target:moved_unasked:replanned_enough"]
    person_wakes(world, run_id)
    assert wake(world, run_id).decision == "replan", "a person has looked: it is counted anew"
    assert wakes.run(run_id) is None
