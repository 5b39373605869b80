"""Reconcile: what may be said of an unknown outcome, by whom, with which evidence, and what each answer causes."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.urls import reverse

from approvals import receipts
from approvals.renderers import Asked, words_for
from approvals.services import reconcile_pages
from approvals.views import counts
from ledger.domain.effects import LookAnswer
from ledger.domain.identity import Verb
from ledger.engine import wakes
from ledger.models import Effect, EffectReport, JournalEntry
from ledger.services import effects, identity
from tests.clock import Clock
from tests.ui.asking import client_of, receipt_of
from tests.ui.scenes import answered, called, handed_over, horizon_of, just_lost, lost
from tests.world import World

EVIDENCE = "Statement of 30 November, line 4."


def send(world: World, effect: Effect, name: str = "effect_verdict", person: Any = None, **typed: str) -> Any:
    """Send a form of the call's page, as it was opened before (`receipt`) or is now."""
    client = client_of(person or world.charlie)
    page = client.get(reverse("effect", args=[world.tenant.slug, effect.pk])).content.decode()
    address = reverse(name, args=[world.tenant.slug, effect.pk])
    return client.post(address, {**receipt_of(page), **typed}, follow=True)


def reports(effect: Effect) -> list[tuple[str, str]]:
    rows = EffectReport.objects.of(effect.tenant_id).filter(effect=effect).order_by("ordinal")
    return list(rows.values_list("kind", "answer"))


def test_a_verdict_without_evidence_choice_or_reference_is_refused_and_keeps_what_was_typed(
    world: World, clock: Clock
) -> None:
    effect = lost(world, clock)
    before = reports(effect)
    for typed, said in (
        ({"verdict": "committed", "reference": "re_7", "evidence": "  "}, "Say where you looked"),
        ({"verdict": "committed", "evidence": EVIDENCE}, "own reference"),
        ({"evidence": EVIDENCE}, "Choose what happened"),
        ({"verdict": "written_off", "evidence": EVIDENCE}, "Choose what happened"),
    ):
        answer = send(world, effect, **typed)
        text = answer.content.decode()
        assert answer.status_code == 422 and said in text
        assert typed["evidence"].strip() in text and typed.get("reference", "") in text
    assert reports(effect) == before and world.effect(effect.run_id).state == "unknown"


def test_only_operators_may_ask_or_settle(world: World, clock: Clock) -> None:
    effect = lost(world, clock)
    other = World()
    for person, status in ((world.alice, 403), (world.dora, 403), (world.person("nobody"), 404), (other.charlie, 404)):
        for name in ("effect_ask", "effect_verdict"):
            answer = send(world, effect, name, person, verdict="rejected", evidence=EVIDENCE)
            assert answer.status_code == status, (person, name)
    assert send(other, effect, person=other.charlie, verdict="rejected", evidence=EVIDENCE).status_code == 404
    assert world.effect(effect.run_id).state == "unknown"
    page = client_of(world.alice).get(reverse("effect", args=[world.tenant.slug, effect.pk])).content.decode()
    assert "Record the verdict" not in page and "needs the right to operate" in page


def test_a_get_neither_asks_nor_settles(world: World, clock: Clock) -> None:
    effect = lost(world, clock)
    before = JournalEntry.objects.of(world.tenant).count()
    for name in ("effect_ask", "effect_verdict"):
        led = client_of(world.charlie).get(reverse(name, args=[world.tenant.slug, effect.pk]))
        assert (led.status_code, led["Location"]) == (302, reverse("effect", args=[world.tenant.slug, effect.pk]))
    assert JournalEntry.objects.of(world.tenant).count() == before


@pytest.mark.parametrize(
    ("verdict", "state", "cause", "says"),
    [
        ("committed", "committed", "", "It was done. Nothing is sent again."),
        ("confirmed_absent", "failed", "confirmed_absent", "The agent may send it again, with the same key."),
        ("rejected", "failed", "rejected", "The target refused it for good."),
    ],
)
def test_a_verdict_settles_and_the_page_says_what_came_of_it(
    world: World, clock: Clock, verdict: str, state: str, cause: str, says: str
) -> None:
    effect = lost(world, clock)
    answer = send(world, effect, verdict=verdict, evidence=EVIDENCE, reference="re_7")
    text = answer.content.decode()
    assert answer.status_code == 200 and answer.redirect_chain
    settled = world.effect(effect.run_id)
    assert (settled.state, settled.cause) == (state, cause)
    assert says in text and "The run is being checked" in text
    assert EVIDENCE in text and "Charlie" in text and "Settled by hand" in text
    assert reports(effect)[-1][0] == "verdict"
    assert f'data-draft-done="effect-{effect.pk}-1"' in text


