"""What each answer to htmx does in a real browser: text and focus are kept, nothing is sent by itself, and no error reaches the console.

The fixture `open_page` fails a test for every complaint of the console and of the content security policy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import Error, Page, Route, expect

from approvals.models import ApprovalRequest
from ledger.domain.identity import Verb
from ledger.models import Verification
from ledger.services import identity, verifications
from tests.browser.conftest import Console, Opened
from tests.clock import Clock
from tests.ui.asking import address, ask, client_of, decide, receipt_of, votes
from tests.ui.scenes import handed_over, lost
from tests.world import RULES, World

pytestmark = pytest.mark.browser
TYPED = "the photos show another parcel"
OURS = "Reason or comment"
KEPT = "What you typed, not sent"


class Sent:
    """What a page has sent, and that no answer to htmx was a redirect."""

    def __init__(self, page: Page) -> None:
        self.posts: list[str] = []
        self.moved: list[str] = []
        page.on("request", lambda request: request.method == "POST" and self.posts.append(request.url))
        page.on("response", self._answered)

    def _answered(self, response: Any) -> None:
        if "hx-request" in response.request.headers and 300 <= response.status < 400:
            self.moved.append(response.url)

    @contextmanager
    def once(self) -> Iterator[None]:
        """One form is sent in here, and no more."""
        before = len(self.posts)
        yield
        assert len(self.posts) == before + 1 and not self.moved


def typed(page: Page, world: World, request: ApprovalRequest) -> None:
    page.goto(address(world, request))
    page.get_by_label(OURS).fill(TYPED)


def deny(page: Page) -> None:
    page.get_by_role("button", name="Deny").click()


def voted(world: World, *requests: ApprovalRequest) -> bool:
    """Has Alice's vote on any of these been taken?"""
    return any(voter == world.alice.pk for each in requests for voter, _ in votes(each))


def answering(page: Page, status: int) -> Callable[[Route], None]:
    """The server as it fails: this answer to every form, instead of the product's."""

    def answer(route: Route) -> None:
        if route.request.method != "POST":
            route.continue_()
        elif status:
            route.fulfill(status=status, body="")
        else:
            route.abort("connectionrefused")

    page.route("**/*", answer)
    return answer


def test_every_refusal_keeps_text_and_focus_and_sends_nothing_again(
    world: World, clock: Clock, open_page: Opened, console: Console
) -> None:
    console.expected |= {409, 410, 412, 428}
    page = open_page(world.alice)
    sent = Sent(page)

    incomplete = ask(world)
    typed(page, world, incomplete)
    page.evaluate("document.getElementById('receipt').remove()")
    with sent.once():
        deny(page)
        expect(page.locator("#card").get_by_text("did not say which version")).to_be_visible()
    expect(page.get_by_label(OURS)).to_have_value(TYPED)
    expect(page.get_by_label(OURS)).to_be_focused()

    decided = ask(world)
    typed(page, world, decided)
    decide(client_of(world.bob), world, decided, "approve")
    with sent.once():
        deny(page)
        expect(page.get_by_text("this was approved before you came", exact=False).first).to_be_visible()
    expect(page.get_by_label(KEPT)).to_have_value(TYPED)
    expect(page.get_by_role("main").get_by_text("Decision recorded: approved by Bob")).to_be_visible()
    expect(page.get_by_label(KEPT)).to_be_focused()

    late = ask(world, hours=1)
    typed(page, world, late)
    clock.shift(3_700)
    with sent.once():
        deny(page)
        expect(page.get_by_text("the time to decide is over", exact=False).first).to_be_visible()
    expect(page.get_by_label(KEPT)).to_have_value(TYPED)
    expect(page.get_by_label(KEPT)).to_be_focused()

    world.policy(({**RULES[0], "quorum": 2}, *RULES[1:]))
    moved = ask(world)
    typed(page, world, moved)
    bob = client_of(world.bob)
    decide(bob, world, moved, "approve")
    assert bob.post(address(world, moved, "approval_withdraw"), {"revision": "1"}).status_code == 302
    with sent.once():
        deny(page)
        expect(page.get_by_text("no longer what you read", exact=False).first).to_be_visible()
    expect(page.get_by_role("main").get_by_text("Revision 2: what changed")).to_be_visible()
    expect(page.get_by_label(OURS)).to_have_value(TYPED)
    expect(page.get_by_label(OURS)).to_be_focused()
    assert not voted(world, incomplete, decided, late, moved)


