"""What is said twice, late, or of a call that was made twice: nothing of it is lost, and nobody has leave that nobody can use."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from resumeapp_client import effects as client_effects
from resumeapp_client.records import Effect as ClientEffect

from ledger.domain.effects import EffectState, LookAnswer
from ledger.domain.errors import LedgerError
from ledger.engine import sweep
from ledger.models import Effect, Grant, Handoff
from ledger.services import effects, leases
from ledger.services.effects import Looked
from tests.clock import Clock
from tests.scenarios.story import PAY, Story, waiting
from tests.world import World

ALLOW = ({"tool": "*", "verdict": "allow"},)
WIRE = {**PAY, "name": "wire", "tool": "wires.send", "target": "wires", "resource": ""}
GO_ON = {"kind": "go_on", "transition": "issue"}


def issuing(story: Story, world: World, *propose: dict[str, Any]) -> None:
    """In a worker's hands, cleared for what the policy allows."""
    world.policy(ALLOW)
    story.begin()
    story.commit(GO_ON, propose=list(propose))
    assert story.wake() == "resume"
    story.claim("1")


def wired_again(story: Story, world: World, clock: Clock) -> tuple[str, dict[str, Any]]:
    """A wire whose first worker fell silent, which a person found unsent, and which a second worker sends: its id, the first packet."""
    issuing(story, world, WIRE)
    first, effect = story.packet, story.effect("wire")
    story.permit(effect["id"])
    clock.shift(100)
    leases.lapse(story.run_id)
    sweep.sweep(1_000)
    story.judge(effect["id"], "confirmed_absent")
    sweep.sweep(1_000)
    story.claim("1")
    assert story.permit(effect["id"])["permit"]["attempt"] == 2
    return effect["id"], first


def lost_again(story: Story, clock: Clock) -> None:
    """The second worker falls silent as well, and a person is asked."""
    clock.shift(100)
    leases.lapse(story.run_id)
    for _ in range(2):
        sweep.sweep(1_000)


@pytest.mark.parametrize("order", ["before the second worker's report", "after it"])
def test_both_of_two_attempts_were_carried_out_at_a_target_without_keys_and_a_person_is_told(
    story: Story, world: World, clock: Clock, order: str
) -> None:
    effect_id, first = wired_again(story, world, clock)
    acts = [
        lambda: story.settle(effect_id, "committed", packet=first, reference="wire-1"),
        lambda: story.settle(effect_id, "committed", attempt=2, reference="wire-2"),
    ]
    for act in acts if order.startswith("before") else reversed(acts):
        act()
    effect = Effect.objects.of(world.tenant).get(pk=effect_id)
    assert (effect.state, effect.disputed, effect.reference) == ("committed", True, "wire-2")
    handoff = Handoff.objects.of(world.tenant).get(run_id=story.run_id, state="open")
    assert (handoff.reason, str(handoff.effect_id)) == ("effect-disputed", effect_id)
    assert story.commit("complete", status=409)["code"] == "effects-open"
    assert story.intact()


@pytest.mark.parametrize("then", ["the second worker's report", "a person's word"])
def test_the_receipt_of_an_earlier_attempt_says_nothing_about_the_later_one_that_nobody_heard_of(
    story: Story, world: World, clock: Clock, then: str
) -> None:
    effect_id, first = wired_again(story, world, clock)
    second = story.packet
    lost_again(story, clock)
    wire = Effect.objects.of(world.tenant).get(pk=effect_id)
    handoff = Handoff.objects.of(world.tenant).get(run_id=story.run_id, state="open")
    assert (wire.state, wire.attempt) == ("unknown", 2)
    assert story.settle(effect_id, "committed", packet=first, reference="wire-1")["counted"]
    wire.refresh_from_db()
    assert (wire.state, wire.disputed) == ("unknown", True), "the second wire is still looked for"
    assert Handoff.objects.of(world.tenant).get(run_id=story.run_id, state="open") == handoff
    assert story.run()["status"] == "blocked" and "may have happened twice" in story.page(effect_id)
    if then.startswith("the second"):
        story.settle(effect_id, "committed", attempt=2, packet=second, reference="wire-2")
        wire.refresh_from_db()
        assert (wire.state, wire.disputed, wire.reference) == ("committed", True, "wire-2")
        assert Handoff.objects.of(world.tenant).get(run_id=story.run_id, state="open") == handoff
        story.judge(effect_id, "committed", "wire-1 and wire-2")
    else:
        story.judge(effect_id, "committed", "wire-1")
    wire.refresh_from_db()
    assert (wire.state, wire.disputed, wire.held) == ("committed", False, "committed")
    assert not Handoff.objects.of(world.tenant).filter(run_id=story.run_id, state="open").exists()
    if then.startswith("a person"):
        story.settle(effect_id, "committed", attempt=2, packet=second, reference="wire-2")
        wire.refresh_from_db()
        assert wire.disputed, "the person knew of one wire"
    assert story.intact()


