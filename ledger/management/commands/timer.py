"""`manage.py timer`: sweep whenever something is due. Any number may run; rows decide."""

from __future__ import annotations

import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand
from django.db import OperationalError, close_old_connections

from ledger.engine import sweep


class Command(BaseCommand):
    help = "Act on timers, deadlines, leases and wakes as they fall due, until it is told to stop."

    def handle(self, *args: Any, **options: Any) -> None:
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        while not stop.is_set():
            close_old_connections()
            try:
                sweep.sweep()
                seconds = sweep.pause().total_seconds()
            except OperationalError as fault:
                self.stderr.write(f"the database does not answer: {type(fault).__name__}")
                seconds = sweep.NEVER_LONGER.total_seconds()
            stop.wait(seconds)
