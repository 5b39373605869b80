"""What every test shares: markers that choose the database.

`postgres_only`, `sqlite_only` and `browser` tests are deselected, not skipped, where they don't
belong; `make test` runs each where it does.
"""

import pytest

from tests.database import chosen


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what belongs to the other database."""
    foreign = "postgres_only" if chosen() == "sqlite" else "sqlite_only"
    deselected = [item for item in items if item.get_closest_marker(foreign)]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = [item for item in items if item not in set(deselected)]
