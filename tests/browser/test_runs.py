"""Runs and the history in a real browser."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from ledger.domain.commits import Next, NextKind
from ledger.domain.starts import StartSpec
from ledger.services import runs
from tests.browser.conftest import Opened
from tests.clock import Clock
from tests.ui.scenes import completed, handed_over, lost, named
from tests.world import World

pytestmark = pytest.mark.browser
HOSTILE = "<img src=x onerror=alert(1)> " + "W" * 120 + " \u202egnp.exe"


@pytest.mark.parametrize("width", [360, 1440])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_lists_and_run_are_accessible_and_fit_their_window(
    world: World, clock: Clock, open_page: Opened, accessible: Callable[[Page], None], width: int, dark: bool
) -> None:
    runs.start(
        world.caller,
        StartSpec("refund", "1", HOSTILE, {"order": "1", "amount_minor": 1, "currency": "EUR"}, {}, HOSTILE, named()),
    )
    hostile = world.claim().run.id
    effect = lost(world, clock)
    page = open_page(world.charlie, width=width, dark=dark)
    for name, args in (("runs", ()), ("run", (effect.run_id,)), ("run", (hostile,))):
        page.goto(reverse(name, args=[world.tenant.slug, *args]))
        accessible(page)
    auditor = open_page(world.dora, width=width, dark=dark)
    auditor.goto(reverse("history", args=[world.tenant.slug]))
    accessible(auditor)


def test_the_record_is_verified_in_place_and_without_javascript_on_a_page(world: World, open_page: Opened) -> None:
    run_id = completed(world)
    address = reverse("run", args=[world.tenant.slug, run_id])
    page = open_page(world.charlie)
    page.goto(address)
    page.get_by_role("button", name="Verify now").click()
    expect(page.locator("#verified")).to_contain_text("The record is intact")
    expect(page).to_have_url(f"{page.url.split('/t/')[0]}{address}")
    plain = open_page(world.charlie, scripts=False)
    plain.goto(address)
    plain.get_by_role("button", name="Verify now").click()
    expect(plain.get_by_text("The record is intact")).to_be_visible()
    plain.get_by_role("link", name="Back to the run").click()
    expect(plain.get_by_role("heading", name="What happened")).to_be_visible()


def test_an_open_run_page_notices_that_its_run_has_moved(world: World, open_page: Opened) -> None:
    packet = world.claimed_run()
    page = open_page(world.charlie)
    page.goto(reverse("run", args=[world.tenant.slug, packet.run.id]))
    expect(page.locator("#explanation")).to_contain_text("A worker has worked on")
    world.commit(packet, Next(NextKind.COMPLETE))
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.locator("#explanation")).to_contain_text("It completed at")
    expect(page.locator("#side")).to_contain_text("no longer holds it")
    page.get_by_role("link", name="The run has moved, show").click()
    expect(page.locator("#timeline")).to_contain_text("the run has completed")
    expect(page.get_by_text("The run has moved")).to_have_count(0)


@pytest.mark.parametrize(
    ("width", "said"), [(1440, "x"), (360, "x"), (1440, "It waits. " * 90), (360, "It waits. " * 30)]
)
def test_what_is_read_stays_in_its_place_when_the_run_moves(
    world: World, open_page: Opened, width: int, said: str
) -> None:
    packet = world.claimed_run()
    page = open_page(world.charlie, width=width)
    page.goto(reverse("run", args=[world.tenant.slug, packet.run.id]))
    # The sentence of the state before may be shorter than the next one, or longer.
    page.evaluate("(said) => { document.querySelector('#explanation strong').textContent = said }", said)
    link = page.get_by_role("link", name="What happened")
    link.hover()
    before = link.bounding_box()
    world.commit(packet, Next(NextKind.COMPLETE))
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.get_by_role("link", name="The run has moved, show")).to_be_visible()
    after = link.bounding_box()
    assert before and after and abs(after["y"] - before["y"]) < 1, (before, after)


def test_the_top_button_verifies_in_place(world: World, open_page: Opened) -> None:
    page = open_page(world.charlie)
    page.goto(reverse("run", args=[world.tenant.slug, completed(world)]))
    page.get_by_role("button", name="Verify", exact=True).click()
    expect(page.locator("#verified-top")).to_contain_text("The record is intact")


@pytest.mark.parametrize("width", [280, 390])
def test_pages_of_the_record_fit_a_narrow_window(world: World, clock: Clock, open_page: Opened, width: int) -> None:
    effect = lost(world, clock)
    page = open_page(world.dora, width=width)
    for name, args in (("run", (effect.run_id,)), ("effect", (effect.pk,)), ("runs", ()), ("history", ())):
        page.goto(reverse(name, args=[world.tenant.slug, *args]))
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        assert page.evaluate("document.querySelector('.rail').scrollWidth") <= width, name


def test_rows_are_walked_and_opened_by_keys(world: World, open_page: Opened) -> None:
    completed(world)
    page = open_page(world.charlie)
    page.goto(reverse("runs", args=[world.tenant.slug]))
    page.keyboard.press("j")
    expect(page.locator("[data-open]").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#explanation")).to_contain_text("completed")


def test_filters_are_in_the_address_and_an_empty_answer_says_so(world: World, open_page: Opened) -> None:
    completed(world)
    page = open_page(world.charlie, scripts=False)
    page.goto(reverse("runs", args=[world.tenant.slug]))
    page.get_by_label("Status").select_option("failed")
    page.get_by_role("button", name="Filter", exact=True).click()
    assert "status=failed" in page.url
    expect(page.get_by_text("No run matches")).to_be_visible()
    page.get_by_role("link", name="Show all runs").click()
    expect(page.get_by_role("link", name="refund order 17")).to_be_visible()


def test_the_run_leads_to_what_needs_a_person(world: World, clock: Clock, open_page: Opened) -> None:
    handoff = handed_over(world, clock)
    page = open_page(world.charlie)
    page.goto(reverse("run", args=[world.tenant.slug, handoff.run_id]))
    page.get_by_role("link", name="Open the handoff").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("the outcome of “pay” isn’t known")