@pytest.mark.parametrize(
    ("verdict", "says"),
    [
        ("committed", "a person looked into what spoke against it"),
        ("confirmed_absent", "a person found that it was not"),
    ],
)
def test_a_disputed_call_leaves_the_queue_once_a_person_says_which_account_holds(
    world: World, clock: Clock, verdict: str, says: str
) -> None:
    effect = lost(world, clock)
    answered(effect, LookAnswer.APPLIED, clock.now(), reference="re_1")
    doubted = send(world, effect, verdict="confirmed_absent", evidence=EVIDENCE).content.decode()
    assert "It stays recorded as done; it is flagged as disputed" in doubted and "may send it again" not in doubted
    assert "The dispute is over" in doubted, "both answers are offered"
    settled = send(world, effect, verdict=verdict, evidence=EVIDENCE, reference="re_1").content.decode()
    assert says in settled and "may send it again" not in settled
    assert not reconcile_pages.waiting_for(world.charlie, world.tenant).exists()


def test_a_verdict_on_what_was_settled_meanwhile_is_told_apart(world: World, clock: Clock) -> None:
    effect = lost(world, clock)
    answered(effect, LookAnswer.APPLIED, clock.now(), reference="re_1")
    assert world.effect(effect.run_id).state == "committed"
    answer = send(world, effect, verdict="committed", evidence=EVIDENCE, reference="re_7")
    assert answer.status_code == 422 and "Choose what happened" in answer.content.decode()


def test_a_form_that_was_opened_before_something_was_told_is_refused_with_what_was_told(
    world: World, clock: Clock
) -> None:
    effect = lost(world, clock)
    address = reverse("effect", args=[world.tenant.slug, effect.pk])
    opened = receipt_of(client_of(world.charlie).get(address).content.decode())
    answered(effect, LookAnswer.CANNOT_TELL, clock.now())
    for name in ("effect_verdict", "effect_ask"):
        answer = send(world, effect, name, **opened, verdict="committed", evidence=EVIDENCE, reference="re_7")
        text = answer.content.decode()
        assert answer.status_code == 412 and "it changed while you looked" in text and "Since you read it" in text
        assert "Looked up: can’t tell" in text.partition("Since you read it")[2].partition("</ol>")[0]
        if name == "effect_verdict":
            assert f"{EVIDENCE}</textarea>" in text and 'value="re_7"' in text and 'committed" required checked' in text
    assert reports(effect)[-1] == ("lookup", "cannot_tell") and world.effect(effect.run_id).state == "unknown"


@pytest.mark.parametrize("receipt", ["", "made up", "another person's", "another call's"])
def test_nothing_is_done_on_a_form_that_does_not_say_what_was_read(world: World, clock: Clock, receipt: str) -> None:
    effect = lost(world, clock)
    forms = {
        "another person's": receipts.seal_effect(effects.read_now(effect.pk), effect.pk, world.alice.pk),
        "another call's": receipts.seal_effect(effects.read_now(effect.pk), uuid4(), world.charlie.pk),
    }
    before, sent = reports(effect), forms.get(receipt, receipt)
    for name in ("effect_verdict", "effect_ask"):
        answer = send(world, effect, name, receipt=sent, verdict="committed", evidence=EVIDENCE, reference="re_7")
        assert answer.status_code == 428 and "did not say what you had read" in answer.content.decode()
    assert reports(effect) == before


