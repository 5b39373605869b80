"""The measured table in the documentation: written between its marks, and nothing else of the page."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmarks import documents, programme
from benchmarks.figures import Figure, percentile
from benchmarks.wanted import BOUNDS, verdict
from tests.conventions.sources import ROOT

ROWS = [
    Figure("commit in-process 1", ratio=0.4, per_second=1234.5, p50=0.7, p99=1.5, cpu_ms=0.55, trips=2).row(),
    Figure("rest with nothing waiting", note="210 MB").row(),
]


def page(table: str) -> str:
    return f"# Speed\nBefore.\n{documents.BEGIN}\n{table}\n{documents.END}\nAfter.\n"


def test_a_page_without_a_place_for_figures_is_refused() -> None:
    with pytest.raises(ValueError, match="no place"):
        documents.written("# Speed\n", ROWS)


def test_the_table_replaces_the_one_before_and_nothing_else() -> None:
    made = documents.written(page("old"), ROWS)
    assert made.startswith("# Speed\nBefore.\n") and made.endswith("\nAfter.\n") and "old" not in made
    assert (
        "| commit in-process 1 | 0.40 | 1,234 | 0.70 | 1.50 | 0.55 | 2 |  |  | CPU ≤ 0.6: yes; trips ≤ 2: yes |" in made
    )
    assert documents.written(made, ROWS) == made


def test_the_documentation_has_a_place_for_figures() -> None:
    text = (ROOT / documents.PAGE).read_text()
    assert documents.written(text, ROWS)


def test_a_percentile_of_few_times_is_one_of_them() -> None:
    assert percentile([0.003, 0.001, 0.002], 0.5) == 2 and percentile([0.001], 0.99) == 1


def test_figures_can_be_kept_as_json() -> None:
    assert json.loads(json.dumps(ROWS)) == ROWS
    assert Path(documents.PAGE).suffix == ".md"


def test_a_figure_is_held_against_what_is_wanted_of_it() -> None:
    row = Figure("commit in-process 1", cpu_ms=0.72, trips=2).row()
    assert verdict(row) == "CPU ≤ 0.6: no; trips ≤ 2: yes"
    assert verdict(Figure("commit in-process 1").row()) == "", "what wasn't measured is neither reached nor missed"
    assert verdict(Figure("yard", ratio=1.0).row()) == ""


def test_every_bound_is_of_a_figure_that_is_measured() -> None:
    measured = programme.names(programme.Scale())
    for bound in BOUNDS:
        assert any(re.fullmatch(bound.name, name) for name in measured), bound
