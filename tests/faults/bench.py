"""A copy of the work tree in which one fault at a time is seeded and one test is run."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Final

from tests import templates
from tests.faults.catalogue import CLIENT, REFRESH, ROOT, Fault, refusal
from tests.postgres import PostgresServer

LONGEST: Final = 240.0
"""Seconds for the run of one test. One that hangs under its fault has said nothing."""


@dataclass(frozen=True, slots=True)
class Ran:
    """How many tests of a run passed, failed, or couldn't be run at all; `said` is the end of what pytest printed."""

    passed: int
    failed: int
    broken: int
    said: str


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one fault: `miss` is '' where its test failed as it should."""

    fault: Fault
    seconds: float
    miss: str = ""


def counted(report: Path, said: str = "") -> Ran:
    """Read pytest's JUnit report. An error while collecting or setting up is no failure of a test: it counts as broken."""
    if not report.exists():
        return Ran(0, 0, 1, said)
    cases = list(ET.parse(report).getroot().iter("testcase"))
    broken = sum(case.find("error") is not None for case in cases)
    failed = sum(case.find("failure") is not None and case.find("error") is None for case in cases)
    return Ran(len(cases) - failed - broken, failed, broken, said)


def verdict(ran: Ran) -> str:
    """'' when the fault was caught: its test ran and failed. Otherwise why not."""
    if ran.broken:
        return "the test couldn't be run under the fault: a fault must leave something that runs"
    if not ran.failed:
        return "no test failed" if ran.passed else "no test ran"
    return ""


class Bench:
    """A tree of its own, with a PostgreSQL of its own where `postgres` is wanted."""

    def __init__(self, postgres: bool) -> None:
        self.place = Path(tempfile.mkdtemp(prefix="resumeapp-faults-"))
        self.tree = self.place / "tree"
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).is_file():
                (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.tree / name)
        self.server = PostgresServer(data=templates.postgres()) if postgres else None
        self.url = self.server.start() if self.server else ""

    def close(self) -> None:
        if self.server:
            self.server.stop()
        shutil.rmtree(self.place, ignore_errors=True)

    def run(self, on: str, tests: Sequence[str], longest: float = LONGEST) -> Ran:
        """Run these tests of one database, all of the client or none of it, until the first failure."""
        report = self.place / "report.xml"
        report.unlink(missing_ok=True)
        client = tests[0].startswith(CLIENT)
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
        environment = os.environ | {
            "PYTHONPATH": f"{self.tree}{os.pathsep}{self.tree / 'client' / 'src'}",
            "RESUMEAPP_TEST_DB": on,
            "RESUMEAPP_TEST_POSTGRES_URL": self.url,
            "RESUMEAPP_TEST_TEMPLATES": str(templates.place()),
            "TMPDIR": str(self.place),
        }
        environment.pop("RESUMEAPP_VAR", None)
        process = subprocess.Popen(
            command + [test.removeprefix(CLIENT) for test in tests],
            cwd=self.tree / "client" if client else self.tree,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            said, _ = process.communicate(timeout=longest)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return Ran(0, 0, 1, f"it didn't end within {longest:.0f} s")
        return counted(report, said)

    def seed(self, fault: Fault) -> Row:
        """Seed the fault, run its test, and take the fault back."""
        began = monotonic()
        if against := refusal(fault, self.tree):
            return Row(
                fault, 0.0, f"the patch doesn't apply ({against.splitlines()[0]}); {REFRESH.format(name=fault.name)}"
            )
        try:
            miss = verdict(self.run(fault.on, [fault.test]))
        finally:
            left = refusal(fault, self.tree, "--reverse")
        return Row(fault, monotonic() - began, miss or left)
