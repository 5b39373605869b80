"""The example agents against the real server and the real payment service; needs the product's source tree."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import httpx2 as httpx
import pytest
from resumeapp_client import Run
from resumeapp_client.clocks import monotonic
from resumeapp_client.testing import Server
from tree import ROOT

pytestmark = pytest.mark.server


@pytest.fixture
def agent(server: Server, payments: str) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []

    def start(workflow: str, version: str) -> subprocess.Popen[bytes]:
        arguments = ["--workflow", workflow, "--version", version, "--server", server.url, "--payments", payments]
        arguments += ["--lease-seconds", "3"]
        process = subprocess.Popen(
            [sys.executable, "-m", "examples.agents", *arguments],
            cwd=ROOT,
            env=os.environ | {"RESUMEAPP_KEY": server.key},
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.returncode == -signal.SIGKILL:
            continue
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0, "an agent drains"


def register(server: Server, *versions: str) -> None:
    """Register the agents' workflow before any of them runs. Imported here: without the source tree nothing else needs it."""
    from examples.agents import refunds_v1, refunds_v2

    with server.client() as client:
        for flow in (refunds_v1.refunds, refunds_v2.refunds):
            if flow.version in versions:
                client.register(flow.type, flow.version, flow.spec())


def order(payments: str, order_id: str) -> dict[str, Any]:
    httpx.put(
        f"{payments}/orders/{order_id}", json={"customer": "c-1", "amount_minor": 5000, "currency": "EUR"}
    ).raise_for_status()
    return {"order": order_id, "amount_minor": 1200, "currency": "EUR", "receipt": None}


def ended(server: Server, run: Run, seconds: float = 30) -> Run:
    until = monotonic() + seconds
    with server.client() as client:
        while (now := client.run(run.id)).status not in ("completed", "failed", "cancelled", "blocked"):
            assert monotonic() < until, f"still {now.status}: {now.explanation}"
        return now


def state(server: Server, run: Run) -> dict[str, Any]:
    with server.client() as client:
        last = client.checkpoints(run.id)["checkpoints"][-1]
        found: dict[str, Any] = json.loads(client.checkpoint(run.id, last["seq"])["state"]["json"])
    return found


def refunds_of(payments: str, order_id: str) -> list[Any]:
    page = httpx.get(f"{payments}/refunds", params={"since": "2000-01-01T00:00:00Z"}).raise_for_status().json()
    return [refund for refund in page["refunds"] if refund["order"] == order_id]


def test_a_refund_is_paid_once_and_its_receipt_is_in_the_state(
    server: Server, payments: str, agent: Callable[..., Any]
) -> None:
    agent("refunds", "1")
    register(server, "1")
    with server.client() as client:
        run = client.start_run("refunds", "refund order 17", order(payments, "17"), version="1")
    assert ended(server, run).status == "completed"
    (refund,) = refunds_of(payments, "17")
    assert state(server, run)["receipt"]["id"] == refund["id"]


def test_a_worker_killed_in_its_call_is_followed_by_newer_code_and_one_refund(
    server: Server, payments: str, agent: Callable[..., Any]
) -> None:
    register(server, "1", "2")
    with server.client() as client:
        run = client.start_run("refunds", "refund order 18", order(payments, "18"), version="1")
    httpx.post(f"{payments}/_control/faults", json={"fault": "block_after_apply"}).raise_for_status()
    older = agent("refunds", "1")
    httpx.get(f"{payments}/_control/blocked", params={"timeout": 60}, timeout=90).raise_for_status()
    older.send_signal(signal.SIGKILL)
    older.wait()
    agent("refunds", "2")
    assert ended(server, run, 60).status == "completed"
    (refund,) = refunds_of(payments, "18")
    assert refund["amount_minor"] == 1200
    assert state(server, run)["channel"] == "card", "the newer code's field"


@pytest.mark.parametrize(
    ("arguments", "key", "said"),
    [
        (["--workflow", "refunds", "--version", "9"], "k", "no workflow refunds 9"),
        (["--workflow", "refunds", "--version", "1"], "", "--key-file"),
        (["--workflow", "refunds", "--version", "1", "--key", "k"], "k", "unrecognized arguments"),
        (["--workflow", "refunds", "--version", "1", "--key-file", "/nowhere"], "k", "can't be read"),
    ],
)
def test_the_command_line_says_what_is_wrong_and_takes_no_key(arguments: list[str], key: str, said: str) -> None:
    command = [sys.executable, "-m", "examples.agents", *arguments, "--server", "http://x", "--payments", "http://x"]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"RESUMEAPP_KEY": key}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert said in done.stderr
