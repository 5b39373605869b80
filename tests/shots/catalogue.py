"""Which pages are pictured, in which states, for whom."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.urls import reverse
from playwright.sync_api import Page

from ledger.models import User
from ledger.services import verifications
from tests.shots.house import House
from tests.shots.scenes import Story

Act = Callable[[Page], None]


@dataclass(frozen=True)
class Shot:
    """One page in one state. `act` does something on it first, such as sending a form that is refused."""

    page: str
    state: str
    address: str
    person: User | None
    act: Act | None = None

    @property
    def name(self) -> str:
        return f"{self.page}-{self.state}"


def _sent(button: str) -> Act:
    def act(page: Page) -> None:
        page.get_by_role("button", name=button).first.click()
        page.wait_for_load_state("networkidle")

    return act


def _wrong_password(page: Page) -> None:
    page.get_by_label("E-mail").fill("mara@harbour.example")
    page.get_by_label("Password").fill("not the password")
    _sent("Sign in")(page)


def _signed_out(page: Page) -> None:
    page.get_by_label("Reason").fill("The photos show the crack.")
    page.context.clear_cookies(name="resumeapp_session")
    _sent("Deny")(page)


def _opened(page: Page) -> None:
    """Everything that opens on purpose, opened."""
    page.evaluate("document.querySelectorAll('main details').forEach((each) => { each.open = true })")


def _keys(page: Page) -> None:
    page.keyboard.press("?")


def _account(page: Page) -> None:
    page.locator(".who > summary").click()


def full(story: Story) -> Iterator[Shot]:
    """Every page with a day's work on it."""
    house, runs = story.house, story.runs
    at = _addresses(house)
    yield Shot("inbox", "full", at("inbox"), house.ivo)
    yield Shot("inbox", "keys", at("inbox"), house.ivo, _keys)
    yield Shot("inbox", "account", at("inbox"), house.ivo, _account)
    for state in ("pending", "big", "soon", "moved", "denied", "expired", "completed"):
        yield Shot("card", state, at("approval", house.request(runs[state]).pk), house.ivo)
    yield Shot("card", "error", at("approval", house.request(runs["pending"]).pk), house.ivo, _sent("Deny"))
    yield Shot("card", "signed-out", at("approval", house.request(runs["pending"]).pk), house.ivo, _signed_out)
    yield Shot("card", "onlooker", at("approval", house.request(runs["pending"]).pk), house.dora)
    yield Shot("runs", "full", at("runs"), house.noor)
    yield Shot("runs", "none", at("runs") + "?q=nothing+like+it", house.noor)
    yield Shot("runs", "error", at("runs") + "?before=x", house.noor)
    for state in (
        "running",
        "ready",
        "silent",
        "pending",
        "moved",
        "events",
        "unknown",
        "blocked",
        "completed",
        "cancelled",
    ):
        yield Shot("run", state, at("run", runs[state]), house.noor)
    yield Shot("run", "opened", at("run", runs["completed"]), house.noor, _opened)
    yield Shot("run", "verified", at("run", runs["completed"]), house.noor, _sent("Verify"))
    yield Shot("run", "onlooker", at("run", runs["unknown"]), house.dora)
    yield Shot("reconcile", "full", at("reconcile"), house.noor)
    for state, name in (("unknown", "pay"), ("wire", "wire"), ("blocked", "pay"), ("cancelled", "pay")):
        yield Shot("effect", state, at("effect", house.effect(runs[state], name).pk), house.noor)
    yield Shot("handoffs", "full", at("handoffs"), house.noor)
    yield Shot("handoffs", "closed", at("handoffs") + "?show=closed", house.noor)
    yield Shot("handoff", "open", at("handoff", house.handoff(runs["blocked"]).pk), house.noor)
    yield Shot("handoff", "closed", at("handoff", house.handoff(runs["cancelled"]).pk), house.noor)
    yield Shot("design", "full", at("design"), house.noor)
    yield Shot("history", "full", at("history"), house.dora)
    yield Shot("history", "none", at("history") + "?since=2030-01-01", house.dora)
    check = verifications.ask(house.caller, runs["completed"])
    verifications.advance(check)
    yield Shot("verification", "intact", at("verification", check), house.dora)
    yield Shot("not-found", "framed", at("run", UUID(int=1)), house.noor)


def plain() -> Iterator[Shot]:
    """Pages outside a tenant, and those that only a fault shows."""
    yield Shot("sign-in", "empty", reverse("sign_in"), None)
    yield Shot("sign-in", "error", reverse("sign_in"), None, _wrong_password)
    yield Shot("not-found", "plain", "/nothing-here/", None)
    for name in ("401", "403", "403_csrf", "500", "no_tenant", "refusal"):
        yield Shot("fault", name, f"/fault/{name}/", None)


def empty(house: House) -> Iterator[Shot]:
    """A new tenant, in which nothing has happened."""
    at = _addresses(house)
    for page in ("inbox", "runs", "reconcile", "handoffs"):
        yield Shot(page, "empty", at(page), house.ivo if page == "inbox" else house.noor)


def hostile(story: Story) -> Iterator[Shot]:
    """The worst text that outsiders can send, on every page that shows some."""
    house, runs = story.house, story.runs
    at = _addresses(house)
    yield Shot("inbox", "hostile", at("inbox"), house.ivo)
    yield Shot("card", "hostile", at("approval", house.request(runs["pending"]).pk), house.ivo)
    for page in ("runs", "reconcile", "handoffs"):
        yield Shot(page, "hostile", at(page), house.noor)
    yield Shot("run", "hostile", at("run", runs["blocked"]), house.noor)
    yield Shot("effect", "hostile", at("effect", house.effect(runs["blocked"]).pk), house.noor)
    yield Shot("handoff", "hostile", at("handoff", house.handoff(runs["blocked"]).pk), house.noor)
    yield Shot("history", "hostile", at("history"), house.dora)


def _addresses(house: House) -> Callable[..., str]:
    def address(name: str, *args: Any) -> str:
        return reverse(name, args=[house.slug, *args])

    return address
