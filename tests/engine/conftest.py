"""A shop on loopback for the tests of the engine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.engine.shop import Shop, open_shop, register
from tests.world import World


@pytest.fixture
def shop(world: World) -> Iterator[Shop]:
    """Registered as the world's target `shop`."""
    with open_shop() as opened:
        register(world, opened)
        yield opened
