"""A peer on loopback between the product and PostgreSQL that falls silent: it takes everything, answers nothing, and closes nothing."""

from __future__ import annotations

import contextlib
import socket
import threading

_CHUNK = 1 << 16


class SilentPeer:
    """Listens on `port` and forwards to `upstream`. A connection that was hushed stays so for good; `speak` is for those to come.

    `asked` counts what came from clients and was passed on, `swallowed` what came from them and wasn't.
    """

    def __init__(self, upstream: tuple[str, int]) -> None:
        self._upstream = upstream
        self._hushed = threading.Event()
        self._ends: list[socket.socket] = []
        self.asked = 0
        self.swallowed = 0
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._listener.getsockname()[1]
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def hush(self) -> None:
        """From now on nothing passes, whoever is connected or comes."""
        self._hushed.set()

    def speak(self) -> None:
        """Who comes from now on is forwarded."""
        self._hushed = threading.Event()

    def __enter__(self) -> SilentPeer:
        return self

    def __exit__(self, *exc: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join(10)
        for end in self._ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            hushed = self._hushed
            server = socket.create_connection(self._upstream)
            self._ends += [client, server]
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self._pump, args=(source, sink, hushed, source is client), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, hushed: threading.Event, asks: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(_CHUNK):
                if hushed.is_set():
                    self.swallowed += asks
                else:
                    self.asked += asks
                    sink.sendall(data)
            if not hushed.is_set():
                sink.shutdown(socket.SHUT_WR)
