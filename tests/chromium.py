"""One headless Chromium, and the product served to it by threads of this process."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from wsgiref.types import WSGIApplication

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
def served() -> Iterator[str]:
    """The product's address on a free loopback port, once Django is set up."""
    from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
    from django.core.wsgi import get_wsgi_application

    class Quiet(WSGIRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            """Requests are not printed."""

    server = ThreadedWSGIServer(("127.0.0.1", 0), Quiet)
    server.daemon_threads = True
    application: WSGIApplication = get_wsgi_application()
    server.set_app(application)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser, for as long as it is needed."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=_PROGRAM, args=list(_FLAGS))
        try:
            yield browser
        finally:
            browser.close()
