"""One pair of neighbours for all tests of a module: nothing here may write to either, and each test says so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.tenants.neighbours import Theirs, people, theirs
from tests.world import World


@pytest.fixture(scope="module")
def opened(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    with django_db_blocker.unblock():
        yield


@pytest.fixture(scope="module")
def neighbour(opened: None) -> Theirs:
    return theirs()


@pytest.fixture(scope="module")
def ours(opened: None) -> World:
    return World()


@pytest.fixture(scope="module")
def visitors(ours: World) -> dict[str, Any]:
    return people(ours)
