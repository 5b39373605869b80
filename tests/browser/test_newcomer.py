"""The newcomer's five minutes, on the demonstration as `make run` starts it: real processes, a real browser, with JavaScript and without."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2 as httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Console
from tests.postgres import free_port

pytestmark = [pytest.mark.browser, pytest.mark.slow]
ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60_000


@dataclass
class Demonstration:
    """The running demonstration: what it printed for people, as data."""

    process: subprocess.Popen[bytes]
    scene: dict[str, Any]
    var: Path

    @property
    def console(self) -> str:
        return str(self.scene["console"])

    def sign_in(self, role: str) -> dict[str, str]:
        return next(one for one in self.scene["sign_ins"] if one["role"] == role)

    def refunds(self, order: str) -> list[dict[str, Any]]:
        """What the payment service itself says of an order's refunds."""
        page = {"since": "2000-01-01T00:00:00Z", "limit": "100"}
        found = httpx.get(f"{self.scene['payments']}/refunds", params=page, trust_env=False).json()["refunds"]
        return [refund for refund in found if refund["order"] == order]

    def holders(self, run_id: str) -> list[str]:
        """The worker processes that ever claimed a run, in order, by the id that each process has for itself: from the run's journal."""
        entries = [json.loads(entry["content"]) for entry in self.read(f"/runs/{run_id}/journal")["entries"]]
        changes = [change for entry in entries if entry["verb"] == "run.claim" for change in entry["changes"]]
        return [change["fields"]["worker_id"] for change in changes if "worker_id" in change["fields"]]

    def read(self, path: str) -> Any:
        """What the API answers to the demonstration's agent."""
        headers = {"Authorization": f"Bearer {(self.var / 'agent.key').read_text().strip()}"}
        answer = httpx.get(f"{self.console}/api/v1{path}", headers=headers, trust_env=False)
        answer.raise_for_status()
        return answer.json()

    def lose_a_wire(self, order: str) -> None:
        """Another invoice, whose wire fails at the bank with an answer that says nothing."""
        order_of = {"customer": "Ines Morel", "amount_minor": 12_300, "currency": "EUR"}
        httpx.put(f"{self.scene['payments']}/orders/{order}", json=order_of, trust_env=False).raise_for_status()
        fault = {"fault": "error_500_not_applied", "times": 1, "method": "POST", "path": "/wires"}
        httpx.post(f"{self.scene['payments']}/_control/faults", json=fault, trust_env=False).raise_for_status()
        key = (self.var / "agent.key").read_text().strip()
        state = {"order": order, "amount_minor": 12_300, "currency": "EUR", "receipt": None}
        run = {"workflow": "wires", "version": "1", "task": f"Pay invoice {order}", "state": state}
        headers = {"Authorization": f"Bearer {key}", "Idempotency-Key": f"newcomer-{order}"}
        httpx.post(f"{self.console}/api/v1/runs", json=run, headers=headers, trust_env=False).raise_for_status()

    def worker(self, name: str) -> int:
        """The process that a worker is now; a killed one was started again under its name."""
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                words = path.read_bytes().split(b"\0")
                if (
                    b"examples.agents" in words
                    and name.encode() in words
                    and str(self.var).encode() in b" ".join(words)
                ):
                    return int(path.parent.name)
        raise AssertionError(f"{name} doesn't run")

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(60)


