"""What is measured, in order: each group on a database of its own, copied from one that was migrated once."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from django.core.management import call_command
from django.db import connection

from benchmarks import crowd, due, profiles, rates
from benchmarks.figures import Figure, heading, line, percentile
from benchmarks.yard import Yard
from tests.postgres import PostgresServer

MIGRATED = "migrated"
YARD_SLICE = 0.3
"""Seconds of the yardstick before and after each slice of a measurement."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How many seconds a measurement takes, how many runs wait, and how many waits are due at once."""

    seconds: float = 3.0
    waiting: int = 100_000
    due: int = 10_000


def names(scale: Scale) -> list[str]:
    """The figures that can be measured."""
    return ["yard", *(rate.name for rate in rates.offered()), *crowd.names(scale.waiting), *due.names(scale.due)]


def run(server: PostgresServer, only: str, scale: Scale, logs: Path) -> Iterator[dict[str, Any]]:
    """Measure what matches, and print and answer each row as it comes."""
    wanted = [name for name in names(scale) if re.search(only, name)]
    own_database(server, MIGRATED, "template1")
    call_command("migrate", verbosity=0)
    print(heading(), flush=True)
    yard = Yard(server.url, YARD_SLICE)
    for figure in _measured(server, wanted, scale, logs, yard):
        row = figure.row()
        print(line(row), flush=True)
        yield row


def profile(server: PostgresServer, verb: str) -> None:
    """Say where a verb's CPU time goes, in process."""
    own_database(server, MIGRATED, "template1")
    call_command("migrate", verbosity=0)
    profiles.profile(verb)


def _measured(server: PostgresServer, wanted: Sequence[str], scale: Scale, logs: Path, yard: Yard) -> Iterator[Figure]:
    yard.measure()
    if "yard" in wanted:
        yield _yard(yard)
    if some := [rate for rate in rates.offered() if rate.name in wanted]:
        own_database(server, "rates")
        yield from rates.Rates(yard, scale.seconds, logs).measure(some)
    if some := [name for name in crowd.names(scale.waiting) if name in wanted]:
        own_database(server, "crowd")
        yield from crowd.measure(some, scale.waiting, server, scale.seconds, logs, yard)
    if set(due.names(scale.due)) & set(wanted):
        own_database(server, "due")
        yield from due.measure(scale.due, logs, yard)


def _yard(yard: Yard) -> Figure:
    yard.times.clear()
    per_second = yard.measure()
    return Figure("yard", 1.0, per_second, percentile(yard.times, 0.5), percentile(yard.times, 0.99), None, 1)


def own_database(server: PostgresServer, name: str, template: str = MIGRATED) -> None:
    """A fresh copy of the migrated database, for this process and all that it starts from now on."""
    connection.close()
    at = server.url.rpartition("/")[0]
    with psycopg.connect(server.url, autocommit=True) as owner:
        owner.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
    os.environ["DATABASE_URL"] = f"{at}/{name}"
    connection.settings_dict["NAME"] = name
