"""Where the pictures are taken: a database in a folder that goes away, and windows in each theme and width."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, BrowserContext, ViewportSize

THEMES = ("light", "dark")
WIDTHS = (1920, 1440, 360)
CHECKED = (1440, 360)
"""Widths at which axe-core looks: what is wider than the first has its layout."""


@contextmanager
def database() -> Iterator[None]:
    """Django set up on a migrated SQLite file of its own."""
    with tempfile.TemporaryDirectory(prefix="resumeapp-shots-") as folder:
        os.environ |= {"RESUMEAPP_VAR": folder, "DJANGO_SETTINGS_MODULE": "tests.shots.settings"}
        os.environ.pop("DATABASE_URL", None)
        import django

        django.setup()
        from django.core.management import call_command
        from django.db import connection

        call_command("migrate", verbosity=0)
        yield
        connection.close()


def window(browser: Browser, address: str) -> BrowserContext:
    """A window in which nothing moves."""
    return browser.new_context(base_url=address, viewport=size(WIDTHS[0]), reduced_motion="reduce")


def size(width: int) -> ViewportSize:
    """A screen of this width."""
    return {"width": width, "height": 900 if width > 500 else 780}
