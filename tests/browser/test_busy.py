"""Busy is what was asked for, and nothing else: the other form of the card, and other cards, stay as usable as they were."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, Route, expect

from approvals.models import ApprovalRequest
from tests.browser.conftest import Console, Opened
from tests.engine.waking import asking
from tests.shop import open_shop, register
from tests.ui.asking import address, ask, votes
from tests.world import World

pytestmark = pytest.mark.browser


def held(page: Page, ending: str) -> list[Route]:
    """What the page sends to such addresses from now on; nothing is answered until it is let go."""
    waiting: list[Route] = []
    page.route(f"**/*{ending}", lambda route: waiting.append(route))
    return waiting


def test_a_look_that_takes_long_leaves_the_decision_of_its_own_card_and_of_another_usable(
    world: World, open_page: Opened
) -> None:
    with open_shop() as shop:
        register(world, shop)
        run_id = asking(world)
        request = ApprovalRequest.objects.of(world.tenant).get(run_id=run_id)
        page = open_page(world.alice)
        page.goto(address(world, request))
        looks = held(page, "/look/")
        again = page.get_by_role("button", name="Look again")
        again.click()
        expect(again).to_be_disabled()
        approve, deny = (page.get_by_role("button", name=name) for name in ("Approve this refund", "Deny"))
        expect(approve).to_be_enabled()
        expect(deny).to_be_enabled()
        busy = page.locator(".htmx-request")
        expect(busy).not_to_have_count(0)
        assert page.locator(".htmx-request form.decide, form.decide.htmx-request").count() == 0
        page.get_by_label("Reason or comment").fill("typed meanwhile")
        expect(page.get_by_label("Reason or comment")).to_have_value("typed meanwhile")
        other = ask(world)
        second = open_page(world.bob)
        second.goto(address(world, other))
        expect(second.locator(".htmx-request")).to_have_count(0)
        second.get_by_role("button", name="Approve this refund").click()
        expect(second.locator("#toasts")).to_contain_text("The decision is recorded")
        approve.click()
        expect(page.locator("#toasts")).to_contain_text("The decision is recorded")
        assert votes(request) == [(world.alice.pk, "approve")] and votes(other) == [(world.bob.pk, "approve")]
        for route in looks:
            route.fulfill(status=204)


def test_a_decision_that_takes_long_is_sent_once_and_busies_its_own_form_alone(world: World, open_page: Opened) -> None:
    request = ask(world)
    page = open_page(world.alice)
    page.goto(address(world, request))
    decisions = held(page, "/decide/")
    approve, deny = (page.get_by_role("button", name=name) for name in ("Approve this refund", "Deny"))
    approve.click()
    expect(approve).to_be_disabled()
    page.evaluate("document.querySelector('form.decide').requestSubmit()")
    assert len(decisions) == 1
    elsewhere = page.locator("button:not(form.decide button):disabled")
    expect(elsewhere).to_have_count(0)
    expect(deny).to_be_disabled()
    decisions[0].continue_()
    expect(page.locator("#toasts")).to_contain_text("The decision is recorded")
    notice, card = page.locator("#toasts > *").bounding_box(), page.locator("#main .card").first.bounding_box()
    assert notice and card and notice["y"] + notice["height"] <= card["y"], "a notice lies over nothing that is read"
    expect(deny).to_have_count(0)
    assert votes(request) == [(world.alice.pk, "approve")]


def test_while_a_decision_is_out_neither_can_be_pressed_and_the_focus_comes_back(
    world: World, open_page: Opened, console: Console
) -> None:
    console.expected |= {503}
    request = ask(world)
    page = open_page(world.alice)
    page.goto(address(world, request))
    decisions = held(page, "/decide/")
    page.get_by_label("Reason or comment").fill("No photo.")
    approve, deny = (page.get_by_role("button", name=name) for name in ("Approve this refund", "Deny"))
    deny.focus()
    page.keyboard.press("Enter")
    expect(deny).to_be_disabled()
    expect(approve).to_be_disabled()
    decisions[0].fulfill(status=503)
    expect(deny).to_be_enabled()
    expect(approve).to_be_enabled()
    expect(deny).to_be_focused()
    page.keyboard.press("Enter")
    expect(deny).to_be_disabled()
    decisions[1].continue_()
    expect(page.locator("#toasts")).to_contain_text("Denied. The decision is recorded")
    assert votes(request) == [(world.alice.pk, "deny")]
