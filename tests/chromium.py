"""One headless Chromium."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

# The browser's driver keeps an event loop in the thread that makes the data, which itself is synchronous.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"

_PROGRAM = os.environ.get("RESUMEAPP_CHROMIUM") or "/usr/bin/chromium"
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser, for as long as it is needed."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=_PROGRAM, args=list(_FLAGS))
        try:
            yield browser
        finally:
            browser.close()
