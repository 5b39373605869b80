"""One PostgreSQL with a migrated and seeded template, a sandbox and two forges; storms take databases of their own from it in a moment."""

import contextlib
import http.client
import itertools
import shutil
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg

from tests import templates
from tests.crash.judge import Record
from tests.crash.processes import Forge, Process
from tests.crash.scene import CALL_LIMIT_SECONDS, Person, Refused, Scene, Slot, surroundings
from tests.postgres import PostgresServer, free_port
from tests.sandbox.process import Sandbox

TEMPLATE = "storm_template"
LEASE_SECONDS = 3
PRODUCT = [
    "tests.crash.servers",
    "tests.crash.seed",
    "tests.storms.roles",
    "tests.storms.load",
    "tests.storms.meet",
    "tests.storms.hostile",
]
AGENTS = ["tests.crash.workers", "tests.storms.roles"]


class Inside:
    """A forge whose processes work in one database. `port` leads there, maybe by way of something that cuts."""

    def __init__(self, forge: Forge, database: str, port: int) -> None:
        self._forge = forge
        self._where = {"database": database, "port": port}

    def start(self, role: str, args: Mapping[str, Any]) -> Process:
        return self._forge.start("tests.storms.roles:enter", {**self._where, "role": role, "args": dict(args)})

    def run(self, role: str, args: Mapping[str, Any], seconds: float = 120.0) -> dict[str, Any]:
        return self._forge.run("tests.storms.roles:enter", {**self._where, "role": role, "args": dict(args)}, seconds)


class Ground:
    """Everything storms share. `tenant` is the template's seeded one, the same in each database that is taken from it."""

    def __init__(self) -> None:
        self.lease = LEASE_SECONDS
        self.home = Path(tempfile.mkdtemp(prefix="resumeapp-storm-"))
        self.kept = False
        self.server = PostgresServer(settings=["recovery_init_sync_method=syncfs"], data=templates.postgres())
        self._taken = itertools.count(1)
        self._lock = threading.Lock()
        self._ending = contextlib.ExitStack()

    def __enter__(self) -> "Ground":
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def _start(self) -> None:
        self._ending.callback(lambda: None if self.kept else shutil.rmtree(self.home, ignore_errors=True))
        self.server.start()
        self._ending.callback(self.server.stop)
        self.sandbox = Sandbox(self.home / "sandbox")
        self._ending.callback(self.sandbox.stop)
        times = {"LEASE": self.lease, "SEND_BY": max(1, self.lease - 1), "CHECK": self.lease}
        environment = surroundings(self.home, **{f"RESUMEAPP_{k}_SECONDS": str(v) for k, v in times.items()})
        environment["DATABASE_URL"] = self.server.url
        self.product = self._forge("product", PRODUCT, environment)
        self.agents = self._forge("agents", AGENTS, environment)
        self._sql(f"CREATE DATABASE {TEMPLATE} TEMPLATE {templates.DATABASE}")
        inside = self.inside(TEMPLATE)
        inside.run("tests.crash.servers:migrate", {}, 600)
        seeding = {"payments": f"http://{self.sandbox.host}", "call_limit": CALL_LIMIT_SECONDS, "count": 1}
        (self.tenant,) = inside.run("tests.crash.servers:seed", seeding)["tenants"]

    def _forge(self, name: str, modules: list[str], environment: Mapping[str, str]) -> Forge:
        logs = self.home / name
        logs.mkdir()
        forge = Forge(modules, environment, logs)
        self._ending.callback(forge.stop)
        return forge

    def stop(self) -> None:
        """End what was started, newest first; what was written is kept when something was found."""
        if self.kept and self.server.home is not None:
            shutil.copy(self.server.home / "server.log", self.home / "postgres.log")
        self._ending.close()

    def inside(self, database: str, port: int = 0) -> Inside:
        return Inside(self.product, database, port or self.server.port)

    def take(self) -> str:
        """A new database from the template; answers its name."""
        with self._lock:
            name = f"storm_{next(self._taken)}"
            self._sql(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
        return name

    def checkpoint(self) -> None:
        """Make what was copied durable as if it had grown: until then a crash would set back the sequences of a database that was just taken
        (their copied pages claim values that no record of the log covers), and recovery would write all of it again."""
        self._sql("CHECKPOINT")

    def address(self, name: str) -> str:
        return f"postgres://resumeapp@127.0.0.1:{self.server.port}/{name}"

    def _sql(self, statement: str) -> None:
        with psycopg.connect(self.server.url, autocommit=True) as connection:
            connection.execute(statement)

    def verify(self, name: str) -> list[str]:
        """What the product's own verification says of every run and of the tenant in a database: nothing, when all is well."""
        found: list[str] = self.inside(name).run("tests.storms.roles:verify", {}, 600)["faults"]
        return found


class Corner(Scene):
    """A scene in a database of its own, with its own web and timer, on the ground's server, sandbox and forges. `through` is the port at which the
    product looks for the database; the harness reads it directly."""

    def __init__(self, ground: Ground, threads: int = 4, database: str = "", through: int = 0) -> None:
        self.name = database or ground.take()
        self.through = through
        super().__init__("postgres", ground.home / self.name, 1)
        self.ground = ground
        self.threads = threads
        self._own_home = False

    def _start(self) -> None:
        self.record_address = self.ground.address(self.name)
        self.sandbox = self.ground.sandbox
        self.payments = f"http://{self.sandbox.host}"
        self.product: Any = self.ground.inside(self.name, self.through)
        self.agents = self.ground.agents
        self.timer = None
        self.port = free_port()
        self.web_host = f"127.0.0.1:{self.port}"
        self.web = self.open_web()
        tenant = self.ground.tenant
        self.slots = [Slot(tenant["id"], tenant["key"], self._signed_in(tenant["email"], tenant["password"]))]

    def _signed_in(self, email: str, password: str) -> Person:
        """A person who tries again while the database is struck."""
        deadline = time.monotonic() + 60
        while True:
            try:
                return Person(self.web_host, email, password)
            except (OSError, http.client.HTTPException, Refused) as error:
                if (isinstance(error, Refused) and error.status < 500) or time.monotonic() > deadline:
                    raise
            time.sleep(0.1)

    def open_web(self, strike: Mapping[str, Any] | None = None) -> Process:
        """The web of this corner, always on the same port; the one before is killed."""
        if hasattr(self, "web"):
            self.web.close()
        args = {"port": self.port, "threads": self.threads, "strike": strike}
        self.web = self.product.start("tests.storms.roles:web", args)
        self.web.wait_for("started", 60)
        return self.web

    def open_timer(self, strike: Mapping[str, Any] | None = None) -> Process:
        """The timer of this corner; the one before is killed."""
        self.stop_timer()
        self.timer = self.product.start("tests.storms.roles:timer", {"strike": strike})
        self.timer.wait_for("started", 60)
        return self.timer

    def record(self) -> Record:
        return Record("postgres", self.record_address)

    def stop(self) -> None:
        """End web and timer; the rest is the ground's."""
        self.stop_timer()
        if hasattr(self, "web"):
            self.web.close()
        self.ground.kept = self.ground.kept or self.kept
