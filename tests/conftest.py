"""What every test shares: markers that choose the database.

`postgres_only`, `sqlite_only` and `browser` tests are deselected, not skipped, where they don't
belong; `make test` runs each where it does.
"""

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import setup_databases, teardown_databases
from hypothesis import HealthCheck, settings

from tests import templates
from tests.database import chosen

if TYPE_CHECKING:
    from tests.clock import Clock
    from tests.world import World


# A loaded machine is slow to draw examples; that says nothing about the rule under test.
settings.register_profile("resumeapp", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("resumeapp")


@pytest.fixture(scope="session")
def django_db_setup(
    django_test_environment: None, django_db_blocker: Any, django_db_modify_db_settings: None
) -> Iterator[None]:
    """One migrated database a session, for marked tests and for those that commit."""
    test = connection.settings_dict["TEST"]
    if copied := connection.vendor == "sqlite":
        shutil.copyfile(templates.sqlite(), test["NAME"])
    with django_db_blocker.unblock():
        made = setup_databases(verbosity=0, interactive=False, aliases=["default"], keepdb=copied)
    yield
    with django_db_blocker.unblock():
        teardown_databases(made, verbosity=0)


@pytest.fixture
def committed(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """The database without a surrounding transaction: rows stay, nothing is flushed, triggers are on."""
    with django_db_blocker.unblock():
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what belongs to the other database."""
    foreign = "postgres_only" if chosen() == "sqlite" else "sqlite_only"
    deselected = [item for item in items if item.get_closest_marker(foreign)]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = [item for item in items if item not in set(deselected)]


@pytest.fixture
def world(committed: None) -> "World":
    """A fresh tenant with people, an agent, a workflow, targets and a policy."""
    from tests.world import World

    return World()


@pytest.fixture
def clock(committed: None) -> "Iterator[Clock]":
    """The record's clock, movable; it goes back to the machine's at the end."""
    from tests.clock import moved_clock

    with moved_clock() as moved:
        yield moved