def test_a_refusal_of_somebody_whose_right_is_gone_keeps_the_text_too(
    world: World, open_page: Opened, console: Console
) -> None:
    console.expected |= {403, 404}
    page = open_page(world.alice)
    sent = Sent(page)

    identity.grant_permission(world.admin, world.alice, Verb.SEE, world.workflow)
    forbidden = ask(world)
    typed(page, world, forbidden)
    identity.remove_from_team(world.admin, world.approvers, world.alice)
    with sent.once():
        deny(page)
        expect(page.get_by_label(KEPT)).to_have_value(TYPED)
    expect(page.get_by_label(KEPT)).to_be_focused()
    identity.add_to_team(world.admin, world.approvers, world.alice)

    gone = ask(world)
    typed(page, world, gone)
    identity.leave(world.admin, world.alice)
    with sent.once():
        deny(page)
        expect(page.locator("#banner")).to_contain_text("Nothing here that you can see")
    expect(page.get_by_label(OURS)).to_have_value(TYPED)
    expect(page.get_by_role("button", name="Deny")).to_be_focused()
    assert not voted(world, forbidden, gone)


def test_trouble_of_the_server_or_the_network_keeps_text_and_focus_and_sends_nothing_again(
    world: World, open_page: Opened, console: Console
) -> None:
    request = ask(world)
    page = open_page(world.alice)
    sent = Sent(page)
    typed(page, world, request)
    for status, said in (
        (500, "could not complete this (500)"),
        (503, "(503)"),
        (429, "Too many requests"),
        (0, "No connection"),
    ):
        console.expected |= {status}
        console.offline = not status
        answer = answering(page, status)
        with sent.once():
            deny(page)
            expect(page.locator("#toasts")).to_contain_text(said)
        page.unroute("**/*", answer)
        expect(page.get_by_role("button", name="Deny")).to_be_focused()
        expect(page.get_by_label(OURS)).to_have_value(TYPED)
        expect(page.get_by_role("button", name="Deny")).to_be_enabled()
    assert not votes(request)
    with sent.once():
        deny(page)
        expect(page.get_by_text("Denied. The decision is recorded").first).to_be_visible()
    assert votes(request) == [(world.alice.pk, "deny")]


def test_a_page_that_asks_while_signed_out_says_so_and_leaves_the_form(
    world: World, open_page: Opened, accessible: Callable[[Page], None]
) -> None:
    page = open_page(world.alice)
    sent = Sent(page)
    typed(page, world, ask(world))
    page.context.clear_cookies(name="resumeapp_session")
    with page.expect_response(lambda response: "newer" in response.url) as asked:
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    assert (asked.value.status, "/sign-in/" in asked.value.headers["hx-redirect"]) == (204, True)
    expect(page.locator("#banner")).to_contain_text("you are signed out")
    expect(page.get_by_label(OURS)).to_have_value(TYPED)
    expect(page.get_by_label(OURS)).to_be_focused()
    assert not sent.posts and not sent.moved
    accessible(page)


def test_nothing_newer_changes_nothing(world: World, open_page: Opened) -> None:
    page = open_page(world.alice)
    page.goto(address(world, ask(world)))
    page.evaluate("document.getElementById('card').dataset.mark = 'the same'")
    with page.expect_response(lambda response: "newer" in response.url) as asked:
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    assert asked.value.status == 204
    expect(page.locator("#card[data-mark='the same']")).to_have_count(1)


