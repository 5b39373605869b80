"""Every kind of fault that is known has tests which are there, and which `make test` really runs."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.conventions import sources
from tests.kinds import KINDS

PHASES = {
    "test-sqlite": (("tests/",), frozenset(), frozenset({"browser", "crash", "storm", "postgres_only"})),
    "test-postgres": (("tests/",), frozenset(), frozenset({"browser", "crash", "storm", "sqlite_only"})),
    "test-client": (("client/tests/",), frozenset(), frozenset()),
    "test-crash": (("tests/crash/",), frozenset({"crash"}), frozenset({"postgres_only"})),
    "test-storms": (("tests/storms/",), frozenset({"storm"}), frozenset({"postgres_only"})),
    "test-browser": (("tests/browser/",), frozenset({"browser"}), frozenset({"postgres_only"})),
}
"""What each phase of `make test` collects: from where, with which marks, without which."""
NEVER = frozenset({"skip", "skipif", "xfail"})
NAMED = sorted({test for tests in KINDS.values() for test in tests})


def marks_of(node: ast.AST) -> set[str]:
    """Names of the marks in a decorator or in a module's `pytestmark`."""
    return {
        part.attr
        for part in ast.walk(node)
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Attribute) and part.value.attr == "mark"
    }


def found(source: str) -> dict[str, set[str]]:
    """A module's test functions, each with its marks and the module's."""
    tree = ast.parse(source)
    shared: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(ast.unparse(target) == "pytestmark" for target in node.targets):
            shared |= marks_of(node.value)
    return {
        node.name: shared.union(*map(marks_of, node.decorator_list))
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
    }


def phases(path: str, marks: set[str]) -> list[str]:
    """The phases that run a test of this file with these marks."""
    if marks & NEVER:
        return []
    return [
        name
        for name, (places, needed, without) in PHASES.items()
        if path.startswith(places) and needed <= marks and not without & marks
    ]


def test_a_test_that_never_runs_is_found() -> None:
    source = (
        "pytestmark = [pytest.mark.browser]\n"
        "def test_shared(): pass\n"
        "@pytest.mark.skipif(True, reason='')\ndef test_skipped(): pass\n"
        "@pytest.mark.postgres_only\ndef test_elsewhere(): pass\n"
        "@pytest.mark.parametrize('a', [pytest.param(1, marks=pytest.mark.xfail)])\ndef test_once(a): pass\n"
    )
    read = found(source)
    assert phases("tests/browser/test_a.py", read["test_shared"]) == ["test-browser"]
    assert phases("tests/ui/test_a.py", read["test_shared"]) == [], "the browser's phase looks elsewhere"
    assert not phases("tests/browser/test_a.py", read["test_skipped"]), "it is skipped"
    assert not phases("tests/browser/test_a.py", read["test_elsewhere"]), "the browser's phase is on SQLite"
    assert not phases("tests/ui/test_a.py", read["test_once"] - {"browser"}), "one of its cases may fail"
    assert phases("tests/ui/test_a.py", set()) == ["test-sqlite", "test-postgres"]


def test_the_phases_are_those_of_the_makefile() -> None:
    makefile = sources.read(Path("Makefile"))
    (phases_run,) = re.findall(r"^PHASES := (.*)$", makefile, re.MULTILINE)
    assert set(PHASES) <= set(phases_run.split())
    assert re.search(r"^\t.*\$\(MAKE\) --no-print-directory test-unhurried", makefile, re.MULTILINE)
    lines = re.findall(r"RESUMEAPP_TEST_DB=(\w+) \$\(BIN\)/python -m pytest (.*)", makefile.replace("\\\n", " "))
    left_out = {(name, path) for name, line in lines for path in re.findall(r"--ignore (\S+)", line)}
    assert left_out
    for name, path in left_out:
        others = [line for other, line in lines if other == name and path in line.split()]
        assert any(f"--ignore {path}" not in line for line in others), f"{path} is left out on {name}"
    for name, kept in (("sqlite", "postgres_only"), ("postgres", "sqlite_only")):
        assert (
            f'RESUMEAPP_TEST_DB={name} $(BIN)/python -m pytest -m "not browser and not crash and not storm and not {kept}"'
            in makefile
        )


@pytest.mark.parametrize("test", NAMED)
def test_every_named_test_is_there_and_runs(test: str) -> None:
    path, _, name = test.partition("::")
    assert (sources.ROOT / path).is_file(), f"{path} isn't there: name the test that holds this kind off now"
    read = found(sources.read(Path(path)))
    assert name in read, f"{test} isn't there: name the test that holds this kind off now"
    assert phases(path, read[name]), f"{test} runs in no phase of `make test`"


def test_every_kind_is_told_once_and_has_a_test() -> None:
    assert len(KINDS) > 80 and all(KINDS.values())
