"""Loopback servers, and the ledger's answers as a script."""

from __future__ import annotations

from collections.abc import Iterator

import ledger_script
import pytest
from bench import RECEIPT, Bench
from loopback import Loopback, answer
from resumeapp_client import Client


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
