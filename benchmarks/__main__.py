"""`python -m benchmarks`: start a PostgreSQL, measure beside the yardstick, print a table, write var/bench.json."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import documents
from tests.postgres import PostgresServer

RESULT = Path("var/bench.json")


def main() -> None:
    """Measure what is asked for, or write the table that was measured into the documentation."""
    options = _options()
    if options.write_docs:
        documents.write(json.loads(RESULT.read_text()))
        return
    with PostgresServer() as server, tempfile.TemporaryDirectory() as var:
        os.environ |= {
            "DATABASE_URL": server.url,
            "DJANGO_SETTINGS_MODULE": "resumeapp.settings",
            "RESUMEAPP_MODE": "test",
            "RESUMEAPP_LOG_LEVEL": "WARNING",
            "RESUMEAPP_VAR": var,
        }
        os.environ.pop("RESUMEAPP_PROCESS", None)
        import django

        django.setup()
        from benchmarks import programme

        scale = programme.Scale(options.seconds, options.waiting, options.due)
        if options.list:
            print("\n".join(programme.names(scale)))
            return
        if options.profile:
            programme.profile(server, options.profile)
            return
        rows: list[dict[str, Any]] = []
        for row in programme.run(server, options.only, scale, Path(var) / "logs"):
            rows.append(row)
            _write(rows, partly=True)  # what was measured isn't lost where a later figure fails
    _write(rows, partly=bool(options.only))
    print(f"{len(rows)} figures in {RESULT}", file=sys.stderr)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="length of one measurement of a rate")
    parser.add_argument(
        "--only", metavar="PATTERN", default="", help="measure only figures whose name this regular expression matches"
    )
    parser.add_argument("--waiting", type=int, default=100_000, help="runs that wait")
    parser.add_argument("--due", type=int, default=10_000, help="waits that are due at once")
    parser.add_argument("--list", action="store_true", help="only name the figures")
    parser.add_argument(
        "--profile", metavar="VERB", default="", help="instead of measuring, say where a verb's CPU time goes"
    )
    parser.add_argument("--write-docs", action="store_true", help=f"write the table of {RESULT} into {documents.PAGE}")
    return parser.parse_args()


def _write(rows: list[dict[str, Any]], *, partly: bool) -> None:
    """A part of the figures replaces those of the same names; a whole run replaces all."""
    RESULT.parent.mkdir(exist_ok=True)
    kept = json.loads(RESULT.read_text()) if partly and RESULT.exists() else []
    made = {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
    }
    found = {row["name"]: row for row in [*kept, *({**row, **made} for row in rows)]}
    RESULT.write_text(json.dumps(list(found.values()), indent=1) + "\n")


if __name__ == "__main__":
    main()
