"""No target of make passes because what it would run isn't there."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.conventions import sources


def test_browser_tests_are_run_wherever_they_are_and_fail_where_there_are_none(tmp_path: Path) -> None:
    shutil.copy(sources.ROOT / "Makefile", tmp_path)
    shutil.copytree(sources.ROOT / "requirements", tmp_path / "requirements")
    asked = ["make", "--dry-run", "test-browser", "RESUMEAPP_CHROMIUM=/bin/true"]
    told = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert "pytest -m browser tests/browser" in told, "pytest fails where it finds no test; make wouldn't"
