"""The measured table in the documentation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.figures import markdown

PAGE: Final = Path("docs/performance.md")
BEGIN: Final = "<!-- figures: written by `python -m benchmarks --write-docs` -->"
END: Final = "<!-- end of figures -->"


def written(page: str, rows: Sequence[dict[str, Any]]) -> str:
    """The page with these figures in its table. Raises ValueError when it has no place for them."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError("the page has no place for figures")
    return f"{before}{BEGIN}\n{markdown(rows)}\n{END}{after}"


def write(rows: Sequence[dict[str, Any]]) -> None:
    PAGE.write_text(written(PAGE.read_text(), rows))
