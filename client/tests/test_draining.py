"""A worker in a process of its own that is told to leave."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import loopback
import pytest
from bench import RECEIPT
from ledger_script import (
    CLAIM,
    COMMIT,
    RELEASE,
    SETTLE,
    effect,
    packet,
)
from loopback import Loopback, answer

AGENT = Path(__file__).with_name("draining_agent.py")


@pytest.fixture
def agent(ledger: Loopback, target: Loopback) -> Iterator[subprocess.Popen[str]]:
    environment = os.environ | {"LEDGER": ledger.url, "TARGET": target.url}
    process = subprocess.Popen([sys.executable, str(AGENT)], env=environment, stdout=subprocess.PIPE, text=True)
    yield process
    process.kill()
    process.communicate()


def test_sigterm_lets_the_call_end_settles_releases_and_leaves(
    ledger: Loopback, target: Loopback, agent: subprocess.Popen[str]
) -> None:
    gate = threading.Event()
    target.on("POST", "/refunds", loopback.waits(gate, answer(201, RECEIPT)))
    given = packet("two_calls", effects={"pay": effect(), "pay2": effect(name="pay2")})
    ledger.on("POST", CLAIM, answer(200, {"packets": [given]}), answer(204))
    target.wait_for("POST", "/refunds")
    agent.send_signal(signal.SIGTERM)
    assert agent.stdout is not None and agent.stdout.readline() == "draining\n"
    gate.set()
    assert agent.wait(timeout=10) == 0
    assert [seen.path for seen in ledger.seen if seen.path in (SETTLE, RELEASE, COMMIT)] == [SETTLE, RELEASE]
    assert len(target.seen) == 1


def test_sigterm_while_idle_leaves_at_the_next_answer(ledger: Loopback, agent: subprocess.Popen[str]) -> None:
    ledger.wait_for("POST", CLAIM)
    began = time.monotonic()
    agent.send_signal(signal.SIGTERM)
    assert agent.wait(timeout=10) == 0
    assert time.monotonic() - began < 5
