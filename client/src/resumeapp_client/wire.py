"""Calls to the server: one request with bounded, jittered retries where repeating is safe."""

from __future__ import annotations

import json
import logging
import random
import time
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import httpx2 as httpx

from resumeapp_client.clocks import monotonic
from resumeapp_client.errors import ResumeappError, Unreachable, from_problem

log = logging.getLogger("resumeapp_client")

traceparent: ContextVar[str | None] = ContextVar("resumeapp_traceparent", default=None)
"""The W3C trace context that calls carry, set by whoever starts the trace."""

TRIES = 6
PATIENCE_SECONDS = 20.0
_FIRST_DELAY, _LONGEST_DELAY = 0.1, 5.0
_REPLY_LOST = frozenset({502, 503, 504})
_TRY_LATER = frozenset({429})


@dataclass(frozen=True, slots=True)
class Answer:
    """A success: parsed body (None when empty), and when it was asked for (`monotonic()`), with the Date header."""

    status: int
    body: Any
    text: str
    asked_at: float
    date: str | None


def encode(value: Any) -> bytes:
    """Compact JSON with sorted keys; NaN and infinities are refused with ValueError."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def jittered(first: float, turn: int, longest: float) -> float:
    """Seconds to wait after so many turns: doubling up to the longest, half of it by chance so that callers spread out."""
    whole = min(longest, first * 2.0**turn)
    chance: float = random.uniform(0, whole / 2)  # noqa: S311 - no secret
    return whole / 2 + chance


class Wire:
    """One base URL, one key. Neither keys nor payloads are ever logged or shown."""

    def __init__(self, base_url: str, key: str, transport: httpx.BaseTransport | None, patience: float) -> None:
        self._patience = patience
        self._http = httpx.Client(
            base_url=base_url.rstrip("/") + "/api/v1",
            headers={"Authorization": f"Bearer {key}", "User-Agent": "resumeapp-client/0.1"},
            transport=transport,
            follow_redirects=False,
            timeout=httpx.Timeout(30.0, connect=5.0),
        )

    def close(self) -> None:
        self._http.close()

    def send(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        repeat: bool = True,
        timeout: float | None = None,
        wants_json: bool = True,
    ) -> Answer:
        """Send, and with `repeat` send the identical request again when its reply was lost.

        Raises ResumeappError as the server's problem says, or Unreachable. 409, 410, 412 and 422 are never repeated.
        """
        content = None if body is None else encode(body)
        give_up_at = monotonic() + self._patience
        for turn in range(TRIES):
            try:
                return self._once(method, path, content, params, headers, timeout, wants_json)
            except _Lost as lost:
                delay = max(lost.retry_after, jittered(_FIRST_DELAY, turn, _LONGEST_DELAY))
                last = turn == TRIES - 1 or monotonic() + delay > give_up_at
                if not repeat or last:
                    raise lost.error from None
                log.info("no reply to %s (%s); asking again in %.1f s", method, lost.error.code, delay)
                time.sleep(delay)
        raise AssertionError("unreachable: the last turn answers or raises")

    def _once(
        self,
        method: str,
        path: str,
        content: bytes | None,
        params: Mapping[str, Any] | None,
        headers: Mapping[str, str] | None,
        timeout: float | None,
        wants_json: bool,
    ) -> Answer:
        sent = dict(headers or {})
        if content is not None:
            sent.setdefault("Content-Type", "application/json")
        trace = traceparent.get()
        if trace:
            sent["traceparent"] = trace
        limits = httpx.USE_CLIENT_DEFAULT if timeout is None else httpx.Timeout(timeout, connect=5.0)
        asked_at = monotonic()
        try:
            reply = self._http.request(method, path, content=content, params=params, headers=sent, timeout=limits)
        except (httpx.TransportError, httpx.DecodingError) as error:
            raise _Lost(_unreachable(type(error).__name__)) from None
        return _read(reply, asked_at, wants_json)


class _Lost(Exception):
    """The reply didn't come, or says nothing about what was done."""

    def __init__(self, error: ResumeappError, retry_after: float = 0.0) -> None:
        super().__init__(error.code)
        self.error = error
        self.retry_after = retry_after


def _read(reply: httpx.Response, asked_at: float, wants_json: bool) -> Answer:
    body: Any = None
    if reply.content and (wants_json or not reply.is_success):
        try:
            body = json.loads(reply.content)
        except ValueError:
            if reply.is_success:
                raise _Lost(_unreachable("garbled reply")) from None
    if reply.is_success:
        return Answer(reply.status_code, body, reply.text, asked_at, reply.headers.get("Date"))
    error = from_problem(reply.status_code, body)
    if reply.status_code in _REPLY_LOST | _TRY_LATER:
        raise _Lost(error, _seconds(reply.headers.get("Retry-After")))
    raise error


def _unreachable(what: str) -> Unreachable:
    return Unreachable(
        "unreachable",
        f"no usable reply from the server ({what})",
        "Check the base URL and that the server is up; calls with a key or a fence can be repeated as they are.",
    )


def _seconds(header: str | None) -> float:
    return float(header) if header and header.isdecimal() else 0.0
