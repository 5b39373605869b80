"""The README's code, run as written: the quickstart on a real server, and the example's workflow as it would be registered."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from resumeapp_client.testing import DIRECTORY

HERE = Path(__file__).resolve().parents[1]
README = (HERE / "README.md").read_text(encoding="utf-8")


def code(heading: str) -> str:
    """The Python of one section."""
    section = README.split(f"## {heading}\n")[1].split("\n## ")[0]
    (found,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    return str(found)


@pytest.mark.server
def test_the_quickstart_prints_what_is_said() -> None:
    tree = os.environ.get(DIRECTORY) or str(HERE.parent)
    done = subprocess.run(
        [sys.executable, "-c", code("Quickstart")],
        env=os.environ | {DIRECTORY: tree, "PYTHONPATH": str(HERE / "src")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = re.search(r"It prints `([^`]+)`", README)
    assert said is not None and done.stdout.strip() == said[1]


def test_the_example_registers_what_it_says() -> None:
    example, _, _ = code("A call to the outside world").partition("with Client(")
    names: dict[str, Any] = {"__name__": "refunds"}
    exec(compile(example, "README.md", "exec"), names)
    spec = names["refunds"].spec()
    assert spec["initial"] == "assess" and set(spec["transitions"]) == {"assess", "issue"}
    assert spec["transitions"]["issue"]["targets"] == ["payments"]
