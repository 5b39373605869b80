"""The product's own server, as it runs in production, on this test's database."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path

from django.conf import settings
from django.db import connection

from tests.conventions.sources import ROOT


def environment(directory: Path) -> dict[str, str]:
    """Of a process of the product on this test's database, with its files in the directory."""
    name = str(connection.settings_dict["NAME"])
    found = {
        **os.environ,
        "RESUMEAPP_MODE": "test",
        "RESUMEAPP_VAR": str(directory),
        "DJANGO_SETTINGS_MODULE": "resumeapp.settings",
    }
    if connection.vendor == "postgresql":
        found["DATABASE_URL"] = found["DATABASE_URL"].rsplit("/", 1)[0] + "/" + name
    else:
        (directory / "resumeapp.sqlite3").symlink_to(name)
    (directory / "secret_key").write_text(settings.SECRET_KEY)
    return found


@contextmanager
def serving(directory: Path, **more: str) -> Iterator[int]:
    """A server with one process on a free port of loopback, with these variables in its environment; its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    command = [sys.executable, "-m", "granian", "--interface", "wsgi", "--host", "127.0.0.1", "--port", str(port)]
    with (directory / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--workers", "1", "--blocking-threads", "4", "resumeapp.wsgi:application"],
            cwd=ROOT,
            env=environment(directory) | more,
            stdout=subprocess.DEVNULL,
            stderr=log,
        )
    try:
        _wait(port, process, directory / "server.log")
        yield port
    finally:
        process.terminate()
        process.wait(timeout=20)


def _wait(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        with closing(HTTPConnection("127.0.0.1", port, timeout=5)) as asked:
            try:
                asked.request("GET", "/healthz")
                asked.getresponse().read()
                return
            except OSError:
                time.sleep(0.05)
    raise AssertionError(log.read_text()[-2_000:])
