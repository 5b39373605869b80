"""Trials that are programs of their own, on servers of their own: sequences, crash points and seeded faults, each with the storm's seed."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence

from tests.crash.processes import ROOT
from tests.storms.ground import Ground
from tests.storms.report import Failure, Outcome

_SHOWN = 3_000
POINTS = 4
"""The kill points that the long column counts: each has the same number of trials."""


def _outcome(storm: str, trials: int, seed: int, command: Sequence[str], **environment: str) -> Outcome:
    began = time.monotonic()
    ran = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    said = (ran.stdout + ran.stderr)[-_SHOWN:]
    failures = [Failure(seed, f"{' '.join(command)} ended with {ran.returncode}:\n{said}")] if ran.returncode else []
    return Outcome(storm, trials, time.monotonic() - began, {}, failures)


def sequences(ground: Ground, trials: int, seed: int = 1) -> Outcome:
    """So many model-based sequences on PostgreSQL, in the shards of their test."""
    test = "tests/sequences/test_sequences.py"
    drawn = {"SEQUENCES": str(trials), "SEQUENCES_SEED": str(seed), "RESUMEAPP_TEST_DB": "postgres"}
    return _outcome("sequences", trials, seed, ["-m", "pytest", "-q", test, "-n", "2"], **drawn)


def crash(ground: Ground, trials: int, seed: int = 1) -> Outcome:
    """So many trials of each of the four kill points, on PostgreSQL."""
    options = ["--trials", str(trials), "--db", "postgres", "--points", "a,b,c,d", "--seed", str(seed)]
    return _outcome("crash", trials * POINTS, seed, ["-m", "tests.crash", *options])


def seeded(ground: Ground, trials: int, seed: int = 1) -> Outcome:
    """All seeded faults, once."""
    from tests.faults.catalogue import catalogue

    return _outcome("seeded", len(catalogue()), seed, ["-m", "tests.faults"])


STORMS: Mapping[str, Callable[..., Outcome]] = {"sequences": sequences, "crash": crash, "seeded": seeded}
