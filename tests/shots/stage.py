"""Where the pictures are taken: a database in a folder that goes away, the product served by threads, one browser."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from wsgiref.types import WSGIApplication

from playwright.sync_api import Browser, BrowserContext, sync_playwright

CHROMIUM = os.environ.get("RESUMEAPP_CHROMIUM") or "/usr/bin/chromium"
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking")
THEMES = ("light", "dark")
WIDTHS = (1440, 360)


@contextmanager
def database() -> Iterator[None]:
    """Django set up on a migrated SQLite file of its own."""
    with tempfile.TemporaryDirectory(prefix="resumeapp-shots-") as folder:
        os.environ |= {
            "RESUMEAPP_VAR": folder,
            "DJANGO_SETTINGS_MODULE": "tests.shots.settings",
            # The browser's driver keeps an event loop in the thread that makes the data.
            "DJANGO_ALLOW_ASYNC_UNSAFE": "1",
        }
        os.environ.pop("DATABASE_URL", None)
        import django

        django.setup()
        from django.core.management import call_command
        from django.db import connection

        call_command("migrate", verbosity=0)
        yield
        connection.close()


@contextmanager
def server() -> Iterator[str]:
    """The product's address on a free loopback port."""
    from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
    from django.core.wsgi import get_wsgi_application

    class Quiet(WSGIRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Requests are not printed."""

    served = ThreadedWSGIServer(("127.0.0.1", 0), Quiet)
    served.daemon_threads = True
    application: WSGIApplication = get_wsgi_application()
    served.set_app(application)
    thread = threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{served.server_port}"
    finally:
        served.shutdown()
        served.server_close()
        thread.join()


@contextmanager
def chromium() -> Iterator[Browser]:
    """One headless browser for all pictures."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


def window(browser: Browser, address: str, theme: str, width: int) -> BrowserContext:
    """A window of this width in this theme; nothing in it moves."""
    return browser.new_context(
        base_url=address,
        viewport={"width": width, "height": 900 if width > 500 else 780},
        color_scheme="dark" if theme == "dark" else "light",
        reduced_motion="reduce",
    )