def test_the_second_tab_of_a_person_keeps_what_it_typed(world: World, open_page: Opened) -> None:
    request = ask(world)
    first = open_page(world.alice)
    typed(first, world, request)
    second = first.context.new_page()
    second.goto(address(world, request))
    expect(second.get_by_label(OURS)).to_have_value(TYPED)
    second.get_by_label(OURS).fill("another text")
    deny(first)
    expect(first.get_by_text("Denied. The decision is recorded").first).to_be_visible()
    deny(second)
    expect(second.get_by_text("You had decided already, with another text").first).to_be_visible()
    expect(second.get_by_label(KEPT)).to_have_value("another text")
    assert votes(request) == [(world.alice.pk, "deny")]


def settle(page: Page) -> None:
    page.get_by_label("It was done").check()
    page.get_by_label("Evidence").fill(TYPED)
    page.get_by_label("Reference at payments").fill("re_1")


def close(page: Page) -> None:
    page.get_by_label("Cancel the run").check()
    page.get_by_label("Reason", exact=True).fill(TYPED)


def test_signed_out_or_with_an_old_token_a_verdict_stays_as_it_was_typed(
    world: World, clock: Clock, open_page: Opened, console: Console
) -> None:
    console.expected |= {401, 403}
    effect = lost(world, clock)
    page = open_page(world.charlie)
    sent = Sent(page)
    page.goto(reverse("effect", args=[world.tenant.slug, effect.pk]))
    settle(page)
    kept = page.context.cookies()
    for cookie, said in (("resumeapp_session", "you are signed out"), ("resumeapp_csrf", "security token was old")):
        page.context.clear_cookies(name=cookie)
        with sent.once():
            page.get_by_role("button", name="Record the verdict").click()
            expect(page.locator("#banner")).to_contain_text(said)
        page.context.add_cookies(kept)  # type: ignore[arg-type]
        expect(page.get_by_label("It was done")).to_be_checked()
        expect(page.get_by_label("Evidence")).to_have_value(TYPED)
        expect(page.get_by_label("Reference at payments")).to_have_value("re_1")
    page.get_by_role("button", name="Send again").click()
    expect(page.get_by_text("Recorded: it was done. Nothing is sent again.")).to_be_visible()
    assert world.effect(effect.run_id).state == "committed" and not sent.moved
    expect(page.get_by_label("Evidence")).to_have_value("")


def test_a_handoff_that_another_closed_meanwhile_keeps_the_reason(
    world: World, clock: Clock, open_page: Opened, console: Console
) -> None:
    console.expected.add(409)
    handoff = handed_over(world, clock)
    effect = world.effect(handoff.run_id)
    charlie = client_of(world.charlie)
    assert charlie.post(reverse("handoff_own", args=[world.tenant.slug, handoff.pk])).status_code == 302
    verdict = {"verdict": "rejected", "evidence": "the statement"}
    verdict |= receipt_of(charlie.get(reverse("effect", args=[world.tenant.slug, effect.pk])).content.decode())
    assert charlie.post(reverse("effect_verdict", args=[world.tenant.slug, effect.pk]), verdict).status_code == 302
    page = open_page(world.charlie)
    sent = Sent(page)
    page.goto(reverse("handoff", args=[world.tenant.slug, handoff.pk]))
    close(page)
    end = {"outcome": "cancel", "reason": "the customer withdrew it"}
    assert charlie.post(reverse("handoff_close", args=[world.tenant.slug, handoff.pk]), end).status_code == 302
    with sent.once():
        page.get_by_role("button", name="Close the handoff").click()
        expect(page.locator("#banner")).to_contain_text("This handoff is over")
    expect(page.get_by_label("Reason", exact=True)).to_have_value(TYPED)
    expect(page.get_by_label("Cancel the run")).to_be_checked()
    expect(page.get_by_role("button", name="Close the handoff")).to_be_focused()


