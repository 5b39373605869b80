"""The commands and code of the README and of the API's page, run as written against the demonstration that `make run` starts."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from tests.conventions.sources import ROOT
from tests.patience import until
from tests.postgres import free_port

pytestmark = [pytest.mark.sqlite_only, pytest.mark.slow]
README = (ROOT / "README.md").read_text()
API = (ROOT / "docs" / "api.md").read_text()


def blocks(language: str, heading: str, document: str = README) -> list[str]:
    """The code blocks of one section."""
    section = document.split(f"## {heading}\n")[1].split("\n## ")[0]
    return re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)


@dataclass
class Newcomer:
    """Somebody in a directory with `var/`, beside the running demonstration."""

    home: Path
    scene: dict[str, Any]

    def types(self, script: str) -> list[Any]:
        """Run a block of the README in a shell; answers the JSON documents that it printed."""
        script = script.replace(".venv/bin/python", sys.executable)
        done = subprocess.run(
            ["sh", "-ec", script],
            cwd=self.home,
            env={**os.environ, "PYTHONPATH": str(ROOT / "client" / "src"), "no_proxy": "*"},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return list(documents(done.stdout))

    def api(self, path: str) -> dict[str, Any]:
        key = (self.home / "var" / "agent.key").read_text()
        headers = {"Authorization": f"Bearer {key}"}
        answer: dict[str, Any] = httpx.get(
            f"{self.scene['console']}/api/v1{path}", headers=headers, trust_env=False
        ).json()
        return answer

    def completes(self, run: str, seconds: float = 60) -> None:
        """Wait for the run's end; an AssertionError that has its own words for why it isn't there yet."""
        ends = time.monotonic() + seconds
        while (now := self.api(f"/runs/{run}")["run"])["status"] != "completed":
            assert time.monotonic() < ends, now["explanation"]
            time.sleep(0.1)

    def approves(self, task: str) -> None:
        """Sign in as the approver and approve the card that is headed so."""
        approver = next(one for one in self.scene["sign_ins"] if one["role"] == "approver")
        with httpx.Client(base_url=self.scene["console"], trust_env=False, follow_redirects=True) as browser:
            form = fields(browser.get("/sign-in/").text)
            browser.post("/sign-in/", data={**form, "username": approver["email"], "password": approver["password"]})
            card = until(lambda: self._card(browser, task), f"a card of {task}", 60)
            page = browser.get(card).text
            decided = browser.post(f"{card}decide/", data={**fields(page), "decision": "approve"})
            assert decided.status_code == 200, decided.text[:500]

    def _card(self, browser: httpx.Client, task: str) -> str:
        inbox = browser.get(f"/t/{self.scene['tenant']}/inbox/").text
        for card in dict.fromkeys(re.findall(r'href="(/t/[^"]*/approvals/[0-9a-f-]{36}/)"', inbox)):
            title = re.search(r"<title>(.*?)</title>", browser.get(card).text, re.DOTALL)
            if title is not None and task in title[1]:  # the rest of a card tells of other requests too
                return str(card)
        return ""


def fields(page: str) -> dict[str, str]:
    """The hidden fields of a page's forms."""
    found = {}
    for tag in re.findall(r"<input[^>]*type=\"hidden\"[^>]*>", page):
        attributes = dict(re.findall(r'(\w+)="([^"]*)"', tag))
        found[attributes["name"]] = attributes.get("value", "")
    return found


def documents(text: str) -> Iterator[Any]:
    """JSON documents that follow one another, as several calls print them."""
    rest = text.strip()
    while rest:
        found, end = json.JSONDecoder().raw_decode(rest)
        yield found
        rest = rest[end:].strip()


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Newcomer]:
    home = tmp_path_factory.mktemp("newcomer")
    (home / "var").mkdir()
    ready = home / "ready.json"
    foreign = ("RESUMEAPP_", "DATABASE_URL", "DJANGO")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    ports = ["--port", str(free_port()), "--sandbox-port", str(free_port())]
    with (home / "demo.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "demo", *ports, "--ready-file", str(ready)],
            cwd=ROOT,
            env={**environment, "RESUMEAPP_VAR": str(home / "var")},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        until(lambda: ready.exists() or process.poll() is not None, "the demonstration's start", 180)
        assert process.poll() is None, (home / "demo.log").read_text()
        yield Newcomer(home, json.loads(ready.read_text()))
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def test_the_two_commands_do_what_is_said() -> None:
    said = [block.strip() for block in blocks("sh", "Two commands")]
    assert said == ["make run", "make test"]
    printed = {name: subprocess.check_output(["make", "-n", name], cwd=ROOT, text=True) for name in ("run", "test")}
    assert "manage.py demo" in printed["run"]
    for phase in ("lint", "test-sqlite", "test-unhurried", "test-postgres", "test-crash", "test-browser"):
        assert phase in printed["test"], phase


def test_the_demonstration_shows_what_is_said(newcomer: Newcomer) -> None:
    printed = (newcomer.home / "demo.log").read_text()
    roles = [one["role"] for one in newcomer.scene["sign_ins"]]
    assert roles == ["approver", "operator", "auditor", "admin"] and "Three things to try" in printed
    assert sum(name.startswith("worker") for name in newcomer.scene["processes"]) == 3
    assert {"web", "cluster", "timer", "sandbox"} < set(newcomer.scene["processes"])


def test_the_first_agent_call_runs_as_written(newcomer: Newcomer) -> None:
    (script,) = blocks("sh", "The first agent call")
    registered, claimed, committed, verified = newcomer.types(script)
    assert registered["workflow"] == "greeting" and claimed["packets"][0]["fence"] == "0.1"
    assert committed["status"] == "completed" and verified["intact"] is True


def test_the_agent_that_pays_by_curl_runs_as_written_and_refunds_once(newcomer: Newcomer) -> None:
    means, ask, pay = blocks("sh", "An agent that pays, by curl", API)
    *_, beaten, waits = newcomer.types(means + ask)
    assert beaten["runs"][0]["directive"] == "go_on"
    assert waits["status"] == "waiting" and waits["fence"] is None
    newcomer.approves("5001")
    decided, settled, ended, verified = newcomer.types(means + pay)
    assert (decided["state"], decided["cause"]) == ("satisfied", "approved")
    assert settled["counted"] and settled["effect"]["state"] == "committed" and settled["effect"]["reference"]
    assert ended["status"] == "completed" and verified["intact"] is True
    key = {"key": settled["effect"]["key"]}
    paid = httpx.get(f"{newcomer.scene['payments']}/refunds", params=key, trust_env=False)
    assert len(paid.json()["refunds"]) == 1


def test_the_python_agent_runs_as_written_and_refunds_once(newcomer: Newcomer) -> None:
    (code,) = blocks("python", "An agent in Python")
    begin, give = blocks("sh", "An agent in Python")
    (newcomer.home / "var" / "goodwill.py").write_text(code)
    newcomer.types(begin)
    worker = int((newcomer.home / "var" / "goodwill.pid").read_text())
    try:
        _, started = newcomer.types(begin.split("\n", 1)[0] + "\n" + give)
        run = started["run"]["id"]
        newcomer.approves("3001")
        newcomer.completes(run)
        (effect,) = newcomer.api(f"/effects?run={run}")["effects"]
        assert effect["state"] == "committed"
        paid = httpx.get(f"{newcomer.scene['payments']}/refunds", params={"key": effect["key"]}, trust_env=False)
        assert len(paid.json()["refunds"]) == 1
    finally:
        os.kill(worker, signal.SIGTERM)
