"""`manage.py up`: web, queue cluster under its supervisor, and timer, in one foreground tree."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from ledger import schedules
from resumeapp import supervisor
from resumeapp.processes import Tree


class Command(BaseCommand):
    help = "Run everything that this program needs until Ctrl-C or SIGTERM."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument("--web-workers", type=int, default=2)
        parser.add_argument("--without-web", action="store_true", help="only the queue cluster and the timer")

    def handle(self, *args: Any, **options: Any) -> None:
        schedules.ensure()
        tree = Tree(settings.VAR / "logs", say=self._say)
        programs = [supervisor.cluster(), supervisor.timer()]
        if not options["without_web"]:
            programs.append(supervisor.web(options["host"], options["port"], options["web_workers"]))
        with tree.starting():
            for program in programs:
                child = tree.start(program)
                self._say(f"{program.name}: process {child.pid}, log {child.log}")
        if not options["without_web"]:
            self._say(f"http://{options['host']}:{options['port']}/")
        tree.run()
        self._say("stopped")

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
