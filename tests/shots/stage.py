"""Where the pictures are taken: a database in a folder that goes away, and windows in each theme and width."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, BrowserContext

THEMES = ("light", "dark")
WIDTHS = (1440, 360)


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


def window(browser: Browser, address: str, theme: str, width: int) -> BrowserContext:
    """A window of this width in this theme; nothing in it moves."""
    return browser.new_context(
        base_url=address,
        viewport={"width": width, "height": 900 if width > 500 else 780},
        color_scheme="dark" if theme == "dark" else "light",
        reduced_motion="reduce",
    )
