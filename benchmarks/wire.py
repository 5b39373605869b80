"""A client of the API that costs little itself: one kept connection, requests written at once, answers read by their length."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any, Protocol

import orjson

Headers = Mapping[str, str]


class Sender(Protocol):
    """Whatever requests go through: a connection to a server, or Django's own handling in this process."""

    def send(self, method: str, path: str, body: Any = None, headers: Headers | None = None) -> tuple[int, bytes]: ...


class Wire:
    """One connection to a server on loopback; `headers` go with every request."""

    def __init__(self, port: int, headers: Headers) -> None:
        self.port = port
        self.fixed = _lines({"Host": f"127.0.0.1:{port}", **headers})
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.left = b""

    def send(self, method: str, path: str, body: Any = None, headers: Headers | None = None) -> tuple[int, bytes]:
        """(status, body) of the answer. Raises ConnectionError when the server hangs up."""
        content = b"" if body is None else orjson.dumps(body)
        head = {"Content-Type": "application/json", "Content-Length": str(len(content)), **(headers or {})}
        self.socket.sendall(f"{method} {path} HTTP/1.1\r\n{self.fixed}{_lines(head)}\r\n".encode() + content)
        return self._answer()

    def _answer(self) -> tuple[int, bytes]:
        data = self.left
        while (end := data.find(b"\r\n\r\n")) < 0:
            data += self._more()
        head, data = data[:end].decode("latin-1"), data[end + 4 :]
        status = int(head[9:12])
        fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:])
        if "transfer-encoding" in fields:
            raise ValueError("the answer's length isn't told")
        length = int(fields.get("content-length", "0"))
        while len(data) < length:
            data += self._more()
        self.left = data[length:]
        return status, data[:length]

    def _more(self) -> bytes:
        data = self.socket.recv(65_536)
        if not data:
            raise ConnectionError("the server closed the connection")
        return data

    def close(self) -> None:
        self.socket.close()


def _lines(headers: Headers) -> str:
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items())


class Inside:
    """The same requests through Django's whole handling in this process: for counting their statements."""

    def __init__(self, headers: Headers) -> None:
        from django.test import Client

        self.client = Client()
        self.headers = dict(headers)
        if cookie := self.headers.pop("Cookie", ""):
            self.client.cookies.load(cookie)

    def send(self, method: str, path: str, body: Any = None, headers: Headers | None = None) -> tuple[int, bytes]:
        """(status, body) of the answer."""
        given = {"Content-Type": "application/json", **self.headers, **(headers or {})}
        media = given.pop("Content-Type")
        content = b"" if body is None else orjson.dumps(body)
        answer = self.client.generic(method, path, content, media, headers=given)
        return answer.status_code, answer.content
