"""Pages that are left open: a decided card goes on to what came of it, an offer shows what is true at the click, a list tells what left it."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from approvals.models import ApprovalRequest
from ledger.domain.commits import Next, NextKind
from ledger.engine import wakes
from ledger.services import effects, identity
from tests.browser.conftest import Console, Opened
from tests.ui.asking import address, ask, client_of, decide, votes
from tests.world import RULES, World

pytestmark = pytest.mark.browser
SOON = 15_000
OFFER = "This changed while you were here"


def woken(request: ApprovalRequest) -> None:
    assert request.run_id is not None
    wakes.run(request.run_id)


def asked_again(page: Page) -> None:
    """The page asks at once whether anything is newer, and has its answer."""
    with page.expect_response(lambda response: "newer" in response.url):
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


def test_a_decided_card_goes_on_by_itself_with_mouse_and_focus_in_it(world: World, open_page: Opened) -> None:
    request, _ = ask(world), ask(world)
    page = open_page(world.alice)
    page.goto(address(world, request))
    page.get_by_role("button", name="Approve this refund").click()
    expect(page.get_by_role("main").get_by_text("The agent has not resumed yet")).to_be_visible()
    following = page.get_by_role("link", name="Next that waits for you")
    following.hover()
    expect(following).to_be_focused()
    woken(request)
    packet = world.claim("1", "2")
    expect(page.get_by_role("main").get_by_text("The agent resumed; no call is out yet")).to_be_visible(timeout=SOON)
    expect(page.get_by_role("link", name="Next that waits for you")).to_be_focused()
    expect(page.locator("#status")).to_contain_text("The agent resumed")
    effects.permit(world.caller, world.effect(packet.run.id).pk, packet.fence)
    expect(page.get_by_role("main").get_by_text("The agent resumed; the call is out")).to_be_visible(timeout=SOON)
    expect(page.get_by_role("main").get_by_text("The target as it was decided on")).to_be_visible()


def test_a_denied_card_goes_on_to_told_and_to_what_the_workflow_did(world: World, open_page: Opened) -> None:
    request = ask(world)
    page = open_page(world.alice)
    page.goto(address(world, request))
    page.get_by_label("Reason or comment").fill("the photos show a working lamp")
    page.get_by_role("button", name="Deny").click()
    expect(page.get_by_role("main").get_by_text("The agent has not been told yet")).to_be_visible()
    woken(request)
    packet = world.claim("1", "2")
    expect(page.get_by_role("main").get_by_text("The agent was told; its workflow goes on")).to_be_visible(timeout=SOON)
    world.commit(packet, Next(NextKind.COMPLETE))
    expect(page.get_by_role("main").get_by_text("The agent was told; its workflow completed")).to_be_visible(
        timeout=SOON
    )


def test_another_revision_never_takes_the_place_of_what_is_read(
    world: World, open_page: Opened, console: Console
) -> None:
    world.policy(({**RULES[0], "quorum": 2}, *RULES[1:]))
    request = ask(world)
    bob = client_of(world.bob)
    decide(bob, world, request, "approve")
    page = open_page(world.alice)
    page.goto(address(world, request))
    approve = page.get_by_role("button", name="Approve this refund")
    approve.hover()
    before = approve.bounding_box()
    assert bob.post(address(world, request, "approval_withdraw"), {"revision": "1"}).status_code == 302
    expect(page.get_by_role("button", name=OFFER)).to_be_visible(timeout=SOON)
    expect(page.locator("#status")).to_contain_text(OFFER)
    expect(page.locator("input[name=revision]")).to_have_value("1")
    assert approve.bounding_box() == before
    page.mouse.move(5, 500)
    asked_again(page)
    expect(page.locator("input[name=revision]")).to_have_value("1")
    console.expected.add(412)
    approve.click()
    expect(page.get_by_text("no longer what you read", exact=False).first).to_be_visible()
    assert world.alice.pk not in dict(votes(request))


def test_a_reader_whose_right_is_gone_is_told_and_keeps_what_was_typed(
    world: World, open_page: Opened, console: Console
) -> None:
    request = ask(world)
    page = open_page(world.alice)
    page.goto(address(world, request))
    page.get_by_label("Reason or comment").fill("typed")
    identity.leave(world.admin, world.alice)
    console.expected.add(404)
    expect(page.locator("#banner")).to_contain_text("You can’t see this any more.", timeout=SOON)
    expect(page.get_by_label("Reason or comment")).to_have_value("typed")
    expect(page.get_by_role("button", name="Approve this refund")).to_be_disabled()
    expect(page.get_by_role("button", name="Deny")).to_be_disabled()


def test_a_time_that_is_this_moment_says_so(world: World, open_page: Opened) -> None:
    page = open_page(world.alice)
    page.goto(address(world, ask(world)))
    page.evaluate(
        """() => {
      const at = new Date(Date.parse(document.querySelector("meta[name=server-now]").content) + 600).toISOString();
      document.querySelector("main").insertAdjacentHTML("beforeend", `<time id="now" datetime="${at}"><span data-rel></span></time>`);
      document.dispatchEvent(new Event("visibilitychange"));
    }"""
    )
    expect(page.locator("#now")).to_have_text("just now")


def test_an_offer_shows_how_it_is_at_the_click_and_not_how_it_was_when_offered(world: World, open_page: Opened) -> None:
    world.policy(({**RULES[0], "quorum": 2}, *RULES[1:]))
    request = ask(world)
    page = open_page(world.alice)
    page.goto(address(world, request))
    page.get_by_label("Reason or comment").fill("typed")
    bob = client_of(world.bob)
    decide(bob, world, request, "approve")
    offer = page.get_by_role("button", name=OFFER)
    expect(offer).to_be_visible(timeout=SOON)
    assert bob.post(address(world, request, "approval_withdraw"), {"revision": "1"}).status_code == 302
    offer.click()
    expect(page.get_by_role("main").get_by_text("Revision 2: what changed")).to_be_visible()
    expect(page.get_by_role("main").get_by_text("0 of 2 approvals")).to_be_visible()


def test_after_an_offer_the_card_still_asks_and_goes_on_once_nothing_typed_is_left(
    world: World, open_page: Opened
) -> None:
    request = ask(world)
    page = open_page(world.alice)
    page.goto(address(world, request))
    field = page.get_by_label("Reason or comment")
    field.fill("typed")
    decide(client_of(world.bob), world, request, "approve")
    expect(page.get_by_role("button", name=OFFER)).to_be_visible(timeout=SOON)
    field.fill("")
    page.get_by_role("heading", level=1).click()
    expect(page.get_by_role("main").get_by_text("Decision recorded: approved by Bob")).to_be_visible(timeout=SOON)


def test_a_card_that_is_only_looked_at_is_replaced_with_the_mouse_over_it(world: World, open_page: Opened) -> None:
    request = ask(world)
    page = open_page(world.alice)
    page.goto(address(world, request))
    page.get_by_role("main").get_by_text("Exactly what would be sent").hover()
    page.get_by_role("main").get_by_text("As JSON, complete").click()
    decide(client_of(world.bob), world, request, "approve")
    expect(page.get_by_role("main").get_by_text("Decision recorded: approved by Bob")).to_be_visible(timeout=SOON)
    expect(page.get_by_role("region", name="Complete final arguments")).to_be_visible()


def test_an_open_inbox_tells_what_was_decided_and_its_counts_stay_true(world: World, open_page: Opened) -> None:
    request = ask(world)
    page = open_page(world.alice)
    page.goto(f"/t/{world.tenant.slug}/inbox/")
    expect(page.get_by_role("main").get_by_text("1 shown of 1 waiting")).to_be_visible()
    decide(client_of(world.bob), world, request, "approve")
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    bar = page.get_by_role("link", name="1 decided meanwhile, show")
    expect(bar).to_be_visible(timeout=25_000)
    expect(page.get_by_role("main").get_by_text("0 waiting now; none of those shown still waits")).to_be_visible()
    expect(page.locator("#badge-inbox")).to_be_hidden()
    bar.click()
    expect(page.locator("[data-row]")).to_have_count(0)


def test_a_notice_leaves_by_itself_stays_under_the_mouse_and_is_not_stacked(world: World, open_page: Opened) -> None:
    request = ask(world)
    page = open_page(world.alice)
    page.clock.install()
    page.goto(address(world, request))
    page.get_by_role("button", name="Approve this refund").click()
    toast = page.locator(".toast", has_text="The decision is recorded")
    expect(toast).to_have_count(1)
    toast.evaluate("(one) => one.parentElement.append(one.cloneNode(true))")
    expect(toast).to_have_count(1)
    toast.hover()
    page.clock.run_for(20_000)
    expect(toast).to_have_count(1)
    page.mouse.move(5, 5)
    page.clock.run_for(9_000)
    expect(toast).to_have_count(0)
    expect(page.locator("#status")).to_contain_text("Approved.")
