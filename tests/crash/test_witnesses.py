"""What the judge reads, it reads as it compares it; and it stands alone."""

import ast
import json
import sqlite3
import subprocess
import sys
from pathlib import Path

from tests.crash import judge, witnesses

PLACE = Path(judge.__file__)
RUN, EFFECT = "01900000-0000-7000-8000-000000000001", "01900000-0000-7000-8000-000000000002"
T = 1_700_000_000.0


def test_sqlite_values_are_read_as_the_judge_compares_them(tmp_path: Path) -> None:
    file = tmp_path / "db.sqlite3"
    db = sqlite3.connect(file)
    db.execute("CREATE TABLE t (id TEXT, run_id TEXT, opened_at TEXT, digest BLOB)")
    db.execute(
        "INSERT INTO t VALUES (?, ?, '2023-11-14 22:13:20.000000', x'01')",
        (EFFECT.replace("-", ""), RUN.replace("-", "")),
    )
    db.commit()
    assert judge.Record("sqlite", str(file)).rows("t", "run_id = %s", RUN) == [
        {"id": EFFECT, "run_id": RUN, "opened_at": T, "digest": b"\x01"}
    ]


def imported(source: str) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add("." * node.level + (node.module or "").split(".")[0])
    return found


def test_the_judge_imports_nothing_of_ours() -> None:
    allowed = {*sys.stdlib_module_names, "psycopg"}
    assert imported("import json\nfrom ledger import x\nfrom . import y") - allowed == {"ledger", "."}
    assert imported(PLACE.read_text()) - allowed == {".witnesses", "witnesses"}, "itself, in package and by its path"
    assert not imported(Path(witnesses.__file__).read_text()) - allowed


def test_the_judge_runs_by_itself_and_says_no_by_its_exit_code(tmp_path: Path) -> None:
    reader = Path(judge.__file__).parents[2] / "examples" / "sandbox" / "log.py"
    sqlite3.connect(tmp_path / "record.sqlite3").close()
    witness = sqlite3.connect(tmp_path / "sandbox.sqlite3")
    witness.executescript(reader.read_text().partition('SCHEMA = """')[2].partition('"""')[0])
    witness.close()
    case = {
        "database": "sqlite",
        "address": str(tmp_path / "record.sqlite3"),
        "log_reader": str(reader),
        "log_place": str(tmp_path),
        "trials": [],
    }
    (tmp_path / "case.json").write_text(json.dumps(case))
    ran = subprocess.run(
        [sys.executable, "-I", str(PLACE), str(tmp_path / "case.json")], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1, ran.stderr
    assert json.loads(ran.stdout.splitlines()[0])["kind"] == "SILENT"