def test_what_was_typed_on_a_call_that_is_out_again_is_kept(world: World, clock: Clock) -> None:
    effect = lost(world, clock)
    address = reverse("effect", args=[world.tenant.slug, effect.pk])
    opened = receipt_of(client_of(world.charlie).get(address).content.decode())
    send(world, effect, verdict="confirmed_absent", evidence="Nothing there.")
    wakes.run(effect.run_id)
    packet = world.claim()
    effects.permit(world.caller, effect.pk, packet.fence)
    answer = send(world, effect, **opened, verdict="confirmed_absent", evidence=EVIDENCE)
    text = answer.content.decode()
    assert answer.status_code == 412 and "Allowed again: attempt 2" in text
    assert "What you typed, not sent" in text and f"{EVIDENCE}</textarea>" in text


def test_not_done_says_from_when_it_can_be_known_and_keeps_what_was_typed_until_then(
    world: World, clock: Clock
) -> None:
    effect = just_lost(world, clock)
    address = reverse("effect", args=[world.tenant.slug, effect.pk])
    until = horizon_of(effect)
    said = until.strftime("%-d %b %Y, %H:%M:%S UTC")
    page = client_of(world.charlie).get(address).content.decode()
    assert "Possible once the call can no longer arrive" in page and said in page
    answer = send(world, effect, verdict="confirmed_absent", evidence=EVIDENCE, reference="re_typed")
    text = answer.content.decode()
    assert answer.status_code == 422 and f"the call may still arrive until {said}" in text
    assert EVIDENCE in text and 'value="re_typed"' in text and 'value="confirmed_absent" required checked' in text
    assert world.effect(effect.run_id).state == "unknown"
    clock.shift((until - clock.now()).total_seconds() + 1)
    assert "Possible once the call can no longer arrive" not in client_of(world.charlie).get(address).content.decode()
    assert send(world, effect, verdict="confirmed_absent", evidence=EVIDENCE).status_code == 200
    assert world.effect(effect.run_id).cause == "confirmed_absent"


def test_done_can_be_said_at_once_and_refused_once_the_call_can_t_arrive_any_more(world: World, clock: Clock) -> None:
    effect = just_lost(world, clock)
    assert send(world, effect, verdict="committed", evidence=EVIDENCE, reference="re_7").status_code == 200
    assert world.effect(effect.run_id).state == "committed"
    effect = just_lost(world, clock)
    page = client_of(world.charlie).get(reverse("effect", args=[world.tenant.slug, effect.pk])).content.decode()
    assert page.count("Possible once the call can no longer arrive") == 2
    answer = send(world, effect, verdict="rejected", evidence=EVIDENCE)
    assert answer.status_code == 422 and "the call may still arrive until" in answer.content.decode()
    clock.shift((horizon_of(effect) - clock.now()).total_seconds() + 1)
    assert send(world, effect, verdict="rejected", evidence=EVIDENCE).status_code == 200
    assert world.effect(effect.run_id).cause == "rejected"


def test_asking_again_records_what_came_of_it_under_the_person(world: World, clock: Clock) -> None:
    effect = lost(world, clock)
    answer = send(world, effect, "effect_ask")
    text = answer.content.decode()
    assert answer.status_code == 200 and "This target can’t be asked." in text
    assert reports(effect)[-1] == ("lookup", "cannot_tell")
    newest = EffectReport.objects.of(world.tenant).filter(effect=effect).latest("ordinal")
    assert newest.actor == f"person:{world.charlie.pk}"
    assert world.effect(effect.run_id).state == "unknown"


def test_the_queue_is_oldest_first_with_the_money_at_risk_and_equals_its_badge(world: World, clock: Clock) -> None:
    first = lost(world, clock, arguments=b'{"amount_minor":14900,"currency":"EUR"}')
    clock.shift(60)
    second = lost(world, clock, arguments=b'{"amount_minor":5000,"currency":"JPY"}')
    clock.shift(60)
    third = lost(world, clock, arguments=b'{"note":"nothing about money"}')
    packet, out = called(world, seconds=3600)
    assert packet
    found = reconcile_pages.queue(world.charlie, world.tenant)
    assert [row.id for row in found.rows] == [first.pk, second.pk, third.pk]
    assert found.at_risk == ("149.00 EUR", "5,000 JPY") and found.at_risk_partial
    clock.shift(3600)
    found = reconcile_pages.queue(world.charlie, world.tenant)
    assert [row.id for row in found.rows][-1] == out.pk and found.rows[-1].why == "The call’s answer is overdue."
    badge = counts.bounded(reconcile_pages.waiting_for(world.charlie, world.tenant).count())
    assert badge == found.page.total == str(len(found.rows)) == "4"


