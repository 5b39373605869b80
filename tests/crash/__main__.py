"""Kill workers, webs and timers at their worst moments, let others finish, and have it judged.

`python -m tests.crash --trials N --db sqlite|postgres|both [--points a,b,…] [--seed S] [--keep DIR]` prints a row for each point and database
and ends non-zero unless all zeros hold.
"""

import argparse
import sys
from pathlib import Path

from tests.crash.harness import MAIN_POINTS, SLOTS, Row, every_point, run_points
from tests.crash.scene import Scene


def main(arguments: list[str]) -> int:
    """Run what the command line says; 0 only when nothing was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--trials", type=int, default=100, help="of each point on each database")
    parser.add_argument("--db", choices=("sqlite", "postgres", "both"), default="both")
    parser.add_argument("--points", default=",".join(MAIN_POINTS), help=f"of {', '.join(every_point())}, or all")
    parser.add_argument("--seed", type=int, default=1, help="the first trial's; the others count on")
    parser.add_argument("--slots", type=int, default=SLOTS, help="trials at the same time")
    parser.add_argument("--keep", type=Path, help="keep database, logs and case here")
    options = parser.parse_args(arguments)
    points = every_point() if options.points == "all" else options.points.split(",")
    unknown = set(points) - set(every_point())
    if unknown or options.trials < 1:
        parser.error(f"points are {', '.join(every_point())}; trials at least 1")
    failed = False
    for kind in ("postgres", "sqlite") if options.db == "both" else (options.db,):
        home = options.keep / kind if options.keep else None
        with Scene(kind, home, min(options.slots, options.trials)) as scene:
            for row in run_points(scene, points, options.trials, options.seed):
                print(row.text(), flush=True)
                failed = failed or row.failed
    if not failed:
        print(Row.bound(options.trials))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
