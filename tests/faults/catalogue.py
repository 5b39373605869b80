"""The faults that the tests must catch: each a patch, with what it seeds and the test that has to fail under it."""

from __future__ import annotations

import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parent.parent
MANIFEST: Final = HERE / "manifest.toml"
CLIENT: Final = "client/"
DATABASES: Final = ("sqlite", "postgres")

REFRESH: Final = (
    "its code has moved: make the fault by hand once more, as `seeds` in the manifest says it, then"
    " `git diff -U1 > tests/faults/{name}.patch`, and take the change back with `git apply -R tests/faults/{name}.patch`"
)


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. `test` is a node id relative to the repository's root; `on` is the database it runs on; a `named` one is a part of `make test`."""

    name: str
    seeds: str
    test: str
    on: str
    named: bool = False

    @property
    def patch(self) -> Path:
        return HERE / f"{self.name}.patch"

    @property
    def file(self) -> str:
        return self.test.partition("::")[0]

    @property
    def function(self) -> str:
        return self.test.rpartition("::")[2].partition("[")[0]


def catalogue() -> list[Fault]:
    """Every fault of the manifest, in its order."""
    return [Fault(name, **table) for name, table in tomllib.loads(MANIFEST.read_text()).items()]


def refusal(fault: Fault, root: Path, *options: str) -> str:
    """What `git apply` says against the fault's patch in the tree at `root`; '' where it was applied. `--check` changes nothing."""
    ran = subprocess.run(
        ["git", "apply", *options, str(fault.patch)], cwd=root, capture_output=True, text=True, check=False
    )
    return ran.stderr.strip() or f"git apply ended with {ran.returncode}" if ran.returncode else ""