@pytest.mark.parametrize("verdict", ["confirmed_absent", "committed"])
def test_what_a_person_found_of_one_attempt_is_never_taken_for_the_next(
    story: Story, world: World, clock: Clock, verdict: str
) -> None:
    issuing(story, world, WIRE)
    effect_id = story.effect("wire")["id"]
    story.permit(effect_id)
    lost_again(story, clock)
    opened_before = story.page(effect_id)
    story.judge(effect_id, "confirmed_absent")
    sweep.sweep(1_000)
    story.claim("1")
    assert story.permit(effect_id)["permit"]["attempt"] == 2
    lost_again(story, clock)
    answer = story.operate(effect_id, "verdict", opened_before, verdict=verdict, reference="wire-1")
    told = answer.content.decode()
    assert answer.status_code == 412 and "it changed while you looked" in told and "Allowed again: attempt 2" in told
    assert "Settled by hand: failed" in told and "Became unknown" in told
    assert "the statement of the account</textarea>" in told and 'value="wire-1"' in told, "what was typed is kept"
    assert story.effect("wire")["state"] == "unknown"
    assert story.operate(effect_id, "ask", opened_before).status_code == 412
    assert story.judge(effect_id, verdict, "wire-2") and story.effect("wire")["state"] != "unknown"
    assert story.intact()


def test_that_the_later_attempt_was_not_made_leaves_the_receipt_of_the_earlier_one_to_a_person(
    story: Story, world: World, clock: Clock
) -> None:
    effect_id, first = wired_again(story, world, clock)
    lost_again(story, clock)
    story.settle(effect_id, "committed", packet=first, reference="wire-1")
    told = story.judge(effect_id, "confirmed_absent")
    wire = Effect.objects.of(world.tenant).get(pk=effect_id)
    assert (wire.state, wire.disputed) == ("failed", True), "nothing is sent a third time on that word alone"
    assert "may have happened twice" in told
    assert Handoff.objects.of(world.tenant).filter(run_id=story.run_id, state="open").exists()


def test_a_payment_that_was_made_on_its_second_attempt_is_never_told_as_found_undone(
    story: Story, world: World, clock: Clock
) -> None:
    issuing(story, world, PAY)
    effect_id = story.effect("pay")["id"]
    story.permit(effect_id)
    clock.shift(100)
    leases.lapse(story.run_id)
    story.sweep()
    assert (story.effect("pay")["state"], story.effect("pay")["cause"]) == ("failed", "confirmed_absent")
    effects.look(UUID(effect_id), Looked(LookAnswer.DIFFERS, clock.now(), 1))
    page = story.page(effect_id)
    assert "recorded as not done, and newer evidence says otherwise" in page and "looked up" in page
    page = story.judge(effect_id, "confirmed_absent")
    assert "It was not done" in page and "recorded as done" not in page
    assert story.wake() == "resume"
    story.claim("1")
    permit = story.permit(effect_id)["permit"]
    assert permit["attempt"] == 2 and story.pay(permit).status == 201
    told = story.settle(effect_id, "committed", attempt=2, reference="rf-2", result={"id": "rf-2"})
    assert client_effects.result(ClientEffect.model_validate(told["effect"])) == {"id": "rf-2"}
    page = story.page(effect_id)
    assert "It was done. The run has its result and nothing is sent again." in page
    effects.look(UUID(effect_id), Looked(LookAnswer.REFUSED, clock.now(), 2))
    assert story.effect("pay")["disputed"], "what comes later is news"
    assert story.intact()


def test_a_call_that_is_out_again_takes_no_verdict_on_its_dispute_yet(story: Story, world: World, clock: Clock) -> None:
    effect_id, first = wired_again(story, world, clock)
    story.settle(effect_id, "committed", packet=first, reference="wire-1")
    told = story.page(effect_id)
    assert "may have happened twice" in told and 'name="verdict"' not in told, "nothing is asked of anybody yet"
    operator = replace(world.caller, person_id=world.charlie.pk, actor=f"person:{world.charlie.pk}")
    read = effects.read_now(UUID(effect_id))
    with pytest.raises(LedgerError, match="wrong-state"):
        effects.verdict(operator, UUID(effect_id), EffectState.COMMITTED, "", "the statement", "wire-1", read=read)
    story.settle(effect_id, "committed", attempt=2, reference="wire-2")
    assert Effect.objects.of(world.tenant).get(pk=effect_id).disputed
    story.judge(effect_id, "committed", "wire-1 and wire-2")
    assert not Effect.objects.of(world.tenant).get(pk=effect_id).disputed
    assert not Handoff.objects.of(world.tenant).filter(run_id=story.run_id, state="open").exists()


