"""A real Chromium against a real server with the product's static files and headers.

Every error on a page's console, every uncaught error and every violation of the content security policy fails the test. Tests name the
refusals they provoke with `page.expected`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from tests import axe
from tests import chromium as headless
from tests.live import served

REFUSAL = re.compile(r"(?:the server responded with a status of|Response Status Error Code) (\d+)")
OFFLINE = re.compile(r"net::ERR_CONNECTION_REFUSED|^htmx:(?:sendError|afterRequest)\b")


@pytest.fixture(scope="session")
def server(django_db_setup: None) -> Iterator[str]:
    """The product's address, served by threads of this process on a free loopback port."""
    with served() as address:
        yield address


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with headless.chromium() as browser:
        yield browser


@dataclass
class Console:
    """What pages of a test complained of. `expected` are statuses that the test provokes; `offline` that it cuts the network."""

    expected: set[int] = field(default_factory=set)
    offline: bool = False
    complaints: list[str] = field(default_factory=list)

    def watch(self, page: Page) -> None:
        page.on("console", lambda message: self._said(message.type, message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _said(self, kind: str, text: str) -> None:
        refusal = REFUSAL.search(text)
        known = (refusal and int(refusal[1]) in self.expected) or (self.offline and OFFLINE.search(text))
        if kind == "error" and not known:
            self.complaints.append(text)


@pytest.fixture
def console() -> Iterator[Console]:
    """Fails the test for whatever its pages complained of."""
    kept = Console()
    yield kept
    assert not kept.complaints, kept.complaints


Opened = Callable[..., Page]


@pytest.fixture
def open_page(chromium: Browser, server: str, console: Console, committed: None) -> Iterator[Opened]:
    """`open_page(person, scripts=True, width=1440, dark=False)`: a page of a browser in which this person is signed in."""
    contexts: list[BrowserContext] = []

    def opened(person: Any, *, scripts: bool = True, width: int = 1440, dark: bool = False) -> Page:
        context = chromium.new_context(
            base_url=server,
            java_script_enabled=scripts,
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
        )
        contexts.append(context)
        if person is not None:
            context.add_cookies([{"name": "resumeapp_session", "value": _session(person), "url": server}])
        page = context.new_page()
        console.watch(page)
        return page

    yield opened
    for context in contexts:
        context.close()


def _session(person: Any) -> str:
    from django.test import Client

    client = Client()
    client.force_login(person)
    return client.cookies["resumeapp_session"].value


@pytest.fixture(scope="session")
def accessible() -> Callable[[Page], None]:
    """`accessible(page)` fails for every violation of WCAG 2.2 AA that axe-core finds, and for a page that is wider than its window."""

    def checked(page: Page) -> None:
        found = axe.faults(page)
        assert not found, f"{page.url}: {found}"

    return checked
