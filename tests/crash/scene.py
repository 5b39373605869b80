"""Everything of one database: server, tables, web, timer, sandbox, tenants. Processes are real; none is asked to die, it is killed."""

import http.client
import http.cookies
import json
import os
import shutil
import sqlite3
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

from tests import templates
from tests.crash.judge import Record
from tests.crash.processes import ROOT, Forge, Process
from tests.postgres import PostgresServer, free_port
from tests.sandbox.process import Sandbox

LEASE_SECONDS = 3
SEND_BY_SECONDS = 2
CALL_LIMIT_SECONDS = 2
CHECK_SECONDS = 4


class Refused(Exception):
    """An answer that wasn't a success; `status` is its code."""

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


def surroundings(home: Path, **more: str) -> dict[str, str]:
    """The environment of processes under test: the product's own settings with short times, and no database's address."""
    found = {
        **os.environ,
        "RESUMEAPP_MODE": "test",
        "DJANGO_SETTINGS_MODULE": "tests.crash.settings",
        "RESUMEAPP_LOG_LEVEL": "WARNING",
        "RESUMEAPP_VAR": str(home),
        "RESUMEAPP_LEASE_SECONDS": str(LEASE_SECONDS),
        "RESUMEAPP_SEND_BY_SECONDS": str(SEND_BY_SECONDS),
        "RESUMEAPP_CHECK_SECONDS": str(CHECK_SECONDS),
        "PYTHONPATH": f"{ROOT}:{ROOT / 'client' / 'src'}",
        **more,
    }
    found.pop("DATABASE_URL", None)
    return found


