"""The HTTP adapter against real servers: whom it may reach, what it takes, and what it gives up on."""

from __future__ import annotations

import http.server
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ledger.targets import http as adapter
from ledger.targets.http import Unreachable
from tests.domain.effect_facts import target


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    seen: list[tuple[str, dict[str, str]]]
    wait: threading.Event


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.seen.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif self.path == "/large":
            self.answer(b"x" * (adapter.LARGEST_REPLY + 1))
        elif self.path == "/slow":
            self.server.wait.wait(20)
        elif self.path in ("/drip", "/head"):
            self.drip()
        elif self.path == "/cut":
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b"half")
        else:
            self.answer(b"{}")

    def drip(self) -> None:
        """One byte at a time, of the body or already of a header."""
        end = b"" if self.path == "/head" else b"1\r\n\r\n"
        self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: " + end)
        while not self.server.wait.wait(0.05):
            try:
                self.wfile.write(b"x")
            except OSError:
                return

    def answer(self, content: bytes) -> None:
        self.send_response(200)
        self.send_header("ETag", '"v1"')
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        try:
            self.wfile.write(content)
        except OSError:
            return

    def log_message(self, *_: Any) -> None:
        return


@contextmanager
def serving() -> Iterator[Server]:
    server = Server(("127.0.0.1", 0), Handler)
    server.seen, server.wait = [], threading.Event()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.wait.set()
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as made:
        yield made


def at(server: Server, **changes: Any) -> Any:
    return target(**{"base_url": f"http://127.0.0.1:{server.server_port}/base/", **changes})


def why(server: Server, path: str, seconds: float = 5, **changes: Any) -> str:
    with pytest.raises(Unreachable) as failed:
        adapter.ask(at(server, base_url=f"http://127.0.0.1:{server.server_port}", **changes), path, seconds=seconds)
    return failed.value.reason


def test_a_private_address_is_refused_unless_the_target_is_listed_as_private(server: Server) -> None:
    assert why(server, "/x", private=False) == "address-refused"
    assert server.seen == []


@pytest.mark.parametrize(
    ("address", "public", "private"),
    [
        ("93.184.216.34", True, True),
        ("10.0.0.1", False, True),
        ("192.168.1.1", False, True),
        ("127.0.0.1", False, True),
        ("::1", False, True),
        ("::ffff:127.0.0.1", False, True),
        ("fd00::1", False, True),
        ("169.254.169.254", False, False),
        ("fe80::1%eth0", False, False),
        ("0.0.0.0", False, False),
        ("224.0.0.1", False, False),
        ("100.64.0.1", False, False),
    ],
)
def test_which_addresses_may_be_reached(address: str, public: bool, private: bool) -> None:
    assert adapter.allowed(address, private=False) is public
    assert adapter.allowed(address, private=True) is private


def test_a_name_that_does_not_resolve_is_unreachable() -> None:
    with pytest.raises(Unreachable, match="not-resolved"):
        adapter.resolve("nowhere.invalid", 80, private=False)


def test_redirects_are_not_followed(server: Server) -> None:
    reply = adapter.ask(at(server, base_url=f"http://127.0.0.1:{server.server_port}"), "/moved")
    assert reply.status == 302 and [path for path, _ in server.seen] == ["/moved"]


def test_a_reply_that_is_too_large_is_dropped(server: Server) -> None:
    assert why(server, "/large") == "too-large"


@pytest.mark.parametrize("path", ["/slow", "/drip"])
def test_a_reply_that_takes_too_long_is_given_up(server: Server, path: str) -> None:
    assert why(server, path, seconds=0.3) == "timed-out"


def test_a_head_that_comes_one_byte_at_a_time_holds_nobody_up(server: Server) -> None:
    begun = time.monotonic()
    assert why(server, "/head", seconds=0.3) == "no-reply"
    assert time.monotonic() - begun < 5


def test_half_a_reply_is_no_reply(server: Server) -> None:
    assert why(server, "/cut") == "no-reply"


def test_a_closed_port_is_told_apart_from_one_that_hangs_up() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        closed = target(base_url=f"http://127.0.0.1:{held.getsockname()[1]}")
        with pytest.raises(Unreachable, match="not-connected"):
            adapter.ask(closed, "/x")


def test_proxies_of_the_environment_are_not_used(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert adapter.ask(at(server), "/orders/17").status == 200


def test_the_host_is_pinned_and_still_named(server: Server) -> None:
    named = at(server, base_url=f"http://localhost:{server.server_port}")
    reply = adapter.ask(named, "/orders/17", headers={"if-match": '"v1"'})
    path, headers = server.seen[0]
    assert (reply.status, reply.headers["etag"], reply.content) == (200, '"v1"', b"{}")
    assert path == "/orders/17" and headers["host"] == f"localhost:{server.server_port}"
    assert headers["if-match"] == '"v1"' and "accept-encoding" in headers


@pytest.mark.parametrize(
    "address",
    [
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::a9fe:a9fe",
        "2002:7f00:1::",
        "2001:0:7f00:1::1",
        "::127.0.0.1",
        "::ffff:0:127.0.0.1",
        "fec0::1",
        "fd00:ec2::254",
        "240.0.0.1",
    ],
)
def test_an_address_that_leads_to_another_network_inside_itself_is_never_reached(address: str) -> None:
    assert not adapter.allowed(address, private=False)


@pytest.mark.parametrize(
    "address", ["64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1", "::ffff:169.254.169.254", "fd00:ec2::254"]
)
def test_no_form_of_a_link_local_or_metadata_address_is_reached_even_where_private_ones_are(address: str) -> None:
    assert not adapter.allowed(address, private=True)


def test_an_address_without_a_usable_port_is_unreachable_and_no_crash() -> None:
    with pytest.raises(Unreachable, match="not-resolved"):
        adapter.ask(target(base_url="http://127.0.0.1:99999"), "/")
