"""The card as it is read: what would be done comes before the decision, for eyes, for a phone and for a screen reader alike."""

from __future__ import annotations

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from tests.browser.conftest import Opened
from tests.ui.asking import address, ask, client_of, decide
from tests.world import World

pytestmark = pytest.mark.browser
ORDER = {"amount_minor": 8700, "refunded_minor": 0, "currency": "EUR"}
READ = [
    "What it would change",
    "Exactly what would be sent",
    "What it touches",
    "Who asks",
    "Why the agent wants it",
    "Evidence",
    "The target now: order/17",
    "Earlier on this",
    "Decide",
]


def headings(page: Page) -> list[str]:
    return [text for text in page.locator("#card h2").all_inner_texts() if text in READ]


def top(page: Page, selector: str) -> float:
    box = page.locator(selector).bounding_box()
    assert box is not None
    return float(box["y"])


@pytest.mark.parametrize("width", [1440, 720, 360])
def test_all_that_is_decided_on_stands_before_the_decision(world: World, open_page: Opened, width: int) -> None:
    request = ask(world, order=ORDER)
    page = open_page(world.alice, width=width)
    page.goto(address(world, request))
    assert headings(page) == READ
    terms = page.locator("#decide").locator("dt, button").all_inner_texts()
    assert [term.strip() for term in terms] == [
        "If you approve",
        "If you deny",
        "If nobody acts",
        "Approve this refund",
        "Deny",
    ]
    expect(page.get_by_role("main").get_by_text("3 fields, unchanged")).to_be_visible()


@pytest.mark.parametrize("width", [720, 360])
def test_on_a_narrow_screen_a_link_leads_to_the_decision(world: World, open_page: Opened, width: int) -> None:
    page = open_page(world.alice, width=width)
    page.goto(address(world, ask(world, order=ORDER)))
    assert top(page, "#target") < top(page, "form.decide")
    jump = page.get_by_role("link", name="Go to the decision")
    expect(jump).to_be_in_viewport()
    jump.click()
    expect(page.get_by_role("heading", name="Decide")).to_be_in_viewport()


def test_on_a_wide_screen_the_decision_stands_beside_what_is_read(world: World, open_page: Opened) -> None:
    page = open_page(world.alice)
    page.goto(address(world, ask(world, order=ORDER)))
    expect(page.get_by_role("link", name="Go to the decision")).to_be_hidden()
    expect(page.get_by_role("button", name="Approve this refund")).to_be_in_viewport(ratio=1)
    assert abs(top(page, "#decide") - top(page, ".alerting")) < 2


@pytest.mark.parametrize("width", [1440, 360])
def test_what_came_of_a_decided_request_comes_first(world: World, open_page: Opened, width: int) -> None:
    request = ask(world, order=ORDER)
    decide(client_of(world.bob), world, request, "approve")
    page = open_page(world.alice, width=width)
    page.goto(reverse("approval", args=[world.tenant.slug, request.pk]))
    expect(page.get_by_role("heading", name="What came of it")).to_be_in_viewport()
    assert page.locator("#card h2").all_inner_texts()[0] == "What came of it"
