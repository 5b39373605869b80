"""One sandbox process, reset before each test, and one of its own for each test that kills it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from .process import Caller, Sandbox


@pytest.fixture(scope="session")
def shared_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    sandbox = Sandbox(tmp_path_factory.mktemp("sandbox"))
    yield sandbox
    assert sandbox.stop() == b""


@pytest.fixture
def sandbox(shared_sandbox: Sandbox) -> Iterator[Sandbox]:
    caller = shared_sandbox.caller()
    caller.control("reset")
    assert caller.order().status == 201
    yield shared_sandbox
    shared_sandbox.hang_up()


@pytest.fixture
def caller(sandbox: Sandbox) -> Caller:
    return sandbox.caller()


@pytest.fixture
def own_sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    made = Sandbox(tmp_path / "data")
    yield made
    made.hang_up()
    made.stop()
