"""Reconcile and handoffs in a real browser, with and without JavaScript."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from ledger.models import Effect
from tests.browser.conftest import Console, Opened
from tests.clock import Clock
from tests.documents import LOOKUP
from tests.ui.asking import client_of, receipt_of
from tests.ui.scenes import found_by, handed_over, horizon_of, just_lost, lost
from tests.world import World

pytestmark = pytest.mark.browser
EVIDENCE = "Statement of 30 November, line 4."


def at(world: World, effect: Effect) -> str:
    return reverse("effect", args=[world.tenant.slug, effect.pk])


COVERED = """() => {
  const cards = [...document.querySelectorAll("main .card")].map((card) => [card, card.getBoundingClientRect()]);
  const over = ([a, x], [b, y]) => !a.contains(b) && !b.contains(a)
    && x.left < y.right - 1 && y.left < x.right - 1 && x.top < y.bottom - 1 && y.top < x.bottom - 1;
  return cards.flatMap((one, n) => cards.slice(n + 1).filter((other) => over(one, other)).map(([card]) => card.innerText.slice(0, 40)));
}"""
"""The cards of a page that lie over another one."""


@pytest.mark.parametrize("width", [360, 1440])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_queue_effect_and_handoff_are_accessible_and_fit_their_window(
    world: World, clock: Clock, open_page: Opened, accessible: Callable[[Page], None], width: int, dark: bool
) -> None:
    page = open_page(world.charlie, width=width, dark=dark)
    for name in ("reconcile", "handoffs", "runs"):
        page.goto(reverse(name, args=[world.tenant.slug]))
        accessible(page)
    effect, handoff = lost(world, clock), handed_over(world, clock)
    for name, args in (
        ("reconcile", ()),
        ("effect", (effect.pk,)),
        ("handoffs", ()),
        ("handoff", (handoff.pk,)),
    ):
        page.goto(reverse(name, args=[world.tenant.slug, *args]))
        accessible(page)
        assert page.evaluate(COVERED) == [], "a card lies over another one"


@pytest.mark.parametrize("scripts", [True, False], ids=["htmx", "plain"])
def test_an_unknown_outcome_is_found_in_the_queue_and_settled(
    world: World, clock: Clock, open_page: Opened, scripts: bool
) -> None:
    effect = lost(world, clock)
    page = open_page(world.charlie, scripts=scripts)
    page.goto(reverse("reconcile", args=[world.tenant.slug]))
    expect(page.get_by_text("42.00 EUR at risk in 1 call")).to_be_visible()
    page.get_by_role("link", name="pay, order/17 at payments").click()
    page.get_by_text("It was done", exact=False).first.click()
    page.get_by_label("Evidence").fill(EVIDENCE)
    page.get_by_label("Reference at payments").fill("re_5512")
    page.get_by_role("button", name="Record the verdict").click()
    expect(page.get_by_text("Recorded: it was done. Nothing is sent again.")).to_be_visible()
    expect(page.get_by_text("The run is being checked and goes on by itself")).to_be_visible()
    settled = world.effect(effect.run_id)
    assert (settled.state, settled.reference) == ("committed", "re_5512")
    page.goto(reverse("reconcile", args=[world.tenant.slug]))
    expect(page.get_by_text("Every outcome is known")).to_be_visible()


@pytest.mark.parametrize("scripts", [True, False], ids=["htmx", "plain"])
def test_not_done_is_refused_with_a_time_and_accepted_once_it_has_come(
    world: World, clock: Clock, open_page: Opened, console: Console, scripts: bool
) -> None:
    effect = just_lost(world, clock)
    console.expected.add(422)
    page = open_page(world.charlie, scripts=scripts)
    page.goto(at(world, effect))
    hint = page.get_by_text("Possible once the call can no longer arrive").first
    expect(hint).to_be_visible()
    if scripts:
        expect(hint.locator("time")).to_contain_text("left")
    page.get_by_label("It was not done").check()
    page.get_by_label("Evidence").fill(EVIDENCE)
    page.get_by_role("button", name="Record the verdict").click()
    expect(page.locator("#verdict-error")).to_contain_text("Nobody can know yet that it was not done")
    expect(page.get_by_label("Evidence")).to_have_value(EVIDENCE)
    expect(page.get_by_label("It was not done")).to_be_checked()
    assert world.effect(effect.run_id).state == "unknown"
    clock.shift((horizon_of(effect) - clock.now()).total_seconds() + 1)
    page.get_by_role("button", name="Record the verdict").click()
    expect(page.get_by_text("Recorded: it was not done.")).to_be_visible()
    assert world.effect(effect.run_id).cause == "confirmed_absent"


def test_a_verdict_that_lacks_its_reference_comes_back_with_what_was_typed(
    world: World, clock: Clock, open_page: Opened, console: Console, accessible: Callable[[Page], None]
) -> None:
    effect = lost(world, clock)
    console.expected.add(422)
    page = open_page(world.charlie)
    page.goto(at(world, effect))
    page.get_by_label("It was done").check()
    page.get_by_label("Evidence").fill(EVIDENCE)
    page.get_by_role("button", name="Record the verdict").click()
    expect(page.locator("#reference-error")).to_contain_text("Give the target’s own reference")
    expect(page.locator("#status")).to_contain_text("Give the target’s own reference")
    expect(page.get_by_label("Evidence")).to_have_value(EVIDENCE)
    expect(page.get_by_label("It was done")).to_be_checked()
    accessible(page)
    assert world.effect(effect.run_id).state == "unknown"


def test_typed_evidence_survives_a_reload(world: World, clock: Clock, open_page: Opened) -> None:
    effect = lost(world, clock)
    page = open_page(world.charlie)
    page.goto(at(world, effect))
    page.get_by_label("It was refused for good").check()
    page.get_by_label("Evidence").press_sequentially(EVIDENCE)
    page.reload()
    expect(page.get_by_label("Evidence")).to_have_value(EVIDENCE)
    expect(page.get_by_label("It was refused for good")).to_be_checked()


@pytest.mark.parametrize("scripts", [True, False], ids=["htmx", "plain"])
def test_the_target_is_asked_again_by_a_button(world: World, clock: Clock, open_page: Opened, scripts: bool) -> None:
    found_by(world, LOOKUP)
    effect = lost(world, clock)
    page = open_page(world.charlie, scripts=scripts)
    page.goto(at(world, effect))
    page.get_by_role("button", name="Ask again now").click()
    expect(page.get_by_text("The target could not say, or did not answer")).to_be_visible()
    expect(
        page.get_by_role("region", name="What was asked and answered").get_by_text("nothing answers at its address")
    ).to_be_visible()


def test_a_handoff_is_taken_reconciled_and_closed(world: World, clock: Clock, open_page: Opened) -> None:
    handoff = handed_over(world, clock)
    page = open_page(world.charlie, scripts=False)
    page.goto(reverse("handoff", args=[world.tenant.slug, handoff.pk]))
    page.get_by_role("button", name="Take it").click()
    expect(page.get_by_text("It is yours now.")).to_be_visible()
    page.get_by_role("link", name="Reconcile “pay”").click()
    page.get_by_label("It was refused for good").check()
    page.get_by_label("Evidence").fill(EVIDENCE)
    page.get_by_role("button", name="Record the verdict").click()
    page.goto(reverse("handoff", args=[world.tenant.slug, handoff.pk]))
    page.get_by_label("Cancel the run").check()
    page.get_by_label("Reason").fill("The customer withdrew it.")
    page.get_by_role("button", name="Close the handoff").click()
    expect(page.get_by_text("Closed. The run is being cancelled.")).to_be_visible()
    expect(page.get_by_text("The customer withdrew it.")).to_be_visible()


def test_what_a_handoff_lacks_is_read_out_and_gets_the_focus(
    world: World, clock: Clock, open_page: Opened, console: Console
) -> None:
    console.expected.add(422)
    handoff = handed_over(world, clock)
    verdict = {"verdict": "rejected", "evidence": "the statement"}
    address = reverse("effect_verdict", args=[world.tenant.slug, world.effect(handoff.run_id).pk])
    charlie = client_of(world.charlie)
    assert charlie.post(reverse("handoff_own", args=[world.tenant.slug, handoff.pk])).status_code == 302
    opened = charlie.get(reverse("effect", args=[world.tenant.slug, world.effect(handoff.run_id).pk]))
    assert charlie.post(address, {**verdict, **receipt_of(opened.content.decode())}).status_code == 302
    page = open_page(world.charlie)
    page.goto(reverse("handoff", args=[world.tenant.slug, handoff.pk]))
    page.locator("form.decide").evaluate("form => { form.noValidate = true; }")
    page.get_by_role("button", name="Close the handoff").click()
    expect(page.locator("#status")).to_have_text("Choose what happens next.")
    expect(page.get_by_label("Wake the run")).to_be_focused()
    page.get_by_label("Wake the run").check()
    page.locator("form.decide").evaluate("form => { form.noValidate = true; }")
    page.get_by_role("button", name="Close the handoff").click()
    expect(page.locator("#status")).to_have_text("Say why, for whoever reads the record.")
    expect(page.get_by_label("Reason")).to_be_focused()
