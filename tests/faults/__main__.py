"""Seed each fault in a copy of the work tree and see its test fail.

    python -m tests.faults [--only NAME]… [--named] [--workers 2]

Without a fault every named test must pass; with its fault it must fail. Prints a row per fault and ends `N of N caught`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from queue import Empty, Queue
from time import monotonic
from typing import TypeVar

from tests.faults.bench import Bench, Row
from tests.faults.catalogue import CLIENT, DATABASES, Fault, catalogue

T = TypeVar("T")
Batch = tuple[str, list[str]]


def batches(faults: Sequence[Fault]) -> list[Batch]:
    """The named tests, each once, by database and apart from the client's."""

    def kind(fault: Fault) -> tuple[bool, str]:
        return fault.test.startswith(CLIENT), fault.on

    grouped = groupby(sorted(faults, key=kind), key=kind)
    return [(on, sorted({fault.test for fault in of})) for (_, on), of in grouped]


def sound(bench: Bench, work: Queue[Batch]) -> str:
    """Run batches without any fault; what fails, or ''."""
    while True:
        try:
            on, tests = work.get_nowait()
        except Empty:
            return ""
        ran = bench.run(on, tests, longest=600)
        if ran.failed or ran.broken or not ran.passed:
            return ran.said[-3000:]


def seeded(bench: Bench, work: Queue[Fault], width: int) -> list[Row]:
    """Take faults from the queue until it is empty, printing a row for each."""
    rows: list[Row] = []
    while True:
        try:
            fault = work.get_nowait()
        except Empty:
            return rows
        row = bench.seed(fault)
        rows.append(row)
        came = f"NOT caught: {row.miss}" if row.miss else f"caught in {row.seconds:4.1f} s"
        print(f"{fault.name:<{width}}  {fault.on:<8}  {came}  {fault.test}", flush=True)


def queue_of(items: Sequence[T]) -> Queue[T]:
    made: Queue[T] = Queue()
    for item in items:
        made.put(item)
    return made


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description="Faults that the tests must catch.")
    parser.add_argument(
        "--only", metavar="NAME", action="append", help="this fault of tests/faults/manifest.toml; may be repeated"
    )
    parser.add_argument("--named", action="store_true", help="those that are a part of `make test`")
    parser.add_argument("--workers", type=int, default=2, help="copies of the tree that work side by side")
    return parser.parse_args()


def main() -> int:
    given = arguments()
    faults = catalogue()
    if unknown := set(given.only or ()) - {fault.name for fault in faults}:
        print(f"there is no fault {', '.join(sorted(unknown))}; tests/faults/manifest.toml names them", file=sys.stderr)
        return 2
    faults = [fault for fault in faults if not given.only or fault.name in given.only]
    faults = [fault for fault in faults if fault.named or not given.named]
    if not faults:
        print("no fault was chosen", file=sys.stderr)
        return 2
    workers = max(1, min(given.workers, len(faults)))
    began = monotonic()
    benches = [Bench(any(fault.on == DATABASES[1] for fault in faults)) for _ in range(workers)]
    try:
        with ThreadPoolExecutor(workers) as pool:
            whole = queue_of(batches(faults))
            wrong = [said for said in pool.map(lambda bench: sound(bench, whole), benches) if said]
            if wrong:
                print("\n".join(wrong), "without any fault, a named test fails: nothing was seeded", sep="\n")
                return 1
            width = max(len(fault.name) for fault in faults)
            work = queue_of(faults)
            rows = [row for each in pool.map(lambda bench: seeded(bench, work, width), benches) for row in each]
    finally:
        for bench in benches:
            bench.close()
    caught = sum(not row.miss for row in rows)
    print(f"{caught} of {len(faults)} caught, in {monotonic() - began:.0f} s")
    return 0 if caught == len(faults) else 1


if __name__ == "__main__":
    raise SystemExit(main())
