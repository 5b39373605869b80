"""A pytest plugin: the database of this run, chosen by `RESUMEAPP_TEST_DB=sqlite|postgres`.

It must act before pytest-django imports the settings, so it is loaded by `-p` and wraps the
loading of the first conftest. One server serves a run: xdist's workers find its address in
their environment.
"""

import os
import shutil
import tempfile
from collections.abc import Generator
from typing import Final

import pytest

from tests import templates
from tests.postgres import PostgresServer

CHOICES: Final = ("sqlite", "postgres")
_started: Final[list[PostgresServer]] = []
_made: Final[list[str]] = []


def chosen() -> str:
    """`sqlite` or `postgres`; a usage error for anything else."""
    name = os.environ.get("RESUMEAPP_TEST_DB", "sqlite")
    if name not in CHOICES:
        raise pytest.UsageError("RESUMEAPP_TEST_DB must be sqlite or postgres")
    return name


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests() -> Generator[None, None, None]:
    """Prepare the database's address before any settings are read."""
    name = chosen()
    if "RESUMEAPP_VAR" not in os.environ:
        os.environ["RESUMEAPP_VAR"] = tempfile.mkdtemp(prefix="resumeapp-test-")
        _made.append(os.environ["RESUMEAPP_VAR"])
    if name == "sqlite":
        os.environ.pop("DATABASE_URL", None)
    else:
        if "RESUMEAPP_TEST_POSTGRES_URL" not in os.environ:
            server = PostgresServer(data=templates.postgres())
            _started.append(server)
            os.environ["RESUMEAPP_TEST_POSTGRES_URL"] = server.start()
        os.environ["DATABASE_URL"] = os.environ["RESUMEAPP_TEST_POSTGRES_URL"]
    yield


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """Stop what this process started and remove what it made."""
    while _started:
        _started.pop().stop()
    while _made:
        shutil.rmtree(_made.pop(), ignore_errors=True)
