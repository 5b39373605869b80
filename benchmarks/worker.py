"""A worker as a process of its own: it waits with a claim, and tells what it got and when."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.wire import Wire

WAIT = 20
"""Seconds for which a claim waits."""


def work(end: Connection, port: int, headers: Mapping[str, str], claim: Mapping[str, Any]) -> None:
    """Claim again and again; each run's id goes out with the time (by the machine's monotonic clock) at which its packet was there."""
    wire = Wire(port, headers)
    path = "/api/v1/runs/claim"
    wire.send("POST", path, claim)
    end.send("ready")
    while True:
        status, content = wire.send("POST", path, {**claim, "wait_seconds": WAIT})
        at = time.monotonic()
        if status not in (200, 204):
            raise AssertionError(content[:300])
        for packet in json.loads(content)["packets"] if content else ():
            end.send((packet["run"]["id"], at))
