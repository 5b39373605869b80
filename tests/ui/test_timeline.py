"""A run's timeline leads with what happened and to what, in words that nobody has to look up."""

from __future__ import annotations

from uuid import UUID

from approvals.services import run_pages
from ledger.domain.commits import Next, NextKind
from ledger.domain.effects import LookAnswer, Settled, SettleSpec
from ledger.domain.identity import Verb
from ledger.services import effects, identity
from tests.clock import Clock
from tests.ui.asking import ask
from tests.ui.scenes import answered, called, handed_over, lost
from tests.world import World


def told(world: World, run_id: UUID) -> dict[str, str]:
    """Title → text of a run's timeline, as an operator reads it."""
    return {item.title: item.text for item in run_pages.run(world.charlie, world.tenant, run_id).timeline}


def test_a_report_and_a_look_up_lead_with_what_was_said(world: World, clock: Clock) -> None:
    effect = lost(world, clock)
    answered(effect, LookAnswer.CANNOT_TELL, clock.now(), cause="http-503")
    assert told(world, effect.run_id)["Asked payments about “pay”: can’t tell"] == "it answered 503"
    packet, effect = called(world)
    effects.settle(world.caller, effect.pk, SettleSpec(1, Settled.FAILED, cause="rejected"), packet.fence)
    assert told(world, effect.run_id)["“pay” reported: failed"] == "refused for good"


def test_a_proposal_and_a_permit_name_the_target_and_the_resource_there(world: World) -> None:
    packet, effect = called(world)
    assert effect.resource
    lines = told(world, packet.run.id)
    assert f"proposes “pay” at payments, {effect.resource}" in lines["Finished “assess”"]
    assert lines["Call “pay” to payments allowed, attempt 1"].startswith(f"on {effect.resource} · ")


def test_a_timeline_tells_what_happened_and_leaves_what_would_happen_to_the_wait(world: World) -> None:
    packet, _ = called(world)
    assert not [text for text in told(world, packet.run.id).values() if "at its deadline" in text]


def test_why_a_person_has_it_is_a_part_of_its_line(world: World, clock: Clock) -> None:
    handoff = handed_over(world, clock)
    line = told(world, handoff.run_id)["Asked payments about “pay”: there, but different"]
    assert "handed to a person: the target has something under this key, but not what was asked for · " in line


def test_a_wake_says_what_it_found_in_words(world: World, clock: Clock) -> None:
    effect = lost(world, clock)
    page = run_pages.run(world.charlie, world.tenant, effect.run_id)
    assert [(check.recorded_value, check.observed_value) for check in page.wakes[0].checks if check.answer == "pass"]
    assert {(c.recorded_value, c.observed_value) for c in page.wakes[0].checks if c.answer == "pass"} == {("", "")}


def test_the_checkpoint_that_changed_the_state_last_is_the_open_one(world: World) -> None:
    packet = world.claimed_run()
    state = {"order": "17", "amount_minor": 4200, "currency": "EUR"}
    for seq in (1, 2):
        world.commit(packet, Next(NextKind.GO_ON, "think"), state={**state, "amount_minor": 99}, seq=seq)
    page = run_pages.run(world.charlie, world.tenant, packet.run.id)
    assert [line.opened for line in page.checkpoints] == [False, True, False]


def test_what_a_person_said_stands_with_their_vote_for_who_may_read_it(world: World) -> None:
    packet, _ = called(world)
    onlooker = world.person("olga")
    identity.grant_permission(world.admin, onlooker, Verb.SEE, world.workflow)
    for person, said in ((world.charlie, "approved by Alice, “The photos show it.”"), (onlooker, "approved by Alice")):
        lines = run_pages.run(person, world.tenant, packet.run.id).authority
        assert [line.text for line in lines if line.href] == [said]


def test_a_run_that_waits_for_people_leads_to_what_they_are_asked(world: World) -> None:
    request = ask(world)
    page = run_pages.run(world.charlie, world.tenant, request.run_id)
    assert (page.attention, page.attention_href.split("/")[-2]) == ("Open the request", str(request.pk))


def test_a_lease_that_is_over_is_not_told_as_running(world: World, clock: Clock) -> None:
    packet = world.claimed_run()
    labels = lambda: [fact.label for fact in run_pages.run(world.charlie, world.tenant, packet.run.id).owner]  # noqa: E731
    assert "Lease until" in labels()
    clock.shift(3_600)
    assert "Lease ended" in labels() and "Lease until" not in labels()
