"""A wrong reference of what a person settled: another one is given beside it, with evidence, and nothing else moves."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from ledger.domain.effects import LookAnswer, Read
from ledger.domain.errors import LedgerError
from ledger.domain.identity import Caller
from ledger.models import Effect, EffectReport, JournalEntry, User
from ledger.services import effects, verify
from tests.clock import Clock
from tests.ui.asking import client_of
from tests.ui.scenes import answered, lost
from tests.ui.test_disputes import EVIDENCE, page, say
from tests.world import World

RIGHT, WRONG = "wi_000002", "wi_000001"


def settled(world: World, clock: Clock, reference: str = WRONG) -> Effect:
    effect = lost(world, clock)
    say(world, effect, verdict="committed", evidence=EVIDENCE, reference=reference)
    found = world.effect(effect.run_id)
    assert (found.state, found.reference) == ("committed", reference)
    return found


def correct(world: World, effect: Effect, reference: str = RIGHT, **more: Any) -> Effect:
    person: User = more.pop("person", world.charlie)
    said = {"evidence": EVIDENCE, "read": effects.read_now(effect.pk), **more}
    caller = Caller(world.tenant.pk, f"person:{person.pk}", person_id=person.pk)
    effects.correct(caller, effect.pk, reference=reference, **said)
    return world.effect(effect.run_id)


def rows(world: World, effect: Effect) -> tuple[Any, int]:
    reports = EffectReport.objects.of(world.tenant).filter(effect=effect).count()
    return Effect.objects.of(world.tenant).filter(pk=effect.pk).values().get(), reports


def refused(world: World, effect: Effect, code: str, **more: Any) -> None:
    before = rows(world, effect)
    with pytest.raises(LedgerError) as caught:
        correct(world, effect, **more)
    assert caught.value.code == code and rows(world, effect) == before


def test_a_reference_of_another_call_is_refused_and_nothing_moves(world: World, clock: Clock) -> None:
    settled(world, clock, RIGHT)
    refused(world, settled(world, clock), "reference-taken")


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"evidence": "  "}, "invalid"),
        ({"reference": ""}, "invalid"),
        ({"reference": WRONG}, "invalid"),
        ({"reference": "w" * 201}, "invalid"),
        ({"read": Read(1, 0)}, "changed"),
    ],
)
def test_one_that_says_nothing_new_or_on_something_else_is_refused(
    world: World, clock: Clock, more: dict[str, Any], code: str
) -> None:
    refused(world, settled(world, clock), code, **more)


def test_only_a_person_who_operates_the_workflow_corrects(world: World, clock: Clock) -> None:
    effect = settled(world, clock)
    refused(world, effect, "forbidden", person=world.alice)
    with pytest.raises(LedgerError, match="person"):
        effects.correct(world.caller, effect.pk, EVIDENCE, RIGHT, read=effects.read_now(effect.pk))


def test_what_the_target_said_is_no_persons_to_correct(world: World, clock: Clock) -> None:
    effect = lost(world, clock)
    answered(effect, LookAnswer.APPLIED, clock.now(), reference=WRONG)
    refused(world, effect, "wrong-state")
    assert "its reference is another" not in page(world, "effect", effect.pk)


def test_what_is_open_or_disputed_has_no_reference_to_correct(world: World, clock: Clock) -> None:
    refused(world, lost(world, clock), "wrong-state")
    effect = settled(world, clock)
    clock.shift(600)
    say(world, effect, verdict="confirmed_absent", evidence=EVIDENCE)
    refused(world, effect, "wrong-state")


def test_a_corrected_reference_stands_beside_the_one_before_with_its_evidence_and_entry(
    world: World, clock: Clock
) -> None:
    effect = settled(world, clock)
    told = page(world, "effect", effect.pk)
    assert "It was done, and its reference is another" in told and "Needed for" in told
    told = say(world, effect, verdict="reference", evidence="Line 5, not 4.", reference=RIGHT)
    assert f"Recorded: it stands under {RIGHT}." in told
    now = world.effect(effect.run_id)
    assert (now.state, now.reference, now.disputed, now.held) == ("committed", RIGHT, False, "")
    side = told.split('id="settle"')[1]
    assert f"reference {WRONG}" in side and f"reference {RIGHT}" in side and "Line 5, not 4." in side
    assert "Reference corrected by hand" in side
    entry = JournalEntry.objects.of(world.tenant).filter(stream_id=effect.run_id).latest("seq")
    assert (entry.verb, entry.actor) == ("effect.correct", f"person:{world.charlie.pk}")
    assert verify.run(effect.run_id, world.tenant.pk).intact


def test_a_correction_moves_no_run_and_may_itself_be_corrected(world: World, clock: Clock) -> None:
    effect = settled(world, clock)
    status = world.head(effect.run_id).status
    correct(world, effect, "wi_3")
    assert correct(world, effect).reference == RIGHT
    assert world.head(effect.run_id).status == status
    kept = EffectReport.objects.of(world.tenant).filter(effect=effect, kind="verdict").order_by("ordinal")
    assert list(kept.values_list("reference", flat=True)) == [WRONG, "wi_3", RIGHT]


def test_a_call_is_found_by_the_reference_that_stands(world: World, clock: Clock) -> None:
    effect = settled(world, clock)
    correct(world, effect)
    runs = reverse("runs", args=[world.tenant.slug])
    run = reverse("run", args=[world.tenant.slug, effect.run_id])
    found = {each: run in client_of(world.charlie).get(runs, {"q": each}).content.decode() for each in (RIGHT, WRONG)}
    assert found == {RIGHT: True, WRONG: False}


def test_a_reference_that_was_corrected_away_is_free_for_the_call_that_it_belongs_to(
    world: World, clock: Clock
) -> None:
    first = settled(world, clock)
    correct(world, first)
    settled(world, clock, WRONG)
