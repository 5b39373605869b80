"""Ask HTTP targets: only listed hosts, resolved once and pinned, no redirects, no proxies, limited in size and time."""

from __future__ import annotations

import ipaddress
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from ssl import SSLContext
from threading import Timer
from urllib.parse import urlsplit

import httpx2 as httpx

from ledger.domain.effects import TargetRow
from ledger.domain.targets import LARGEST_REPLY, Reply

LONGEST_LOOK = 10.0
"""Seconds that one question may take, whatever the target's own limit for calls is."""


_UNICAST = ipaddress.IPv6Network("2000::/3")
_LOCAL = ipaddress.IPv6Network("fc00::/7")
_NEVER = tuple(map(ipaddress.IPv6Network, ("2001::/32", "2002::/16", "fd00:ec2::254/128")))
"""Teredo, 6to4, and the instance metadata of a large cloud. Source of the ranges: IANA IPv6 special-purpose address registry."""


class Unreachable(Exception):
    """No usable reply: `reason` is a code."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def ask(
    target: TargetRow,
    path: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    content: bytes | None = None,
    seconds: float = LONGEST_LOOK,
) -> Reply:
    """Send one request below the target's base address and read the whole reply. Raises Unreachable; never retries.

    `seconds` limits each of connecting, sending and waiting, and the whole reading of the body.
    """
    base = urlsplit(target.base_url)
    host = base.hostname or ""
    try:
        port = base.port or (443 if base.scheme == "https" else 80)
    except ValueError:
        raise Unreachable("not-resolved") from None
    address = resolve(host, port, private=target.private)
    netloc = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
    url = f"{base.scheme}://{netloc}{base.path.rstrip('/')}{path}"
    sent = {"host": base.netloc, "accept-encoding": "identity", "user-agent": "resumeapp", **(headers or {})}
    deadline = time.monotonic() + seconds
    try:
        with (
            httpx.Client(verify=_trusted(), trust_env=False, follow_redirects=False, timeout=seconds) as client,
            _closed_after(client, seconds),
            client.stream(method, url, headers=sent, content=content, extensions={"sni_hostname": host}) as response,
        ):
            body = _body(response, deadline)
            return Reply(response.status_code, {k.lower(): v for k, v in response.headers.items()}, body)
    except httpx.ConnectError:
        raise Unreachable("not-connected") from None
    except httpx.TimeoutException:
        raise Unreachable("timed-out") from None
    except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, UnicodeEncodeError):
        raise Unreachable("no-reply") from None


@cache
def _trusted() -> SSLContext:
    """Reading the certificates of all authorities takes longer than most questions: a process does it once."""
    return httpx.create_ssl_context(trust_env=False)


@contextmanager
def _closed_after(client: httpx.Client, seconds: float) -> Iterator[None]:
    """Every reading has its own limit, and a reply's head may come one byte at a time: after this long its connection is closed under it."""
    watch = Timer(2 * seconds, client.close)
    watch.daemon = True
    watch.start()
    try:
        yield
    finally:
        watch.cancel()


def _body(response: httpx.Response, deadline: float) -> bytes:
    chunks: list[bytes] = []
    size = 0
    for chunk in response.iter_raw():
        size += len(chunk)
        if size > LARGEST_REPLY:
            raise Unreachable("too-large")
        if time.monotonic() > deadline:
            raise Unreachable("timed-out")
        chunks.append(chunk)
    return b"".join(chunks)


def resolve(host: str, port: int, *, private: bool) -> str:
    """One address of the host, to be used for this request and no other. Raises Unreachable unless every address may be reached."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        raise Unreachable("not-resolved") from None
    addresses = [str(entry[4][0]) for entry in found]
    if not addresses or not all(allowed(address, private=private) for address in addresses):
        raise Unreachable("address-refused")
    return addresses[0]


def allowed(address: str, *, private: bool) -> bool:
    """May this address be reached? Public ones always, private and loopback ones where the target says so; never link-local and special ones,
    and none that carries another address inside itself (NAT64, 6to4, Teredo, IPv4-compatible), which a gateway would follow."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is None:
            return _allowed6(parsed, private=private)
        parsed = parsed.ipv4_mapped
    if parsed.is_link_local or parsed.is_multicast or parsed.is_unspecified:
        return False
    if parsed.is_loopback or parsed.is_private:
        return private
    return parsed.is_global


def _allowed6(address: ipaddress.IPv6Address, *, private: bool) -> bool:
    if any(address in network for network in _NEVER):
        return False
    if address.is_loopback or address in _LOCAL:
        return private
    return address in _UNICAST and address.is_global
