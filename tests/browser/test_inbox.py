"""The inbox and the card in a real browser, with and without JavaScript."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from ledger.services import identity
from tests.browser.conftest import Console, Opened
from tests.ui.asking import address, ask, client_of, decide, votes
from tests.world import PASSWORD, RULES, World

pytestmark = pytest.mark.browser
ORDER = {"customer": "Eve", "status": "paid", "total_minor": 4200}
TYPED = "the photos show another parcel"


def inbox(world: World) -> str:
    return f"/t/{world.tenant.slug}/inbox/"


def opened(open_page: Opened, world: World, request: Any, person: Any = None, **how: Any) -> Page:
    page: Page = open_page(person or world.alice, **how)
    page.goto(address(world, request))
    return page


def approve(page: Page) -> None:
    page.get_by_role("button", name="Approve this refund").click()


def deny(page: Page) -> None:
    page.get_by_role("button", name="Deny").click()


# Deciding -----------------------------------------------------------------------------------


def test_approving_answers_in_place_and_the_focus_goes_on(world: World, open_page: Opened) -> None:
    request, after = ask(world, order=ORDER, hours=2), ask(world, hours=5)
    page = opened(open_page, world, request)
    expect(page.locator("#badge-inbox")).to_contain_text("2")
    approve(page)
    expect(page.locator("#toasts")).to_contain_text("The decision is recorded")
    expect(page.locator("#badge-inbox")).to_contain_text("1")
    expect(page.locator("#status")).to_contain_text("Approved.")
    expect(page.get_by_text("The agent has not resumed yet")).to_be_visible()
    following = page.get_by_role("link", name="Next that waits for you")
    expect(following).to_be_focused()
    assert votes(request) == [(world.alice.pk, "approve")]
    following.click()
    expect(page).to_have_url(page.url.split("/t/")[0] + address(world, after))


def test_a_denial_without_a_reason_comes_back_to_the_field_and_then_counts(
    world: World, open_page: Opened, console: Console
) -> None:
    request = ask(world)
    page = opened(open_page, world, request)
    console.expected.add(422)
    deny(page)
    expect(page.locator("#reason-error")).to_contain_text("A denial needs a reason")
    field = page.get_by_label("Reason or comment")
    expect(field).to_be_focused()
    field.fill(TYPED)
    deny(page)
    expect(page.get_by_text("Denied. The decision is recorded").first).to_be_visible()
    assert votes(request) == [(world.alice.pk, "deny")]
    page.reload()
    expect(page.get_by_label("Reason or comment")).to_have_count(0)


@pytest.mark.parametrize("choice", ["approve", "deny"])
def test_without_javascript_a_decision_is_posted_and_the_card_says_so(
    world: World, open_page: Opened, choice: str
) -> None:
    request = ask(world, order=ORDER)
    page = opened(open_page, world, request, scripts=False)
    page.get_by_label("Reason or comment").fill(TYPED)
    (approve if choice == "approve" else deny)(page)
    expect(page.locator(".banner")).to_contain_text("The decision is recorded")
    expect(page.get_by_role("button", name="Deny")).to_have_count(0)
    assert votes(request) == [(world.alice.pk, choice)]


def test_without_javascript_a_refused_denial_keeps_the_page(world: World, open_page: Opened, console: Console) -> None:
    request = ask(world)
    page = opened(open_page, world, request, scripts=False)
    console.expected.add(422)
    deny(page)
    expect(page.locator("#reason-error")).to_contain_text("A denial needs a reason")
    assert not votes(request)


def test_approve_is_not_focused_and_a_key_opens_but_never_decides(world: World, open_page: Opened) -> None:
    request = ask(world)
    page = open_page(world.alice)
    page.goto(inbox(world))
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Refund 42.00 EUR")
    assert page.evaluate("document.activeElement === document.body")
    for key in ("a", "d", "y", "Enter", "j"):
        page.keyboard.press(key)
    expect(page.get_by_role("button", name="Deny")).to_be_visible()
    assert not votes(request)


# Meanwhile ------------------------------------------------------------------------------------


def test_decided_by_another_while_typing_says_who_and_keeps_the_text(
    world: World, open_page: Opened, console: Console
) -> None:
    request = ask(world)
    page = opened(open_page, world, request)
    page.get_by_label("Reason or comment").fill(TYPED)
    decide(client_of(world.bob), world, request, "approve")
    console.expected.add(409)
    deny(page)
    expect(page.get_by_role("main").get_by_text("Decision recorded: approved by Bob")).to_be_visible()
    expect(page.get_by_label("What you typed, not sent")).to_have_value(TYPED)
    assert votes(request) == [(world.bob.pk, "approve")]


def test_an_open_card_turns_itself_to_decided(world: World, open_page: Opened) -> None:
    request = ask(world)
    page = opened(open_page, world, request)
    page.mouse.move(5, 500)
    decide(client_of(world.bob), world, request, "approve")
    expect(page.get_by_role("main").get_by_text("Decision recorded: approved by Bob")).to_be_visible(timeout=15_000)


def test_a_card_with_typed_text_is_never_swapped_but_offers_it(world: World, open_page: Opened) -> None:
    request = ask(world)
    page = opened(open_page, world, request)
    page.get_by_label("Reason or comment").fill(TYPED)
    page.mouse.move(5, 500)
    decide(client_of(world.bob), world, request, "approve")
    offer = page.get_by_role("button", name="This changed while you were here")
    expect(offer).to_be_visible(timeout=15_000)
    expect(page.get_by_label("Reason or comment")).to_have_value(TYPED)


def test_signed_out_meanwhile_nothing_is_lost_and_sending_again_works(
    world: World, open_page: Opened, console: Console
) -> None:
    request = ask(world)
    page = opened(open_page, world, request)
    page.get_by_label("Reason or comment").fill(TYPED)
    page.context.clear_cookies(name="resumeapp_session")
    console.expected.add(401)
    deny(page)
    expect(page.locator("#banner")).to_contain_text("Not saved: you are signed out.")
    expect(page.get_by_label("Reason or comment")).to_have_value(TYPED)
    with page.context.expect_page() as tab:
        page.get_by_role("link", name="Sign in in a new tab").click()
    other = tab.value
    other.get_by_label("E-mail").fill(world.alice.email)
    other.get_by_label("Password").fill(PASSWORD)
    other.get_by_role("button", name="Sign in").click()
    expect(other.get_by_role("heading", level=1)).to_contain_text("Inbox")
    page.get_by_role("button", name="Send again").click()
    expect(page.get_by_text("Denied. The decision is recorded").first).to_be_visible()
    assert votes(request) == [(world.alice.pk, "deny")]


def test_a_lost_token_keeps_the_form_and_one_click_sends_it_again(
    world: World, open_page: Opened, console: Console
) -> None:
    request = ask(world)
    page = opened(open_page, world, request)
    page.get_by_label("Reason or comment").fill(TYPED)
    kept = [cookie for cookie in page.context.cookies() if cookie["name"] == "resumeapp_csrf"]
    page.context.clear_cookies(name="resumeapp_csrf")
    console.expected.add(403)
    deny(page)
    expect(page.locator("#banner")).to_contain_text("Not saved: the page’s security token was old.")
    expect(page.get_by_label("Reason or comment")).to_have_value(TYPED)
    page.context.add_cookies(kept)  # type: ignore[arg-type]
    page.get_by_role("button", name="Send again").click()
    expect(page.get_by_text("Denied. The decision is recorded").first).to_be_visible()


def test_something_new_is_offered_by_a_bar_and_nothing_moves(world: World, open_page: Opened) -> None:
    ask(world)
    page = open_page(world.alice)
    page.goto(inbox(world))
    row = page.locator("[data-row]")
    row.hover()
    before = row.bounding_box()
    ask(world)
    bar = page.get_by_role("link", name="1 new, show")
    expect(bar).to_be_visible(timeout=25_000)
    expect(row).to_have_count(1)
    assert before and row.bounding_box() == before
    bar.click()
    expect(page.locator("[data-row]")).to_have_count(2)


# Accessible everywhere --------------------------------------------------------------------------


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1440, 360])
def test_every_state_of_inbox_and_card_is_accessible(
    world: World, open_page: Opened, accessible: Any, width: int, dark: bool
) -> None:
    world.policy(({**RULES[0], "quorum": 2}, *RULES[1:]))
    hostile = '{"amount_minor":4200,"currency":"EUR","order":"17","reason":"' + "<b>‮x</b>" * 400 + '"}'
    request, long = ask(world, order=ORDER), ask(world, arguments=hostile.encode(), order={"note": "n" * 500})
    signed_in, signed_out = (open_page(person, width=width, dark=dark) for person in (world.alice, None))
    signed_out.goto("/sign-in/")
    accessible(signed_out)
    for url in (inbox(world), address(world, request), address(world, long)):
        signed_in.goto(url)
        accessible(signed_in)
    decide(client_of(world.alice), world, request, "approve")
    signed_in.goto(address(world, request))
    accessible(signed_in)
    decide(client_of(world.bob), world, request, "deny", "no")
    decide(client_of(world.bob), world, long, "deny", "no")
    signed_in.goto(address(world, request))
    accessible(signed_in)
    signed_in.goto(inbox(world))
    expect(signed_in.get_by_text("All is well: nothing waits for you")).to_be_visible()
    accessible(signed_in)


def test_a_request_that_nobody_can_approve_is_accessible_and_loud(
    world: World, open_page: Opened, accessible: Any
) -> None:
    request = ask(world)
    for person in (world.alice, world.bob):
        identity.remove_from_team(world.admin, world.approvers, person)
    page = open_page(world.charlie)
    page.goto(inbox(world))
    accessible(page)
    page.get_by_role("link", name="See it").click()
    expect(page).to_have_url(page.url.split("/t/")[0] + address(world, request))
    accessible(page)