def test_a_blocked_run_is_said_to_go_on_once_its_call_is_settled(world: World, clock: Clock) -> None:
    """Settling it closes the handoff too: nobody need be told to do that first."""
    handoff = handed_over(world, clock)
    effect = world.effect(handoff.run_id)
    address = reverse("effect", args=[world.tenant.slug, effect.pk])
    text = client_of(world.charlie).get(address).content.decode()
    assert "The run is blocked, and can go on only once this is settled." in text
    send(world, effect, verdict="committed", evidence=EVIDENCE, reference="re_7")
    assert world.head(handoff.run_id).status == "waking"


def test_one_reference_proves_one_call_and_what_was_typed_is_kept(world: World, clock: Clock) -> None:
    first, second = lost(world, clock), lost(world, clock)
    assert send(world, first, verdict="committed", evidence=EVIDENCE, reference="re_7").status_code == 200
    answer = send(world, second, verdict="committed", evidence=EVIDENCE, reference="re_7")
    text = answer.content.decode()
    assert answer.status_code == 409 and "The reference re_7 stands already for another call at this target" in text
    second.refresh_from_db()
    assert EVIDENCE in text and second.state == "unknown"
    assert send(world, second, verdict="committed", evidence=EVIDENCE, reference="re_7/2").status_code == 200
    second.refresh_from_db()
    assert (second.state, second.reference) == ("committed", "re_7/2")


def test_money_is_hidden_from_operators_who_may_not_see_payloads(world: World, clock: Clock) -> None:
    lost(world, clock, arguments=b'{"amount_minor":98765,"currency":"EUR"}')
    person = world.person("olga")
    for verb in (Verb.SEE, Verb.OPERATE):
        identity.grant_permission(world.admin, person, verb, world.workflow)
    text = client_of(person).get(reverse("reconcile", args=[world.tenant.slug])).content.decode()
    assert "987.65" not in text and "The worker was lost while its call was out" in text


def test_the_queue_pages_without_losing_or_repeating_any(
    world: World, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost_ones = [lost(world, clock).pk for _ in range(5)]
    monkeypatch.setattr(reconcile_pages, "SHOWN", 2)
    seen, before = [], ""
    while True:
        found = reconcile_pages.queue(world.charlie, world.tenant, before)
        seen += [row.id for row in found.rows]
        before = found.page.next
        if not before:
            break
    assert seen == lost_ones


def test_an_empty_queue_says_that_all_is_well(world: World) -> None:
    text = client_of(world.charlie).get(reverse("reconcile", args=[world.tenant.slug])).content.decode()
    assert "Every outcome is known" in text


def test_the_effects_page_is_headed_by_its_verb_for_who_may_read_its_arguments(world: World, clock: Clock) -> None:
    effect = lost(world, clock)
    address = reverse("effect", args=[world.tenant.slug, effect.pk])
    assert (
        "Refund 42.00 EUR to the customer of order 17 at payments"
        in client_of(world.charlie).get(address).content.decode()
    )
    plain = client_of(world.dora).get(address).content.decode()
    assert "Call “pay” for order/17 at payments" in plain and "42.00" not in plain


def test_the_next_look_up_and_a_target_that_cant_be_asked_are_said_in_words(world: World, clock: Clock) -> None:
    effect = lost(world, clock)
    answered(effect, LookAnswer.CANNOT_TELL, clock.now(), cause="no-lookup")
    client = client_of(world.charlie)
    text = client.get(reverse("effect", args=[world.tenant.slug, effect.pk])).content.decode()
    assert "This target can’t be asked" in text and "no lookup" not in text
    assert "This target can’t be asked" in client.get(reverse("reconcile", args=[world.tenant.slug])).content.decode()


def test_a_wire_is_headed_by_its_verb() -> None:
    arguments = {"amount_minor": 250000, "currency": "EUR", "order": "2001"}
    assert (
        words_for(Asked("wires.send", "wires", "", arguments)).headline
        == "Send 2,500.00 EUR by wire for order 2001 at wires"
    )
    assert not words_for(Asked("wires.send", "wires", "", {"amount_minor": "x"})).rated
