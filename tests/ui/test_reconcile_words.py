"""What the pages of a call say was asked, answered and recorded is what was: nothing is said to be asked or confirmed that wasn't."""

from __future__ import annotations

import html
from typing import Any

import pytest
from django.urls import reverse

from approvals.models import ApprovalRequest
from approvals.services import effect_lines
from ledger.domain.effects import LookAnswer, Settled, SettleSpec
from ledger.models import Effect
from ledger.services import effects, events
from tests.clock import Clock
from tests.documents import LOOKUP, REPLAY
from tests.engine.test_meetings import meeting_an_event
from tests.ui.asking import address, client_of, receipt_of
from tests.ui.scenes import answered, called, found_by, horizon_of, just_lost, lost
from tests.world import World

EVIDENCE = "Statement of 30 November, line 4."


def page(world: World, name: str = "reconcile", *args: Any) -> str:
    text: str = client_of(world.charlie).get(reverse(name, args=[world.tenant.slug, *args])).content.decode()
    return html.unescape(text)


def send(world: World, effect: Effect, name: str = "effect_verdict", **typed: str) -> str:
    path = reverse(name, args=[world.tenant.slug, effect.pk])
    read = receipt_of(page(world, "effect", effect.pk))
    return html.unescape(client_of(world.charlie).post(path, {**read, **typed}, follow=True).content.decode())


def settled(world: World, outcome: Settled, cause: str = "") -> Effect:
    """A call that its worker reported so, and the run goes on with it."""
    packet, effect = called(world)
    effects.settle(world.caller, effect.pk, SettleSpec(1, outcome, cause, reference="re_1"), packet.fence)
    return world.effect(packet.run.id)


def test_a_target_that_cannot_be_asked_has_no_button_and_never_answers(world: World, clock: Clock) -> None:
    effect = lost(world, clock)
    told = page(world, "effect", effect.pk)
    assert "Ask again now" not in told and "Asked next" not in told
    assert "looked up" not in page(world)
    asked = send(world, effect, "effect_ask")
    assert " once<" not in page(world) and "not asked yet" not in page(world)
    assert "This target can’t be asked." in asked and "The target answered" not in asked


def test_a_target_that_stays_silent_is_not_said_to_have_answered(world: World, clock: Clock) -> None:
    found_by(world, LOOKUP)
    effect = lost(world, clock)
    assert "Ask again now" in page(world, "effect", effect.pk)
    asked = send(world, effect, "effect_ask")
    assert "The target could not say, or did not answer" in asked and "The target answered" not in asked
    assert "no connection: nothing answers at its address" in asked


def test_a_target_that_is_left_alone_for_now_is_not_said_to_have_been_asked(world: World, clock: Clock) -> None:
    found_by(world, LOOKUP)
    effect = lost(world, clock)
    answered(effect, LookAnswer.CANNOT_TELL, clock.now(), cause="breaker-open")
    for told in (page(world), page(world, "effect", effect.pk), page(world, "run", effect.run_id)):
        assert "ot asked: it stayed silent lately" in told
        assert "The target was asked" not in told and "ooked up: can’t tell" not in told


def test_a_look_by_sending_the_same_again_is_not_said_to_be_by_key(world: World, clock: Clock) -> None:
    found_by(world, REPLAY)
    effect = lost(world, clock)
    effects.begin_replay(effect.pk)
    answered(effect, LookAnswer.APPLIED, clock.now(), reference="re_1")
    told = page(world, "effect", effect.pk)
    assert "Looked up: it was done" in told and "by key" not in told
    assert "can be asked by sending the same again" in told


def test_two_looks_that_found_the_same_say_which_of_them_counted(world: World, clock: Clock) -> None:
    found_by(world, LOOKUP)
    effect = just_lost(world, clock)
    answered(effect, LookAnswer.ABSENT, clock.now())
    for name, row in (("effect", effect.pk), ("run", effect.run_id)):
        assert page(world, name, row).count("too early to count") >= 1, name
    assert "that settles nothing yet: it is asked again" in page(world, "run", effect.run_id)
    clock.shift((horizon_of(effect) - clock.now()).total_seconds() + 1)
    answered(effect, LookAnswer.ABSENT, clock.now())
    told = page(world, "effect", effect.pk).split('id="asked"')[1].split("</section>")[0]
    assert told.count("Looked up: not there") == 2 and told.count("too early to count") == 1
    timeline = page(world, "run", effect.run_id)
    assert timeline.count("that settles nothing yet") == 1


def test_what_a_target_does_not_promise_is_not_told_as_its_answer(world: World) -> None:
    found_by(world, LOOKUP)
    target = world.effect(called(world)[0].run.id).target
    promised = {fact.label: fact.value for fact in effect_lines.guarantees(target)}
    assert promised["Repeat"] == "not promised" and promised["Look-up"] == "can be asked by key"


def test_a_call_that_only_its_worker_reported_is_not_said_to_be_confirmed(world: World) -> None:
    effect = settled(world, Settled.COMMITTED)
    request = ApprovalRequest.objects.of(world.tenant).get(subject_id=effect.pk)
    card = html.unescape(client_of(world.alice).get(address(world, request)).content.decode())
    assert "Done: recorded as carried out" in card and "the target confirmed it" not in card


def test_a_verdict_against_a_recorded_outcome_says_what_it_did(world: World) -> None:
    failed = settled(world, Settled.FAILED, "rejected")
    after_all = send(world, failed, verdict="committed", evidence=EVIDENCE, reference="re_7")
    assert world.effect(failed.run_id).state == "unknown"
    assert "you found that it was done. Its outcome is open again." in after_all
    assert "Recorded: it was done. Nothing is sent again." not in after_all
    done = settled(world, Settled.COMMITTED)
    doubted = send(world, done, verdict="confirmed_absent", evidence=EVIDENCE)
    assert "Recorded: you found that it was not done. It stays recorded as done; it is flagged" in doubted


@pytest.mark.parametrize("typed", [{"evidence": EVIDENCE}, {"verdict": "rejected"}, {}], ids=["choice", "why", "both"])
def test_what_a_verdict_lacks_is_read_out_once(world: World, clock: Clock, typed: dict[str, str]) -> None:
    told = send(world, lost(world, clock), **typed)
    assert told.count("data-announce") == 1
    assert ("data-focus" in told) == ("verdict" not in typed)


def test_why_a_request_was_withdrawn_is_told_in_words(world: World) -> None:
    run_id, *met = meeting_an_event(world, or_approval=True)
    request = ApprovalRequest.objects.of(world.tenant).get(run_id=run_id)
    assert events.deliver(run_id, *met)
    card = html.unescape(client_of(world.alice).get(address(world, request)).content.decode())
    assert "Withdrawn before a decision: its wait ended" in card
    assert "its wait ended" in page(world, "run", run_id) and "wait closed" not in page(world, "run", run_id)
