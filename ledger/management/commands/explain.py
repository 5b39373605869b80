"""`manage.py explain RUN`: why is it not moving?"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from ledger.domain.canonical import rfc3339
from ledger.domain.errors import LedgerError
from ledger.services.explain import explain


class Command(BaseCommand):
    help = "Say in one sentence why a run isn't moving, and list what that rests on."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", type=UUID, help="the run's id")
        parser.add_argument("--json", action="store_true", help="answer as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            told = explain(options["run"])
        except LedgerError as refusal:
            raise CommandError(f"{refusal.reason} ({refusal.code})") from refusal
        if options["json"]:
            items = [{"code": i.code, "text": i.text, "at": rfc3339(i.at) if i.at else None} for i in told.items]
            self.stdout.write(json.dumps({"sentence": told.sentence, "items": items}, ensure_ascii=False))
            return
        self.stdout.write(told.sentence)
        for item in told.items:
            self.stdout.write(f"- {item.text}")
