"""`python -m benchmarks`: start a PostgreSQL, measure beside the yardstick, print a table, write var/bench.json."""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict
from pathlib import Path

from tests.postgres import PostgresServer

ROUNDS = 3


def main() -> None:
    """Each figure is the median of three rounds; the yardstick is measured before and after every one."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="length of one measurement")
    options = parser.parse_args()
    with PostgresServer() as server:
        os.environ |= {"DATABASE_URL": server.url, "RESUMEAPP_MODE": "test", "RESUMEAPP_LOG_LEVEL": "WARNING"}
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "resumeapp.settings")
        rows = measured(server.url, options.seconds)
    show(rows)
    path = Path("var/bench.json")
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(rows, indent=1))


def measured(url: str, seconds: float) -> list[dict[str, object]]:
    """The rows of the table: name, ratio to the yardstick, p50 and p99 and CPU in milliseconds, statements."""
    import django

    django.setup()
    from django.core.management import call_command

    from benchmarks import commits, yard

    call_command("migrate", verbosity=0)
    rows: list[dict[str, object]] = []
    for size in (1024, 4096):
        rounds = []
        for _ in range(ROUNDS):
            before = yard.measure(url, seconds / 2)
            found = commits.measure(seconds, size)
            after = yard.measure(url, seconds / 2)
            rounds.append((found.per_second / ((before.per_second + after.per_second) / 2), found, before))
        ratio, found, before = sorted(rounds, key=lambda one: one[0])[ROUNDS // 2]
        if size == 1024:
            rows.append({"name": "yard", "ratio": 1.0, **asdict(before), "trips": 1})
        trips = commits.trips(size)
        rows.append(
            {"name": f"commit in-process 1 {size // 1024} KiB", "ratio": ratio, **asdict(found), "trips": trips}
        )
    return rows


def show(rows: list[dict[str, object]]) -> None:
    print(f"{'':34}{'ratio':>7}{'per s':>9}{'p50 ms':>9}{'p99 ms':>9}{'cpu ms':>9}{'trips':>7}")
    for row in rows:
        print(
            f"{row['name']!s:34}{row['ratio']:7.2f}{row['per_second']:9.0f}{row['p50']:9.2f}{row['p99']:9.2f}"
            f"{row['cpu']:9.2f}{row['trips']!s:>7}"
        )


if __name__ == "__main__":
    main()
