"""Files and functions stay small enough to be read; ruff's C901 watches complexity."""

import ast
from collections.abc import Iterator

from tests.conventions import sources

MOST_LINES_OF_A_FILE = 400
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


def test_no_file_is_longer_than_one_can_read() -> None:
    long = {
        str(path): lines
        for path in sources.product_modules()
        if (lines := len(sources.read(path).splitlines())) > MOST_LINES_OF_A_FILE
    }
    assert not long, "split by noun into a package with verb files (never into utils)"


def test_no_function_is_longer_than_a_screen() -> None:
    long = {
        f"{path}:{name}": lines
        for path in sources.product_modules()
        for name, lines in long_functions(sources.read(path))
    }
    assert not long, "take out a step that has a name of its own"
