"""The payment service, one process for all stories, and a story on it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sandbox.process import Sandbox
from tests.scenarios.story import Story
from tests.world import World


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    started = Sandbox(tmp_path_factory.mktemp("payments"))
    yield started
    started.hang_up()
    started.stop()


@pytest.fixture
def story(world: World, service: Sandbox) -> Iterator[Story]:
    yield Story(world, service)
    service.hang_up()
