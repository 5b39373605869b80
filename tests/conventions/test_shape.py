"""Files and functions stay small enough to be read; ruff's C901 watches complexity."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.conventions import sources

MOST_LINES_OF_A_FILE = 400
MOST_LINES_OF_A_TEST_FILE = 450
"""Tables of cases may run on a little; a file of several nouns may not."""
MOST_LINES_OF_A_FUNCTION = 60


def long_functions(source: str) -> Iterator[tuple[str, int]]:
    """Names and lengths of functions in `source` that are longer than allowed."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > MOST_LINES_OF_A_FUNCTION:
                yield node.name, lines


def test_a_long_function_is_found() -> None:
    source = "def short():\n    pass\n\ndef long():\n" + "    pass\n" * 60
    assert list(long_functions(source)) == [("long", 61)]


def long_files(paths: Iterable[Path], most: int) -> dict[str, int]:
    """Names and lengths of files that are longer than `most` lines."""
    return {str(path): lines for path in paths if (lines := len(sources.read(path).splitlines())) > most}


def test_a_long_file_is_found() -> None:
    own = Path("tests/conventions/test_shape.py")
    lines = len(sources.read(own).splitlines())
    assert long_files([own], lines - 1) == {str(own): lines} and not long_files([own], lines)


def test_no_file_is_longer_than_one_can_read() -> None:
    long = long_files(sources.product_modules(), MOST_LINES_OF_A_FILE)
    assert not long, "split by noun into a package with verb files (never into utils)"


def test_no_file_of_tests_is_longer_than_one_can_read() -> None:
    assert not long_files(sources.test_modules(), MOST_LINES_OF_A_TEST_FILE), (
        "split by noun, with what they share in a file of its own"
    )


def test_no_function_is_longer_than_a_screen() -> None:
    long = {
        f"{path}:{name}": lines
        for path in sources.product_modules()
        for name, lines in long_functions(sources.read(path))
    }
    assert not long, "take out a step that has a name of its own"