def call(host: str, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Any:
    """One request on a connection of its own; answers the parsed body. Raises Refused."""
    raw = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    sent = {"Content-Type": "application/json", **(headers or {})}
    connection = http.client.HTTPConnection(host, timeout=60)
    try:
        connection.request(method, path, raw, sent)
        reply = connection.getresponse()
        content = reply.read()
        if reply.status >= 400:
            raise Refused(f"{method} {path}: {reply.status} {content[:300].decode(errors='replace')}", reply.status)
        return json.loads(content) if content and "json" in reply.headers.get("Content-Type", "") else None
    finally:
        connection.close()


class Person:
    """Alice in her browser: a session and its CSRF token, no key."""

    def __init__(self, host: str, email: str, password: str) -> None:
        self._host = host
        self._cookies: dict[str, str] = {}
        self._send("GET", "/sign-in/", None, {})
        form = urlencode(
            {"username": email, "password": password, "csrfmiddlewaretoken": self._cookies["resumeapp_csrf"]}
        )
        status, _ = self._send(
            "POST", "/sign-in/", form.encode(), {"Content-Type": "application/x-www-form-urlencoded"}
        )
        if status != 302:
            raise Refused(f"sign-in of {email}: {status}", status)

    def decide(self, request: str, choice: str, revision: int, digest: str) -> Any:
        """Vote on what was read. Raises Refused."""
        body = {"decision": choice, "revision": revision, "digest": digest}
        headers = {"Content-Type": "application/json", "X-CSRFToken": self._cookies["resumeapp_csrf"]}
        status, content = self._send(
            "POST", f"/api/v1/approvals/{request}/decision", json.dumps(body).encode(), headers
        )
        if status >= 400:
            raise Refused(f"decision on {request}: {status} {content[:300].decode(errors='replace')}", status)
        return json.loads(content)

    def _send(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, bytes]:
        cookie = "; ".join(f"{name}={value}" for name, value in self._cookies.items())
        connection = http.client.HTTPConnection(self._host, timeout=60)
        try:
            connection.request(method, path, body, {"Cookie": cookie, "Referer": f"http://{self._host}/", **headers})
            reply = connection.getresponse()
            for header in reply.headers.get_all("Set-Cookie") or []:
                for name, morsel in http.cookies.SimpleCookie(header).items():
                    self._cookies[name] = morsel.value
            return reply.status, reply.read()
        finally:
            connection.close()


@dataclass(slots=True)
class Slot:
    """A tenant in which trials run one after the other."""

    id: str
    key: str
    person: Person


class Scene:
    """One database with all that runs on it. `record_address` is how the judge opens it."""

    def __init__(self, kind: str, home: Path | None = None, slots: int = 12) -> None:
        self.kind = kind
        self.slots: list[Slot] = []
        self._count = slots
        self._own_home = home is None
        self.home = home or Path(tempfile.mkdtemp(prefix="resumeapp-crash-"))
        self.logs = self.home / "logs"
        self.logs.mkdir(parents=True, exist_ok=True)
        self.postgres: PostgresServer | None = None
        self.kept = False

    def __enter__(self) -> "Scene":
        try:
            self._start()
        except BaseException:
            self.kept = True
            self.stop()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def _start(self) -> None:
        environment = surroundings(self.home)
        self.record_address = str(self.home / "resumeapp.sqlite3")
        if self.kind == "postgres":
            self.postgres = PostgresServer(data=templates.postgres())
            self.record_address = self.postgres.start().rpartition("/")[0] + f"/{templates.DATABASE}"
            environment["DATABASE_URL"] = self.record_address
        else:
            shutil.copyfile(templates.sqlite(), self.record_address)
        self.sandbox = Sandbox(self.home / "sandbox")
        self.payments = f"http://{self.sandbox.host}"
        self.product = Forge(["tests.crash.servers", "tests.crash.seed"], environment, self._logs_of("product"))
        self.agents = Forge(["tests.crash.workers"], environment, self._logs_of("agents"))
        self.product.run("tests.crash.servers:migrate", {})
        self.web = self.start_web(free_port())
        self.timer: Process | None = None
        self.start_timer()
        self.slots = self.fresh_slots(self._count)

    def fresh_slots(self, count: int) -> list[Slot]:
        """Tenants in which nothing has happened yet."""
        seeding = {"payments": self.payments, "call_limit": CALL_LIMIT_SECONDS, "count": count}
        tenants = self.product.run("tests.crash.servers:seed", seeding)["tenants"]
        return [
            Slot(each["id"], each["key"], Person(self.web_host, each["email"], each["password"])) for each in tenants
        ]

    def visible_within(self, seconds: int) -> None:
        """What the payment service applied is found at the latest so many seconds after a call's answer is overdue."""
        told = {
            "tenants": [slot.id for slot in self.slots],
            "payments": self.payments,
            "call_limit": CALL_LIMIT_SECONDS,
        }
        self.product.run("tests.crash.servers:guarantee", {**told, "visibility_delay": seconds})

    def _logs_of(self, name: str) -> Path:
        place = self.logs / name
        place.mkdir(exist_ok=True)
        return place

    def start_web(self, port: int, nth: int = 0, after: bool = False, writing: bool = False) -> Process:
        """A web server on a port, maybe one that blocks in a commit; the first one is everybody's."""
        threads = 4 if hasattr(self, "web_host") else 12
        args = {"port": port, "threads": threads, "nth": nth, "after": after, "writing": writing}
        web = self.product.start("tests.crash.servers:web", args)
        web.wait_for("started", 30)
        if not hasattr(self, "web_host"):
            self.web_host = f"127.0.0.1:{port}"
        return web

    def start_timer(self, nth: int = 0, after: bool = False) -> Process:
        """The timer process, or one that blocks in a wake."""
        self.timer = self.product.start("tests.crash.servers:timer", {"nth": nth, "after": after})
        self.timer.wait_for("started", 30)
        return self.timer

    def stop_timer(self) -> None:
        """Kill it: its rows are the truth."""
        if self.timer is not None:
            self.timer.close()
            self.timer = None

    def record(self) -> Record:
        """A connection of the caller's own."""
        return Record(self.kind, self.record_address)

    def control(self, method: str, path: str, body: Any = None) -> Any:
        """The sandbox's control plane."""
        return call(self.sandbox.host, method, f"/_control/{path}", body)

    def logged(self, key: str) -> dict[str, int]:
        """How many mutating requests and changes the sandbox's log has under a key, from its file."""
        db = sqlite3.connect(f"{(self.sandbox.data / 'sandbox.sqlite3').as_uri()}?mode=ro", uri=True, timeout=20)
        try:
            mutating = db.execute("SELECT count(*) FROM request WHERE key = ? AND method = 'POST'", (key,)).fetchone()
            applied = db.execute("SELECT count(*) FROM request_applied WHERE key = ?", (key,)).fetchone()
        finally:
            db.close()
        return {"mutating": int(mutating[0]), "applied": int(applied[0])}

    def reference(self, key: str) -> str:
        """What the sandbox calls the payment that it made under a key, from its file; '' where it made none."""
        db = sqlite3.connect(f"{(self.sandbox.data / 'sandbox.sqlite3').as_uri()}?mode=ro", uri=True, timeout=20)
        try:
            found = db.execute("SELECT reference FROM request_applied WHERE key = ?", (key,)).fetchone()
        finally:
            db.close()
        return str(found[0]) if found else ""

    def api(self, slot: Slot, method: str, path: str, body: Any = None) -> Any:
        """A call of the agents' API with the slot's key."""
        headers = {"Authorization": f"Bearer {slot.key}"}
        if method == "POST":
            headers["Idempotency-Key"] = str(uuid4())
        return call(self.web_host, method, f"/api/v1{path}", body, headers)

    def stop(self) -> None:
        """End what was started, newest first; erase what was written unless it is to be kept."""
        for name in ("timer", "web"):
            process = getattr(self, name, None)
            if process is not None:
                process.close()
        for name in ("agents", "product"):
            forge = getattr(self, name, None)
            if forge is not None:
                forge.stop()
        if hasattr(self, "sandbox"):
            self.sandbox.stop()
        if self.postgres is not None:
            self.postgres.stop()
        if self._own_home and not self.kept:
            shutil.rmtree(self.home, ignore_errors=True)


def until(seconds: float, ask: Any, every: float = 0.08) -> Any:
    """Ask until the answer is true or time is over; answers the last answer."""
    deadline = time.monotonic() + seconds
    while True:
        answer = ask()
        if answer or time.monotonic() >= deadline:
            return answer
        time.sleep(every)
