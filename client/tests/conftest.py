"""Loopback servers, the ledger's answers as a script, and the real server beside the real payment service."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import ledger_script
import pytest
from bench import RECEIPT, Bench
from loopback import Loopback, answer
from resumeapp_client import Client
from resumeapp_client.testing import Server, serve
from tree import ROOT

LOOKUP = {
    "by": "key",
    "path": "/refunds?key={key}",
    "list": "/refunds",
    "status": "/status",
    "answers": {"settled": "applied", "refused": "refused", "in_progress": "in_progress", "pending": "in_progress"},
    "reference": "/id",
}
OBSERVE = {"path": "/orders/{resource}", "strip": "orders/", "version": "etag"}


@pytest.fixture
def target() -> Iterator[Loopback]:
    server = Loopback()
    yield server
    server.close()


@pytest.fixture
def ledger() -> Iterator[Loopback]:
    server = Loopback()
    ledger_script.prepare(server)
    yield server
    server.close()


@pytest.fixture
def client(ledger: Loopback) -> Iterator[Client]:
    with Client(ledger.url, "ra_test_key", patience=3) as made:
        yield made


@pytest.fixture
def bench(ledger: Loopback, target: Loopback, client: Client) -> Iterator[Bench]:
    made = Bench(ledger, target, client)
    target.on("POST", "/refunds", answer(201, RECEIPT))
    yield made
    made.stop()


@pytest.fixture(scope="module")
def payments(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    arguments = ["-m", "examples.sandbox", "--port", "0", "--data", str(tmp_path_factory.mktemp("sandbox"))]
    process = subprocess.Popen([sys.executable, *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    yield json.loads(process.stdout.readline())["address"]
    process.terminate()
    process.communicate()


@pytest.fixture(scope="module")
def server(payments: str) -> Iterator[Server]:
    target = {"base_url": payments, "private": True, "call_limit": 5}
    keyed = {"name": "payments", "keyed": True, "key_retention": 86400, "lookup": LOOKUP, "observe": OBSERVE}
    wires = {"name": "wires", "keyed": False}
    with serve(ROOT, targets=[target | keyed, target | wires]) as running:
        yield running
