"""A call of which two accounts contradict each other: both are shown, each answer says what it comes to, and no page says that all is over."""

from __future__ import annotations

import html
import re
from uuid import UUID

from django.urls import reverse

from ledger.domain.commits import Next, NextKind
from ledger.domain.effects import LookAnswer, Settled, SettleSpec
from ledger.models import Effect, Handoff
from ledger.services import effects, explain
from tests.clock import Clock
from tests.documents import STATE
from tests.ui.asking import client_of, receipt_of
from tests.ui.scenes import answered, called, lost
from tests.world import World

EVIDENCE = "Statement of 30 November, line 4."


def page(world: World, name: str, *args: object) -> str:
    text: str = client_of(world.charlie).get(reverse(name, args=[world.tenant.slug, *args])).content.decode()
    return html.unescape(text)


def say(world: World, effect: Effect, **typed: str) -> str:
    read = receipt_of(page(world, "effect", effect.pk))
    path = reverse("effect_verdict", args=[world.tenant.slug, effect.pk])
    return html.unescape(client_of(world.charlie).post(path, {**read, **typed}, follow=True).content.decode())


def disputed(world: World, clock: Clock) -> Effect:
    """The target said that it was done, and a person that it wasn't, while the run goes on."""
    effect = lost(world, clock)
    answered(effect, LookAnswer.APPLIED, clock.now(), reference="re_1")
    say(world, effect, verdict="confirmed_absent", evidence=EVIDENCE)
    found = world.effect(effect.run_id)
    assert found.disputed
    return found


def disputed_of_ended(world: World, clock: Clock) -> Effect:
    """The same of a run that has completed."""
    packet, effect = called(world)
    effects.settle(world.caller, effect.pk, SettleSpec(1, Settled.COMMITTED, reference="re_1"), packet.fence)
    world.commit(packet, Next(NextKind.COMPLETE), state=STATE)
    clock.shift(600)
    say(world, effect, verdict="confirmed_absent", evidence=EVIDENCE)
    found = world.effect(packet.run.id)
    assert found.disputed and world.head(packet.run.id).status == "completed"
    return found


def hints(told: str) -> list[str]:
    return re.findall(r'<span class="hint untrusted">([^<]*)</span>', told)


def test_both_accounts_are_shown_and_the_form_asks_which_holds(world: World, clock: Clock) -> None:
    effect = disputed(world, clock)
    told = page(world, "effect", effect.pk)
    side = told.split('id="settle"')[1]
    assert "Which account holds?</h2>" in side and "New evidence says otherwise" not in side
    assert "Looked up: it was done" in side and "Settled by hand: failed" in side


def test_each_answer_says_what_it_comes_to(world: World, clock: Clock) -> None:
    effect = disputed(world, clock)
    done, absent = hints(page(world, "effect", effect.pk))
    assert done != absent
    assert "stays recorded as done under re_1" in done and "your finding that it was not" in absent
    assert "what waits for it goes on" in done and "what waits for it goes on" in absent


def test_nothing_is_said_to_wait_for_a_run_that_has_ended(world: World, clock: Clock) -> None:
    effect = disputed_of_ended(world, clock)
    for told in hints(page(world, "effect", effect.pk)):
        assert "the run stays ended as it is" in told and "goes on" not in told


def test_a_reference_is_asked_for_only_where_an_answer_needs_one(world: World, clock: Clock) -> None:
    effect = lost(world, clock)
    assert "Needed for “It was done”." in page(world, "effect", effect.pk)
    answered(effect, LookAnswer.APPLIED, clock.now(), reference="re_1")
    assert 'name="reference"' not in page(world, "effect", effect.pk), "only that it was not done can be said"
    say(world, effect, verdict="confirmed_absent", evidence=EVIDENCE)
    assert "Only where you found it under another one" in page(world, "effect", effect.pk)
    say(world, effect, verdict="committed", evidence=EVIDENCE)
    assert (world.effect(effect.run_id).held, world.effect(effect.run_id).reference) == ("committed", "re_1")


def test_an_account_that_holds_under_another_reference_stands_under_that_one(world: World, clock: Clock) -> None:
    effect = disputed(world, clock)
    told = say(world, effect, verdict="committed", evidence=EVIDENCE, reference="re_2")
    assert world.effect(effect.run_id).reference == "re_2" and "reference re_1" in told


def test_a_run_that_ended_on_a_disputed_outcome_is_not_said_to_be_over(world: World, clock: Clock) -> None:
    effect = disputed_of_ended(world, clock)
    told = explain.explain(effect.run_id)
    assert "nothing more happens" not in told.sentence and told.actor == "an operator"
    assert "it is disputed what became of “pay”, and a person has to say which account holds" in told.sentence
    assert told.sentence in page(world, "run", effect.run_id)
    say(world, effect, verdict="committed", evidence=EVIDENCE)
    assert "nothing more happens" in explain.explain(effect.run_id).sentence


def test_a_handoff_over_a_dispute_says_so_in_title_and_badge(world: World, clock: Clock) -> None:
    effect = disputed_of_ended(world, clock)
    handoff: UUID = Handoff.objects.of(world.tenant).get(run_id=effect.run_id).pk
    told = page(world, "handoff", handoff)
    assert "has ended, and it is disputed what became of “pay”." in told and "isn’t known" not in told
    unknown = told.split("Not known</h2>")[1].split("</section>")[0]
    assert "Committed</span>" in unknown and "Disputed</span>" in unknown