@pytest.mark.parametrize("who", ["the worker that called", "somebody under another fence"])
def test_a_receipt_that_came_while_the_call_was_accepted_is_not_lost_by_its_order(
    story: Story, world: World, clock: Clock, who: str
) -> None:
    issuing(story, world, WIRE)
    first, effect_id = story.packet, story.effect("wire")["id"]
    story.permit(effect_id)
    story.settle(effect_id, "accepted", ask_after_seconds=3_600)
    clock.shift(100)
    leases.lapse(story.run_id)
    packet = first if who.startswith("the worker") else {**first, "fence": "0.999"}
    told = story.settle(effect_id, "committed", packet=packet, reference="wire-1", result={"id": "wire-1"})
    assert not told["counted"] and told["effect"]["state"] == "in_flight"
    clock.shift(24 * 3_600)
    for _ in range(3):
        story.sweep()
    wire, page = story.effect("wire"), story.page(effect_id)
    handed = Handoff.objects.of(world.tenant).filter(run_id=story.run_id, state="open").exists()
    if packet is first:
        assert (wire["state"], wire["reference"], wire["result"], handed) == (
            "committed",
            "wire-1",
            {"id": "wire-1"},
            False,
        )
        assert "the receipt that came before counts" in page
    else:
        assert (wire["state"], handed) == ("unknown", True) and "Became unknown" in page
    assert story.intact()


def test_two_attempts_under_one_key_are_one_call(story: Story, world: World, clock: Clock) -> None:
    issuing(story, world, PAY)
    first, effect = story.packet, story.effect("pay")
    story.permit(effect["id"])
    story.settle(effect["id"], "failed", cause="throttled")
    story.permit(effect["id"])
    story.settle(effect["id"], "committed", attempt=2, reference="r-1")
    story.settle(effect["id"], "committed", packet=first, reference="r-1")
    assert not Effect.objects.of(world.tenant).get(pk=effect["id"]).disputed


@pytest.mark.parametrize("field", ["settle", "withdraw"])
def test_an_effect_that_stands_twice_in_a_commit_is_refused_by_its_name(story: Story, world: World, field: str) -> None:
    issuing(story, world, PAY)
    effect_id = story.effect("pay")["id"]
    if field == "settle":
        story.permit(effect_id)
    twice = {
        "settle": [{"effect": effect_id, "attempt": 1, "outcome": "committed", "reference": "r-1"}] * 2,
        "withdraw": [effect_id] * 2,
    }
    document = story.commit("complete", status=422, **{field: twice[field]})
    assert document["code"] == "invalid" and "pay" in document["detail"] and field in document["detail"]
    assert story.effect("pay")["state"] == ("in_flight" if field == "settle" else "proposed") and story.intact()


def test_leave_that_was_given_again_for_a_failed_call_ends_with_its_run(story: Story, world: World) -> None:
    effect = story.ask()
    story.approve()
    story.wake()
    story.claim("1")
    story.permit(effect["id"])
    story.settle(effect["id"], "failed", cause="throttled")
    story.post(f"/runs/{story.run_id}/release", {"fence": story.packet["fence"]})
    story.move_order()
    assert story.wake() == "ask_again"
    story.approve(world.bob)
    assert story.wake() == "resume"
    story.claim("1")
    assert story.commit("complete")["status"] == "completed"
    states = (
        Grant.objects.of(world.tenant)
        .filter(run_id=story.run_id)
        .order_by("approved_at")
        .values_list("state", flat=True)
    )
    assert "live" not in states and states.last() == "voided"
    assert "Take the approval back" not in story.card(world.bob)


def test_nobody_waits_for_the_outcome_of_what_nobody_performs(story: Story, world: World) -> None:
    world.policy(ALLOW)
    story.begin()
    document = story.commit(waiting({"kind": "effect", "effect": "pay"}), propose=[PAY], status=409)
    assert document["code"] == "wrong-state" and "proposed" in document["detail"]


def test_a_withdrawn_effect_keeps_its_name_and_the_refusal_says_so(story: Story, world: World) -> None:
    issuing(story, world, PAY)
    effect_id = story.effect("pay")["id"]
    other = {**PAY, "request": {**PAY["request"], "amount_minor": 1}}
    told = story.commit(GO_ON, propose=[other], status=409)
    assert told["code"] == "effect-differs" and "under another name" in told["remedy"]
    told = story.commit(GO_ON, withdraw=[effect_id], propose=[other], status=409)
    assert told["code"] == "effect-differs" and told["remedy"].startswith("A withdrawn effect keeps its name")
