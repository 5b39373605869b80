"""`manage.py sweep`: act once on everything that is due."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from ledger.engine import sweep


class Command(BaseCommand):
    help = "Act once on everything that is due; says how many of each kind were looked at."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--limit", type=int, default=sweep.BATCH, help="at most so many of each kind")
        parser.add_argument("--json", action="store_true", help="answer as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        done = sweep.sweep(options["limit"])
        if options["json"]:
            self.stdout.write(json.dumps(done))
            return
        for name, count in done.items():
            self.stdout.write(f"{name}: {count}")
