"""Faults from outside, by hand.

`python -m tests.storms STORM [--trials N] [--seed S] [--only …]` runs one storm; `python -m tests.storms soak --minutes M` runs all of them in turn,
with other seeds each time, for as long as it is given or until each has had its long column's trials, and prints a row for each kind.
"""

import argparse
import random
import resource
import sys
import time
from collections.abc import Callable

from tests.storms import (
    bad_inputs,
    by_themselves,
    connection_cuts,
    database_kills,
    every_boundary,
    meetings,
    target_faults,
    zombies,
)
from tests.storms.ground import Ground
from tests.storms.report import CI, SOAK, Outcome, wanted

STORMS: dict[str, Callable[..., Outcome]] = {
    "boundaries": every_boundary.storm,
    "kills": database_kills.storm,
    "cuts": connection_cuts.storm,
    "zombies": zombies.storm,
    "meetings": meetings.storm,
    "faults": target_faults.storm,
    "inputs": bad_inputs.storm,
    "schemathesis": bad_inputs.by_schemathesis,
    **by_themselves.STORMS,
}
SHARE = 4
"""A round of the soak is a quarter of what `make test` runs, so that each kind comes round soon."""


def soak(minutes: float, seed: int) -> bool:
    """Round after round. False when anything was found. A storm that has begun is not broken off."""
    ends = time.monotonic() + minutes * 60
    sums = {name: Outcome(name, 0, 0.0) for name in STORMS}
    round_seed = seed
    while time.monotonic() < ends and _left(sums):
        with Ground() as ground:
            for name in _left(sums):
                if time.monotonic() >= ends:
                    break
                trials = max(1, CI[name] // SHARE)
                outcome = asked_for(STORMS[name](ground, trials, round_seed), trials, round_seed)
                print(outcome.text(), flush=True)
                sums[name].trials += outcome.trials
                sums[name].seconds += outcome.seconds
                sums[name].failures += outcome.failures
        round_seed += 10_000
    print(f"\nIn {minutes:g} minutes, from seed {seed}:")
    for outcome in sums.values():
        print(outcome.text())
    return not any(outcome.failures for outcome in sums.values())


def asked_for(outcome: Outcome, trials: int, seed: int) -> Outcome:
    """With what was asked for, which a row shows so that it can be played again."""
    outcome.asked, outcome.seed = trials, seed
    return outcome


def _left(sums: dict[str, Outcome]) -> list[str]:
    """Kinds that haven't had all trials of the long column. Passes over the boundaries have some 180 trials each, a fault's round fifteen."""
    each = {"boundaries": 180, "faults": len(target_faults.FAULTS), "crash": by_themselves.POINTS}
    return [name for name, outcome in sums.items() if outcome.trials < SOAK[name] * each.get(name, 1)]


def main(arguments: list[str]) -> int:
    """Run what the command line says; 0 only when nothing was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.storms", description=__doc__)
    parser.add_argument("storm", choices=[*STORMS, "soak"])
    parser.add_argument("--trials", type=int, help="as many as in `make test` unless given")
    parser.add_argument("--seed", type=int, help="the first trial's; 1, and for a soak by chance")
    parser.add_argument("--only", default="", help="one trial of the storm, as a failure names it")
    parser.add_argument("--minutes", type=float, default=120.0, help="of a soak")
    options = parser.parse_args(arguments)
    if options.storm == "soak":
        return 0 if soak(options.minutes, random.randrange(1, 10**6) if options.seed is None else options.seed) else 1
    more = {"only": options.only} if options.only else {}
    with Ground() as ground:
        trials = options.trials or (1 if options.only else wanted(options.storm))
        seed = 1 if options.seed is None else options.seed
        outcome = asked_for(STORMS[options.storm](ground, trials, seed, **more), trials, seed)
    print(outcome.text())
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"  {spent.ru_utime + spent.ru_stime:.0f} s of CPU in all its processes, the making of the database included")
    return 1 if outcome.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