def start(var: Path, sandbox_port: int | None = None) -> Demonstration:
    """`make run`'s command on free ports (or the payment service's as it was), until it has printed its addresses."""
    ready = var / "ready.json"
    ready.unlink(missing_ok=True)
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("RESUMEAPP_", "DATABASE_URL", "DJANGO"))
    }
    ports = ["--port", str(free_port()), "--sandbox-port", str(sandbox_port or free_port())]
    with (var / "demo.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "demo", *ports, "--ready-file", str(ready)],
            cwd=ROOT,
            env={**environment, "RESUMEAPP_VAR": str(var)},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    deadline = time.monotonic() + 120
    while not ready.exists():
        assert process.poll() is None and time.monotonic() < deadline, (var / "demo.log").read_text()
        time.sleep(0.1)
    return Demonstration(process, json.loads(ready.read_text()), var)


@pytest.fixture(scope="module")
def demonstration(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demonstration]:
    running = start(tmp_path_factory.mktemp("demonstration"))
    yield running
    if running.process.poll() is None:
        running.stop()


@pytest.fixture(params=[True, False], ids=["with-javascript", "without-javascript"])
def scripts(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def sign_in(chromium: Browser, demonstration: Demonstration, console: Console, scripts: bool) -> Iterator[Any]:
    contexts = []

    def signed_in(role: str) -> Page:
        context = chromium.new_context(base_url=demonstration.console, java_script_enabled=scripts)
        contexts.append(context)
        page = context.new_page()
        console.watch(page)
        page.goto("/sign-in/")
        page.get_by_label("E-mail").fill(demonstration.sign_in(role)["email"])
        page.get_by_label("Password").fill(demonstration.sign_in(role)["password"])
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
        return page

    yield signed_in
    for context in contexts:
        context.close()


def approve(page: Page, order: str) -> None:
    """Open the order's card from the inbox, approve, and go to its run."""
    page.goto("/t/harbour/inbox/")
    page.get_by_role("link", name=f"order {order}").first.click()
    run = page.get_by_role("main").get_by_role("link", name=f"Refund order {order}").first.get_attribute("href")
    page.get_by_role("button", name="Approve this refund").click()
    expect(page.get_by_role("main").get_by_text("Approved").first).to_be_visible(timeout=PATIENCE)
    assert run is not None
    page.goto(run)


def until(page: Page, text: str) -> None:
    """Reload until the run's page says it."""
    reload_until(page, lambda: page.locator("#explanation").get_by_text(text).count() > 0)


def reload_until(page: Page, holds: Callable[[], bool]) -> None:
    """Reload, as a person without JavaScript would, until the page shows it."""
    deadline = time.monotonic() + PATIENCE / 1000
    while not holds():
        assert time.monotonic() < deadline, page.get_by_role("main").inner_text()
        page.wait_for_timeout(300)
        page.reload()


def test_an_approved_refund_is_paid_once_and_its_run_completes(
    demonstration: Demonstration, sign_in: Any, scripts: bool
) -> None:
    order = "1001" if scripts else "1002"
    page = sign_in("approver")
    approve(page, order)
    until(page, "Completed")
    assert len(demonstration.refunds(order)) == 1


def test_a_killed_worker_is_taken_over_and_the_refund_is_paid_once(
    demonstration: Demonstration, sign_in: Any, scripts: bool
) -> None:
    order = "1003" if scripts else "1004"
    page = sign_in("approver")
    approve(page, order)
    until(page, "Running")
    run_id = page.url.rstrip("/").rpartition("/")[2]
    before = demonstration.holders(run_id)
    text = page.get_by_role("complementary", name="Facts").inner_text()
    name = "worker-v1" if "worker-v1" in text else "worker-v2"
    pid = demonstration.worker(name)
    os.kill(pid, signal.SIGKILL)
    until(page, "Completed")
    assert len(demonstration.refunds(order)) == 1
    after = demonstration.holders(run_id)[len(before) :]
    assert after and before[-1] not in after, "the run went on in the process that was killed"
    assert not Path(f"/proc/{pid}").exists()
    assert page.get_by_text("Claimed by").count() >= len(before) + len(after)


def test_an_effect_whose_outcome_stayed_unknown_is_resolved_by_hand(
    demonstration: Demonstration, sign_in: Any, scripts: bool
) -> None:
    invoice = "2001" if scripts else "2002"
    page = sign_in("operator")
    page.goto("/t/harbour/reconcile/")
    page.get_by_role("listitem").filter(has_text=f"invoice {invoice}").get_by_role("link").first.click()
    page.get_by_label("It was done").check()
    page.get_by_label("Evidence").fill("The bank's statement of today lists it, seen in the payment service.")
    page.get_by_label("Reference at wires").fill(f"statement line {invoice}")
    page.get_by_role("button", name="Record the verdict").click()
    expect(page.get_by_role("main").get_by_text("Committed").first).to_be_visible(timeout=PATIENCE)
    page.get_by_role("main").get_by_role("link", name=f"Pay invoice {invoice}").first.click()
    until(page, "Completed")


def test_what_a_person_found_not_done_is_sent_once_more(
    demonstration: Demonstration, sign_in: Any, scripts: bool
) -> None:
    invoice = "2011" if scripts else "2012"
    demonstration.lose_a_wire(invoice)
    page = sign_in("operator")
    page.goto("/t/harbour/reconcile/")
    row = page.get_by_role("listitem").filter(has_text=f"invoice {invoice}")
    reload_until(page, lambda: row.count() == 1)
    row.get_by_role("link").first.click()
    # Of the page that is left nothing is to be said.
    expect(page.get_by_role("group", name="What happened at wires")).to_be_visible(timeout=PATIENCE)
    reload_until(page, lambda: page.get_by_text("Possible once the call can no longer arrive").count() == 0)
    page.get_by_label("It was not done").check()
    page.get_by_label("Evidence").fill("The bank's statement of today doesn't list it.")
    page.get_by_role("button", name="Record the verdict").click()
    expect(page.get_by_text("Recorded: it was not done.")).to_be_visible(timeout=PATIENCE)
    page.get_by_role("main").get_by_role("link", name=f"Pay invoice {invoice}").first.click()
    until(page, "Completed")


def test_it_stops_cleanly_and_a_second_start_goes_on(tmp_path: Path) -> None:
    first = start(tmp_path)
    pids = list(first.scene["processes"].values())
    assert first.stop() == 0
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
    second = start(tmp_path, urlsplit(first.scene["payments"]).port)
    try:
        assert second.scene["sign_ins"] == first.scene["sign_ins"]
        assert "already" not in (tmp_path / "demo.log").read_text()
    finally:
        assert second.stop() == 0
