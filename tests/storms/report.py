"""What came of a storm: a row, and for each failure its seed, the commit and a line that reproduces it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.crash.harness import commit_id

_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Failure:
    """One thing that must not be. `seed` makes it happen again; `more` are further options of the line that does."""

    seed: int
    text: str
    more: str = ""


@dataclass(slots=True)
class Outcome:
    """One storm: how many trials, what was counted on the way, and what was found. `asked` trials from `seed` on play all of it again."""

    storm: str
    trials: int
    seconds: float
    counted: Mapping[str, object] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    seed: int | None = None
    asked: int = 0

    def text(self) -> str:
        """The row, and the failures."""
        counted = "  ".join(f"{name} {value}" for name, value in self.counted.items())
        row = f"{self.storm:12} trials {self.trials:6}  failures {len(self.failures)}  {counted}  {self.seconds:.1f} s"
        lines = [row]
        if self.seed is not None:
            lines.append(
                f"  all of it again: python -m tests.storms {self.storm} --seed {self.seed} --trials {self.asked}"
            )
        for failure in self.failures[:_SHOWN]:
            length = f" --trials {self.asked}" if self.asked and not failure.more else ""
            again = (
                f"python -m tests.storms {self.storm} --seed {failure.seed}{length}{failure.more and ' '}{failure.more}"
            )
            lines.append(f"  {failure.text}\n    seed {failure.seed}, commit {commit_id()}: {again}")
        if len(self.failures) > _SHOWN:
            lines.append(f"  … and {len(self.failures) - _SHOWN} more")
        if not self.failures and self.trials:
            lines.append(
                f"  No failure in {self.trials} trials bounds its rate at about {3 / self.trials:.2g}, no lower."
            )
        return "\n".join(lines)


CI = {
    "boundaries": 1,
    "kills": 100,
    "cuts": 1_000,
    "zombies": 200,
    "meetings": 12_500,
    "faults": 40,
    "inputs": 3_500,
    "schemathesis": 1_500,
    "sequences": 500,
    "crash": 100,
    "seeded": 4,
}
"""Trials of each storm in `make test`; of boundaries passes, of faults trials of each fault, of meetings four
in five at the same time, of crash trials of each point. `inputs` and `schemathesis` are the bad inputs, by two
generators. The last three are programs of their own: `make test` runs the sequences on SQLite, and of the seeded faults the named ones."""

SOAK = {
    "boundaries": 20,
    "kills": 1_500,
    "cuts": 20_000,
    "zombies": 5_000,
    "meetings": 250_000,
    "faults": 1_000,
    "inputs": 150_000,
    "schemathesis": 50_000,
    "sequences": 20_000,
    "crash": 2_500,
    "seeded": 1,
}
"""The long column: what `make soak` runs when it is given the time."""


def wanted(storm: str) -> int:
    """How many trials: `RESUMEAPP_STORM_<STORM>`, or as in `make test`."""
    return int(os.environ.get(f"RESUMEAPP_STORM_{storm.upper()}", CI[storm]))