def test_an_open_card_turns_itself_to_expired(world: World, clock: Clock, open_page: Opened) -> None:
    page = open_page(world.alice)
    page.goto(address(world, ask(world, hours=1)))
    clock.shift(3_700)
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.get_by_role("button", name="Deny")).to_have_count(0, timeout=15_000)
    expect(page.locator("#card").get_by_text("Expired").first).to_be_visible()


def test_a_countdown_counts_by_the_servers_clock_and_says_when_it_is_over(world: World, open_page: Opened) -> None:
    page = open_page(world.alice)
    page.clock.install(time="2031-01-01T00:00:00Z")
    page.goto(address(world, ask(world, hours=1)))
    left = page.locator("[data-countdown] [data-rel]").first
    expect(left).to_contain_text("59 min left")
    page.clock.run_for(30 * 60 * 1000)
    expect(left).to_contain_text("29 min left")
    page.clock.run_for(31 * 60 * 1000)
    expect(left).to_contain_text("passed")
    expect(page.locator("[data-countdown]").first).to_have_class("countdown past")


def test_a_draft_survives_a_crash_of_the_tab_and_leaves_with_its_owner(world: World, open_page: Opened) -> None:
    request = ask(world)
    page = open_page(world.alice)
    typed(page, world, request)
    with page.expect_event("crash"), suppress(Error):
        page.goto("chrome://crash")
    after = page.context.new_page()
    after.goto(address(world, request))
    expect(after.get_by_label(OURS)).to_have_value(TYPED)
    after.get_by_text("Account:").locator("..").click()
    after.get_by_role("button", name="Sign out").click()
    expect(after.get_by_role("heading", level=1)).to_contain_text("Sign in")
    assert after.evaluate("Object.keys(localStorage).filter((key) => key.startsWith('draft:')).length") == 0


def test_shortcuts_have_a_sheet_and_can_be_turned_off_for_good(world: World, open_page: Opened) -> None:
    ask(world)
    page = open_page(world.alice)
    page.goto(f"/t/{world.tenant.slug}/inbox/")
    page.keyboard.press("?")
    sheet = page.get_by_role("dialog", name="Keyboard")
    expect(sheet).to_be_visible()
    sheet.get_by_label("Single-key shortcuts on this device").uncheck()
    page.keyboard.press("Escape")
    expect(sheet).to_be_hidden()
    page.reload()
    for key in ("j", "?", "/", "g", "r"):
        page.keyboard.press(key)
    expect(sheet).to_be_hidden()
    assert page.evaluate("document.activeElement === document.body")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Inbox")
    page.get_by_text("Account:").locator("..").click()
    page.get_by_role("button", name="Keyboard").click()
    sheet.get_by_label("Single-key shortcuts on this device").check()
    page.keyboard.press("Escape")
    expect(sheet).to_be_hidden()
    page.wait_for_function("!document.activeElement.closest('dialog, details')")
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox").first).to_be_focused()


def test_progress_of_a_verification_comes_by_itself_and_without_javascript_by_reload(
    world: World, open_page: Opened
) -> None:
    world.start_run()

    def check() -> Any:
        return Verification.objects.of(world.tenant).filter(finished_at=None).get().pk

    here = reverse("history", args=[world.tenant.slug])
    page = open_page(world.dora)
    page.goto(here)
    page.get_by_role("button", name="Verify everything").click()
    expect(page.locator("#verified")).to_contain_text("Being verified in the background")
    while verifications.advance(check(), 0.0):
        pass
    expect(page.locator("#verified")).to_contain_text("The record is intact", timeout=15_000)
    expect(page.locator("#status")).to_contain_text("The record is intact")
    expect(page.locator("#verified [data-live]")).to_have_count(0)
    plain = open_page(world.dora, scripts=False)
    plain.goto(here)
    plain.get_by_role("button", name="Verify everything").click()
    expect(plain.get_by_text("Being verified in the background")).to_be_visible()
    while verifications.advance(check(), 0.0):
        pass
    plain.get_by_role("link", name="How far is it?").click()
    expect(plain.get_by_text("The record is intact")).to_be_visible()
