import ast
import sys
from pathlib import Path

import pytest

from .process import ROOT

PACKAGE = ROOT / "examples" / "sandbox"


def imported(source: str) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add("." * node.level + (node.module or ""))
    return found


def foreign(source: str, own: str) -> set[str]:
    names = {name for name in imported(source) if not (own and name.startswith(own))}
    return {name for name in names if name.split(".")[0] not in sys.stdlib_module_names}


def test_an_import_from_elsewhere_is_found() -> None:
    source = "import json, django.db\nfrom ledger.domain import runs\nfrom . import sibling"
    assert foreign(source, "examples.sandbox") == {"django.db", "ledger.domain", "."}


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("*.py")), ids=lambda path: path.name)
def test_the_sandbox_imports_the_standard_library_and_itself_only(path: Path) -> None:
    assert not foreign(path.read_text(), "examples.sandbox")


def test_the_log_imports_nothing_of_ours_so_that_the_judge_can_load_it_alone() -> None:
    assert not foreign((PACKAGE / "log.py").read_text(), "")
