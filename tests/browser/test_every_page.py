"""Every page of the URL configuration, empty and full, refused and hostile, passes axe-core in light and dark, wide and narrow.

The pages are found from the configuration: what a scene's ids fill in and a GET answers with a whole document is one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, resolve, reverse
from playwright.sync_api import Page, expect

from approvals.renderers import Asked, Words, registry, renders
from approvals.views import verifications as verification_views
from ledger.domain.identity import Verb
from ledger.models import User
from ledger.services import identity, verifications
from tests import axe
from tests.browser.conftest import Console, Opened
from tests.clock import Clock
from tests.documents import LOOKUP
from tests.services.test_verifications import spoil, through
from tests.ui.asking import address, ask, client_of, decide
from tests.ui.scenes import completed, found_by, handed_over, lost
from tests.world import World

pytestmark = pytest.mark.browser
HOSTILE = '{"amount_minor":4200,"currency":"EUR","order":"17","reason":"' + "<b>\u202ex</b>" * 300 + '"}'
APART = {"api/v1/docs", "api/v1/openapi.json", "metrics", "healthz", "readyz"}
"""No pages of the console: the API's own, and what machines read."""


def routes(resolver: URLResolver, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Name and route of every address."""
    for each in resolver.url_patterns:
        route = prefix + str(each.pattern)
        if isinstance(each, URLPattern):
            yield str(each.name), route
        else:
            yield from routes(each, route)


def pages(person: User, ids: dict[str, Any]) -> list[str]:
    """The addresses that answer this person with a whole document. Raises KeyError for a part of an address that the scene has no value for."""
    client = client_of(person)
    found = []
    for _, route in routes(get_resolver()):
        if route in APART or route.startswith("api/"):
            continue
        path = "/" + re.sub(r"<(?:\w+:)?(\w+)>", lambda part: str(ids[part[1]]), route)
        answer = client.get(path, follow=False)
        if answer.status_code == 200 and not answer.streaming and b"<html" in answer.content:
            found.append(path)
    return found


def names(paths: list[str]) -> set[str]:
    """The names of these addresses."""
    return {str(resolve(path).url_name) for path in paths}


@pytest.fixture
def in_every_light(accessible: Callable[[Page], None]) -> Callable[[Page], None]:
    """Checks the page as it stands: light in a wide window and dark in a narrow one, each once its colours have settled."""

    def checked(page: Page) -> None:
        for scheme, width in (("light", 1440), ("dark", 360)):
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            page.evaluate(axe.SETTLED)
            accessible(page)

    return checked


def everywhere(world: World) -> User:
    """Somebody who may do everything here."""
    person = world.person("ada")
    for verb in (Verb.SEE, Verb.SEE_PAYLOADS, Verb.APPROVE, Verb.OPERATE, Verb.AUDIT, Verb.ADMINISTER):
        identity.grant_permission(world.admin, person, verb, world.tenant)
    identity.add_to_team(world.admin, world.approvers, person)
    return person


def test_every_page_of_the_configuration_is_accessible_empty_and_full(
    world: World, clock: Clock, open_page: Opened, console: Console, in_every_light: Callable[[Page], None]
) -> None:
    console.expected.add(404)
    ada = everywhere(world)
    nothing = UUID(int=1)
    ids: dict[str, Any] = dict.fromkeys(
        ("request_id", "run_id", "effect_id", "handoff_id", "check_id", "stream"), nothing
    ) | {
        "slug": world.tenant.slug,
        "part": "standing",
        "seq": 1,
    }
    page = open_page(ada)
    empty = pages(ada, ids)
    assert names(empty) == {"inbox", "runs", "reconcile", "handoffs", "history", "design"}
    for path in empty:
        page.goto(path)
        in_every_light(page)
    handoff, effect = handed_over(world, clock), lost(world, clock)
    request = ask(world, arguments=HOSTILE.encode(), order={"note": "n" * 500, "amount_minor": 8700, "currency": "EUR"})
    bad = completed(world)
    spoil(bad)
    check = verifications.ask(world.caller)
    through(world, check)
    ids |= {
        "request_id": request.pk,
        "run_id": handoff.run_id,
        "effect_id": effect.pk,
        "handoff_id": handoff.pk,
        "check_id": check,
        "stream": handoff.run_id,
    }
    full = pages(ada, ids)
    assert names(full) == names(empty) | {"approval", "run", "effect", "handoff", "verification", "entry"}
    for path in full:
        page.goto(path)
        in_every_light(page)
    nobody = open_page(None)
    for path in (reverse("sign_in"), "/nowhere/"):
        nobody.goto(path)
        in_every_light(nobody)


def test_every_state_of_a_card_and_every_refusal_is_accessible(
    world: World,
    clock: Clock,
    open_page: Opened,
    console: Console,
    in_every_light: Callable[[Page], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    console.expected |= {409, 410, 422}
    monkeypatch.setattr(registry, "_registered", [*registry._registered])
    page = open_page(world.alice)

    request = ask(world)
    page.goto(address(world, request))
    page.get_by_role("button", name="Deny").click()
    expect(page.locator("#reason-error")).to_be_visible()
    in_every_light(page)
    page.keyboard.press("Escape")
    page.get_by_role("heading", level=1).click()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    in_every_light(page)
    page.keyboard.press("Escape")
    page.get_by_label("Reason or comment").fill("typed")
    decide(client_of(world.bob), world, request, "approve")
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.get_by_role("button", name="This changed while you were here")).to_be_visible(timeout=15_000)
    in_every_light(page)
    page.get_by_role("button", name="Deny").click()
    expect(page.get_by_label("What you typed, not sent")).to_be_visible()
    in_every_light(page)

    @renders("payments.*", version="9")
    def broken(asked: Asked) -> Words:
        raise ValueError

    late = ask(world, hours=1)
    page.goto(address(world, late))
    expect(page.get_by_text("Told without the tool’s own words")).to_be_visible()
    in_every_light(page)
    clock.shift(3_700)
    page.reload()
    expect(page.locator("#card").get_by_text("Expired").first).to_be_visible()
    in_every_light(page)


def test_what_is_not_there_and_who_is_signed_out_is_told_accessibly(
    world: World, clock: Clock, open_page: Opened, console: Console, in_every_light: Callable[[Page], None]
) -> None:
    console.expected |= {401, 403, 404}
    here = world.tenant.slug
    page = open_page(world.alice)
    for path in (f"/t/{here}/history/", f"/t/{here}/nowhere/"):
        page.goto(path)
        in_every_light(page)
    page.goto(f"/t/{World().tenant.slug}/inbox/")
    in_every_light(page)

    found_by(world, LOOKUP)
    effect = lost(world, clock)
    page = open_page(world.charlie)
    for cookie, title in (("resumeapp_csrf", "security token was old"), ("resumeapp_session", "you are signed out")):
        page.goto(reverse("effect", args=[here, effect.pk]))
        page.context.clear_cookies(name=cookie)
        page.get_by_role("button", name="Ask again now").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text(title)
        in_every_light(page)


def test_a_check_under_way_and_a_person_without_a_tenant_are_accessible(
    world: World, open_page: Opened, in_every_light: Callable[[Page], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verification_views, "AT_ONCE", 0)
    run_id = world.start_run()
    page = open_page(world.charlie)
    page.goto(reverse("run", args=[world.tenant.slug, run_id]))
    page.get_by_role("button", name="Verify", exact=True).click()
    page.get_by_role("button", name="Verify now").click()
    for place in ("#verified", "#verified-top"):
        expect(page.locator(place)).to_contain_text("Being verified in the background")
    in_every_light(page)
    page = open_page(world.dora)
    page.goto(reverse("history", args=[world.tenant.slug]))
    page.get_by_role("button", name="Verify everything").click()
    check = verifications.ask(world.caller)
    verifications.advance(check, 0.0)
    expect(page.locator("#verified progress")).to_be_visible(timeout=15_000)
    in_every_light(page)
    through(world, check)
    expect(page.locator("#verified")).to_contain_text("The record is intact", timeout=15_000)
    in_every_light(page)
    identity.leave(world.admin, world.bob)
    page = open_page(world.bob)
    page.goto("/")
    expect(page.get_by_text("You belong to no tenant yet")).to_be_visible()
    in_every_light(page)


def test_a_page_that_nobody_gave_ids_for_can_not_be_forgotten(world: World) -> None:
    with pytest.raises(KeyError):
        pages(world.alice, {"slug": world.tenant.slug})
    assert Client().get(reverse("sign_in")).status_code == 200


def test_without_javascript_no_button_is_shown_that_only_a_script_could_answer(
    world: World, clock: Clock, open_page: Opened
) -> None:
    address = reverse("effect", args=[world.tenant.slug, lost(world, clock).pk])
    for scripts in (True, False):
        page = open_page(world.charlie, scripts=scripts)
        page.goto(address)
        page.locator("details.who summary").click()
        for name in ("data-copy", "data-theme-toggle", "data-dialog"):
            expect(page.locator(f"[{name}]").first).to_be_visible(visible=scripts)
        expect(page.get_by_role("button", name="Sign out")).to_be_visible()
