"""A proxy on loopback between the product and PostgreSQL that cuts connections: within a statement, after it was sent, before or within its reply."""

import contextlib
import random
import select
import socket
import struct
import threading
from collections import Counter

from tests.postgres import free_port

WAYS = ("unsent", "half sent", "sent", "reply lost", "half a reply")
MOST_EXCHANGES = 24
"""A connection is cut at the latest at its so-manieth exchange."""
_CHUNK = 1 << 16


class Cutter:
    """Listens on `port`, forwards to `upstream` on loopback, and from `begin` on cuts until it has cut so often; then it only forwards."""

    def __init__(self, upstream: int, cuts: int, seed: int) -> None:
        self._upstream = upstream
        self._left = cuts
        self._chance = random.Random(seed)
        self._lock = threading.Lock()
        self.counted: Counter[str] = Counter()
        self.done = threading.Event()
        self._begun = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", free_port()), backlog=64)
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def begin(self) -> None:
        """From now on; what was connected before has its turn too."""
        self._begun.set()

    def close(self) -> None:
        """Take no more connections; those there are end with their ends."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _plan(self) -> tuple[int, str]:
        """At which exchange, counted from the one after connecting, and how; ways in turn, so that none is left out."""
        with self._lock:
            return self._chance.randint(2, MOST_EXCHANGES), self._chance.choice(WAYS)

    def _take(self, way: str) -> bool:
        """Has it begun, and is there a cut left?"""
        with self._lock:
            if self._left == 0 or not self._begun.is_set():
                return False
            self._left -= 1
            self.counted[way] += 1
            if self._left == 0:
                self.done.set()
            return True

    def _serve(self, client: socket.socket) -> None:
        at, way = self._plan()
        with client:
            try:
                server = socket.create_connection(("127.0.0.1", self._upstream), timeout=30)
            except OSError:
                return
            with server, contextlib.suppress(OSError):
                for end in (client, server):
                    end.settimeout(30)
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._forward(client, server, at, way)

    def _forward(self, client: socket.socket, server: socket.socket, at: int, way: str) -> None:
        exchanges = 0
        cutting = ""
        while True:
            readable, _, _ = select.select([client, server], [], [], 60)
            if client in readable:
                data = client.recv(_CHUNK)
                exchanges += 1
                if data and not cutting and exchanges >= at and self._take(way):
                    cutting = way
                if not data or (cutting and self._cut_sending(client, server, data, cutting)):
                    return
                if not cutting:
                    server.sendall(data)
            if server in readable and not self._answered(client, server.recv(_CHUNK), cutting):
                return

    def _answered(self, client: socket.socket, data: bytes, cutting: str) -> bool:
        """Pass a reply on, or cut instead; False when that was the end."""
        if data and not cutting:
            client.sendall(data)
            return True
        if data and cutting == "half a reply":
            client.sendall(data[: len(data) // 2])
        if data:
            _reset(client)
        return False

    def _cut_sending(self, client: socket.socket, server: socket.socket, data: bytes, way: str) -> bool:
        """Cut at a statement's sending; False where the reply is waited for first."""
        if way == "half sent":
            server.sendall(data[: len(data) // 2])
        elif way != "unsent":
            server.sendall(data)
        if way in ("reply lost", "half a reply"):
            return False
        _reset(client)
        return True


def _reset(connection: socket.socket) -> None:
    """End a connection by a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
