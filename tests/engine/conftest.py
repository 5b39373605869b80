"""What tests of the engine act on: a shop on loopback, and the payment service in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.engine.scenes import Payments
from tests.sandbox.process import Sandbox
from tests.shop import Shop, open_shop, register
from tests.world import World


@pytest.fixture
def shop(world: World) -> Iterator[Shop]:
    """Registered as the world's target `shop`."""
    with open_shop() as opened:
        register(world, opened)
        yield opened


@pytest.fixture(scope="session")
def payment_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    sandbox = Sandbox(tmp_path_factory.mktemp("sandbox"))
    yield sandbox
    sandbox.hang_up()
    sandbox.stop()


@pytest.fixture
def payments(payment_service: Sandbox, world: World) -> Iterator[Payments]:
    """Order 17 over 120.00 at the payment service, and a world that may act on it."""
    caller = payment_service.caller()
    caller.control("reset")
    assert caller.order().status == 201
    yield Payments(world, payment_service, caller)
    payment_service.hang_up()
