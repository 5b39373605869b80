"""What is done on a page before it is pictured."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, Route, expect

from tests.shots.scenes import WORST, Story

Act = Callable[[Page], Callable[[], None] | None]
"""Does something, and may return what ends it once the pictures are taken."""


def sent(button: str) -> Act:
    """Press a button, and wait for what comes back."""

    def act(page: Page) -> None:
        _answered(page, pressed(button))

    return act


def _answered(page: Page, act: Act) -> None:
    """Do what sends something, and wait until its answer stands on the page."""
    with page.expect_response(lambda answer: answer.request.method == "POST"):
        act(page)
    page.wait_for_load_state("load")
    page.wait_for_function("!document.querySelector('.htmx-request, .htmx-swapping, .htmx-settling')")


def signed_in_as(name: str, word: str = "not the password") -> Act:
    """Try to sign in with what nobody has."""

    def act(page: Page) -> None:
        page.evaluate("document.querySelector('form').noValidate = true")
        page.get_by_label("E-mail").fill(name)
        page.get_by_label("Password").fill(word)
        sent("Sign in")(page)

    return act


def signed_out(page: Page) -> None:
    page.get_by_label("Reason").fill("The photos show the crack.")
    page.context.clear_cookies(name="resumeapp_session")
    sent("Deny")(page)


def opened(page: Page) -> None:
    """Everything that opens on purpose, opened."""
    page.evaluate("document.querySelectorAll('main details').forEach((each) => { each.open = true })")


def keys(page: Page) -> None:
    page.keyboard.press("?")


def account(page: Page) -> None:
    page.locator(".who > summary").click()


def held(address: str, act: Act) -> Act:
    """The page while what it asked for at such addresses is not answered."""

    def acted(page: Page) -> Callable[[], None]:
        asked: list[Route] = []
        page.route(address, lambda route: asked.append(route))
        act(page)
        for _ in range(200):
            if asked:
                break
            page.wait_for_timeout(20)
        assert asked, f"nothing was asked of {address}"

        def dropped() -> None:
            """What the picture is about never happens."""
            for route in asked:
                route.abort()

        return dropped

    return acted


def pressed(button: str) -> Act:
    """Press a button, and wait for nothing."""
    return lambda page: page.get_by_role("button", name=button).first.click(no_wait_after=True)


def settled(page: Page) -> None:
    """Give a verdict with its evidence."""
    page.get_by_role("radio").first.check()
    page.get_by_label("Evidence").fill("The provider’s desk read it to me: re_5602, settled, 56.50 EUR.")
    page.get_by_label("Reference").fill("re_5602")
    pressed("Record the verdict")(page)


def closed(page: Page) -> None:
    """Close a handoff with its reason."""
    page.get_by_role("radio").first.check()
    page.get_by_label("Reason").fill("The till shows it; ticket D-131.")
    pressed("Close the handoff")(page)


def empty_handed(button: str) -> Act:
    """Send a form without what it needs, as a browser would that checks nothing."""

    def act(page: Page) -> None:
        page.evaluate("document.querySelectorAll('main form').forEach((form) => { form.noValidate = true })")
        sent(button)(page)

    return act


def look_for_newer(page: Page) -> None:
    """The page becomes visible again, and asks whether anything is newer."""
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


def newer(page: Page) -> None:
    """The list as if it had been read before its first row came."""
    page.evaluate(
        "document.querySelectorAll('.page-head [data-live]').forEach((bar) => { bar.dataset.live = bar.dataset.live"
        ".replace(/shown=[^~&]*~?/, 'shown=').replace(/since=[^&]*/, 'since=2020-01-01T00:00:00.000000Z')"
        ".replace(/total=(\\d+)/, (all, total) => `total=${total - 1}`) })"
    )
    look_for_newer(page)
    expect(page.locator(".page-head .live-bar .btn")).to_be_visible()


def decided_meanwhile(story: Story, name: str) -> Act:
    """Somebody else approves while a reason is typed; then the denial is sent."""

    def act(page: Page) -> None:
        page.get_by_label("Reason").fill("The photos show a working lamp.")
        story.house.decide(story.runs[name], story.house.mara, "approve", "Checked with the courier.")
        sent("Deny")(page)

    return act


def too_late(story: Story) -> Act:
    """The time to decide runs out while the card is open."""

    def act(page: Page) -> None:
        page.get_by_label("Reason").fill("The photos show the crack.")
        now = story.clock.seconds
        story.clock.shift(3_600)
        sent("Approve")(page)
        story.clock.set(now)

    return act


def form_with(name: str, value: str | None) -> Act:
    """Decide with a form in which one hidden field is another, or (None) is missing."""

    def act(page: Page) -> None:
        field = f"document.querySelector('form.decide [name={name}]')"
        page.evaluate(f"{field}.remove()" if value is None else f"{field}.value = '{value}'")
        page.get_by_label("Reason").fill("The photos show the crack.")
        sent("Approve")(page)

    return act


def asked_meanwhile(story: Story, name: str) -> Act:
    """The target is asked by somebody else while a verdict is typed."""
    from tests.shots.scenes import asked

    def act(page: Page) -> None:
        asked(story.house.effect(story.runs[name]).pk)
        _answered(page, settled)

    return act


HOSTILE_NAME = f"{WORST[:60]}@{'w' * 80}.example"
