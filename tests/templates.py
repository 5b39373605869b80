"""Migrated databases, made once for each state of the migrations and copied by who needs one of its own: to apply all takes longer than most tests.

They are made by the product's own `migrate`. Where a copy is taken, `migrate` still runs and finds nothing to do.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psycopg

from tests.postgres import PostgresServer, find_binaries

ROOT: Final = Path(__file__).resolve().parents[1]
DATABASE: Final = "resumeapp_template"
"""Its name on a server that was started on `postgres()`."""
_KEPT: Final = 4
_MAKES: Final = ("*/migrations/*.py", "*/models/**/*", "*/apps.py", "requirements/run.txt")
"""All that a migrated database comes from."""


def place() -> Path:
    """The directory of templates; trees that are copies of another one are told of its."""
    return Path(os.environ.get("RESUMEAPP_TEST_TEMPLATES", ROOT / "var" / "templates"))


def sqlite() -> Path:
    """A file to copy. What has it open is gone: all of it is in this one file."""
    made = place() / f"{_state()}.sqlite3"
    with _alone():
        if not made.exists():
            with tempfile.TemporaryDirectory(dir=place()) as var:
                _migrate("", var)
                (Path(var) / "resumeapp.sqlite3").rename(made)
            _forget("*.sqlite3")
    return made


def postgres() -> Path:
    """A server's data directory to copy, with the database `resumeapp_template` in it."""
    version = subprocess.run([find_binaries() / "postgres", "--version"], capture_output=True, check=True).stdout
    made = place() / f"{_state(version)}.postgres"
    with _alone():
        if not made.exists():
            with PostgresServer() as server, tempfile.TemporaryDirectory(dir=place()) as var:
                with psycopg.connect(server.url, autocommit=True) as connection:
                    connection.execute(f"CREATE DATABASE {DATABASE}")
                _migrate(server.url.rpartition("/")[0] + f"/{DATABASE}", var)
                server.keep(made)
            _forget("*.postgres")
    return made


def _state(more: bytes = b"") -> str:
    state = hashlib.sha256(more)
    for pattern in _MAKES:
        for path in sorted(ROOT.glob(pattern)):
            if path.is_file() and "__pycache__" not in path.parts:
                state.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return state.hexdigest()[:16]


@contextmanager
def _alone() -> Iterator[None]:
    place().mkdir(parents=True, exist_ok=True)
    with (place() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _migrate(url: str, var: str) -> None:
    environment = os.environ | {
        "RESUMEAPP_MODE": "test",
        "RESUMEAPP_VAR": var,
        "DATABASE_URL": url,
        "DJANGO_SETTINGS_MODULE": "resumeapp.settings",
    }
    command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


def _forget(pattern: str) -> None:
    """Those of states that were left long ago."""
    for path in sorted(place().glob(pattern), key=lambda path: path.stat().st_mtime, reverse=True)[_KEPT:]:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
