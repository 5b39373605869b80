"""What is installed is exactly what was locked."""

import re
from pathlib import Path

import pytest

from tests.conventions import sources

LOCKS = sorted((sources.ROOT / "requirements").glob("*.txt"))
NAME = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)")


def pins(text: str) -> dict[str, str]:
    """Each requirement's whole entry by its normalised name."""
    entries = re.split(r"\n(?=[A-Za-z0-9])", text)
    return {re.sub(r"[-_.]+", "-", match[1]).lower(): entry for entry in entries if (match := NAME.match(entry))}


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_every_requirement_is_pinned_with_hashes(lock: Path) -> None:
    entries = pins(lock.read_text())
    assert entries
    loose = [name for name, entry in entries.items() if "==" not in entry or "sha256:" not in entry]
    assert not loose, "run `make lock`"


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_every_wish_is_in_its_lock(lock: Path) -> None:
    wishes = lock.with_suffix(".in").read_text().splitlines()
    missing = [name for line in wishes for name in pins(line) if name not in pins(lock.read_text())]
    assert not missing, "run `make lock`"


def test_tests_run_on_the_versions_that_are_shipped() -> None:
    run = pins((sources.ROOT / "requirements/run.txt").read_text())
    dev = pins((sources.ROOT / "requirements/dev.txt").read_text())
    version = re.compile(r"==(\S+)")
    differing = [
        name for name in run.keys() & dev.keys() if version.findall(run[name])[:1] != version.findall(dev[name])[:1]
    ]
    assert not differing, "run `make lock`"
