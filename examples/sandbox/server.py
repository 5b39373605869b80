"""HTTP/1.1 with keep-alive around calls and control, and how a reply goes wrong on the wire."""

import http.server
import select
import socket
import struct
import sys
import traceback
from http import HTTPStatus
from urllib.parse import unquote, urlsplit

from examples.sandbox import calls, control
from examples.sandbox.calls import World
from examples.sandbox.messages import (
    Delivery,
    Manner,
    Problem,
    Reply,
    Request,
    problem_reply,
)

LARGEST_BODY = 1024 * 1024


class Server(http.server.ThreadingHTTPServer):
    """One thread for each connection."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], world: World) -> None:
        self.world = world
        super().__init__(address, Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """A caller that hung up is no error; of others say kind and place, never the content."""
        error = sys.exception()
        if error is not None and not isinstance(error, OSError):
            report(error)


class Handler(http.server.BaseHTTPRequestHandler):
    """Reads requests and sends deliveries; knows nothing of orders and refunds."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: Server

    def version_string(self) -> str:
        """The Server header."""
        return "sandbox"

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: requests are in the log, and payloads belong nowhere else."""

    def _serve(self) -> None:
        try:
            delivery = self._answer(self._read())
        except Problem as problem:
            self.close_connection = True
            delivery = Delivery(problem_reply(problem))
        except OSError:
            # The caller hung up within its request, which was neither logged nor acted on.
            raise
        except Exception as error:
            report(error)
            delivery = Delivery(Reply(500, {"error": "internal", "remedy": "ask by key what became of it"}))
        self._send(delivery)

    # The base class looks methods up by these names.
    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = _serve  # noqa: N815

    def _read(self) -> Request:
        if "transfer-encoding" in self.headers:
            raise Problem(411, "length_required", "send Content-Length, not a chunked body")
        length = self.headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()):
            raise Problem(400, "bad_length", "send a Content-Length of digits")
        if int(length) > LARGEST_BODY:
            raise Problem(413, "too_large", f"send at most {LARGEST_BODY} bytes")
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise ConnectionError
        parts = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        return Request(self.command, unquote(parts.path), parts.query, headers, body, self._gone)

    def _answer(self, request: Request) -> Delivery:
        origin = request.headers.get("sec-fetch-site", "none")
        if request.method != "GET" and origin not in ("none", "same-origin"):
            raise Problem(403, "foreign_page", "open the sandbox's own page")
        if request.path.startswith(control.PREFIX):
            return Delivery(control.answer(self.server.world, request))
        return calls.answer(self.server.world, request)

    def _gone(self) -> bool:
        """Whether the caller has closed its end; data that waits is its next request."""
        try:
            readable, _, _ = select.select([self.connection], [], [], 0)
            return bool(readable) and not self.connection.recv(1, socket.MSG_PEEK)
        except (OSError, ValueError):
            return True

    def _send(self, delivery: Delivery) -> None:
        if delivery.reply is None or delivery.manner is not Manner.SEND:
            self.close_connection = True
        if delivery.reply is None:
            return
        whole = self._encode(delivery.reply)
        if delivery.manner is Manner.RESET_IN_BODY:
            self._reset(whole, len(delivery.reply.encoded()))
            return
        self.wfile.write(whole * 2 if delivery.manner is Manner.SEND_TWICE else whole)
        self.wfile.flush()

    def _encode(self, reply: Reply) -> bytes:
        body = reply.encoded()
        headers = {
            **reply.complete(),
            "Content-Length": str(len(body)),
            "Date": self.date_time_string(),
        }
        if self.close_connection:
            headers["Connection"] = "close"
        lines = [f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + (b"" if self.command == "HEAD" else body)

    def _reset(self, whole: bytes, body_length: int) -> None:
        """Send the head and half of the body, then reset the connection instead of closing it."""
        self.wfile.write(whole[: len(whole) - (body_length + 1) // 2])
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        # The server's usual shutdown() would send an orderly end before the reset.
        self.connection.close()


def report(error: BaseException) -> None:
    """Name an error's kind and place on stderr; its message may hold payload and stays out."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "unknown place"
    print(f"sandbox: internal error: {type(error).__name__} at {place}", file=sys.stderr, flush=True)
