"""Files and functions stay small enough to be read; ruff's C901 watches complexity."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.conventions import sources

FILES_ARE_UNDER = 400
FUNCTIONS_ARE_UNDER = 60


def long_functions(source: str) -> Iterator[tuple[str, int]]:
    """Names and lengths of functions in `source` that are longer than allowed."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines >= FUNCTIONS_ARE_UNDER:
                yield node.name, lines


def test_a_long_function_is_found() -> None:
    source = "def short():\n" + "    pass\n" * 58 + "\ndef long():\n" + "    pass\n" * 59
    assert list(long_functions(source)) == [("long", 60)]


def long_files(paths: Iterable[Path], under: int) -> dict[str, int]:
    """Names and lengths of files that have `under` lines or more."""
    return {str(path): lines for path in paths if (lines := len(sources.read(path).splitlines())) >= under}


def test_a_long_file_is_found() -> None:
    own = Path("tests/conventions/test_shape.py")
    lines = len(sources.read(own).splitlines())
    assert long_files([own], lines) == {str(own): lines} and not long_files([own], lines + 1)


def test_no_file_is_longer_than_one_can_read() -> None:
    assert not long_files(sources.modules(), FILES_ARE_UNDER), (
        "split by noun into a package with verb files, with what tests share in a file of its own (never into utils)"
    )


def test_no_function_is_longer_than_a_screen() -> None:
    long = {f"{path}:{name}": lines for path in sources.modules() for name, lines in long_functions(sources.read(path))}
    assert not long, "take out a step that has a name of its own, or tell a test's stories apart"


def test_contributors_are_told_the_same_limits() -> None:
    told = " ".join(sources.read(Path("CONTRIBUTING.md")).split())
    assert f"Files stay under {FILES_ARE_UNDER} lines, functions under {FUNCTIONS_ARE_UNDER}" in told
