"""The seeded faults stay usable: each patch applies to the tree as it is, and each named test is there."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults.bench import Ran, counted, verdict
from tests.faults.catalogue import DATABASES, HERE, REFRESH, ROOT, Fault, catalogue, refusal

FAULTS = catalogue()
CASE = '<testsuites><testsuite><testcase name="a"/><testcase name="b">{}</testcase></testsuite></testsuites>'


def functions(file: str) -> dict[str, str]:
    """The file's test functions, each with its decorators and those of the module as text."""
    tree = ast.parse((ROOT / file).read_text())
    module = " ".join(ast.unparse(node) for node in tree.body if isinstance(node, ast.Assign))
    return {
        node.name: module + " ".join(ast.unparse(mark) for mark in node.decorator_list)
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
    }


def test_a_patch_whose_code_has_moved_is_found(tmp_path: Path) -> None:
    fault = FAULTS[0]
    for name in {line[6:] for line in fault.patch.read_text().splitlines() if line.startswith("+++ b/")}:
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("moved = True\n")
    assert "patch does not apply" in refusal(fault, tmp_path, "--check")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_every_patch_applies_to_the_tree_as_it_is(fault: Fault) -> None:
    assert not refusal(fault, ROOT, "--check"), REFRESH.format(name=fault.name)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_every_named_test_is_there_and_runs_on_the_named_database(fault: Fault) -> None:
    assert fault.on in DATABASES and fault.seeds.endswith(".")
    found = functions(fault.file)
    assert fault.function in found, f"{fault.test} isn't there: name the test that catches the fault now"
    other = "postgres_only" if fault.on == "sqlite" else "sqlite_only"
    assert other not in found[fault.function], f"{fault.test} doesn't run on {fault.on}"


def test_every_patch_is_in_the_manifest_and_every_fault_has_one() -> None:
    assert {path.stem for path in HERE.glob("*.patch")} == {fault.name for fault in FAULTS}
    assert len(FAULTS) >= 18


def test_the_faults_of_every_run_are_fifteen_and_each_has_a_test_of_its_own() -> None:
    named = [fault for fault in FAULTS if fault.named]
    assert len(named) == len({fault.test for fault in named}) == 15


@pytest.mark.parametrize(
    ("inside", "caught"), [("<failure/>", True), ("<error/>", False), ("<failure/><error/>", False), ("", False)]
)
def test_only_a_test_that_ran_and_failed_has_caught_a_fault(inside: str, caught: bool, tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(CASE.format(inside))
    assert (verdict(counted(report)) == "") is caught


def test_a_run_without_a_report_or_without_a_test_has_caught_nothing(tmp_path: Path) -> None:
    assert verdict(counted(tmp_path / "none.xml")) and verdict(Ran(0, 0, 0, ""))


def test_a_test_of_the_other_database_is_found_by_its_mark() -> None:
    race = next(fault for fault in FAULTS if fault.on == "postgres" and "test_writer" in fault.file)
    assert "postgres_only" in functions(replace(race, on="sqlite").file)["test_sixteen_writers_on_one_run_fork_nothing"]
