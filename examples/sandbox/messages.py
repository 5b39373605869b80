"""What comes in, what goes out, and how a body is read."""

import hashlib
import json
import re
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import parse_qsl

JSON = dict[str, object]
KEY_PATTERN = re.compile(r"[\x21-\x7e]{1,255}")


class Manner(StrEnum):
    """How a reply leaves the service."""

    SEND = "send"
    SEND_TWICE = "send_twice"
    RESET_IN_BODY = "reset_in_body"
    CLOSE_SILENTLY = "close_silently"


class Problem(Exception):
    """A request refused before anything was applied: a status, a stable code and a remedy."""

    def __init__(self, status: int, error: str, remedy: str, **more: object) -> None:
        super().__init__(error)
        self.status = status
        self.body: JSON = {"error": error, "remedy": remedy, **more}


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request; header names in lower case; ``gone`` tells whether the caller hung up."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    gone: Callable[[], bool]

    @property
    def parameters(self) -> dict[str, str]:
        """The query's parameters; of a repeated one the last."""
        return dict(parse_qsl(self.query, keep_blank_values=True))

    @property
    def key(self) -> str:
        """The idempotency key that it is about: its header, or for a look-up its parameter."""
        return self.headers.get("idempotency-key") or (self.parameters.get("key", "") if self.query else "")


@dataclass(frozen=True, slots=True)
class Reply:
    """Status, body (JSON, or text with its own content type) and headers."""

    status: int
    body: JSON | bytes
    headers: dict[str, str] = field(default_factory=dict)

    def encoded(self) -> bytes:
        """The body's bytes."""
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body, ensure_ascii=False).encode()

    def complete(self) -> dict[str, str]:
        """All headers: JSON unless it names another type, and an ETag with each success."""
        headers = {"Content-Type": "application/json", **self.headers}
        if self.status < 300 and "ETag" not in headers:
            headers["ETag"] = f'"{hashlib.sha256(self.encoded()).hexdigest()[:16]}"'
        return headers


@dataclass(frozen=True, slots=True)
class Delivery:
    """A reply and the manner in which it leaves."""

    reply: Reply | None
    manner: Manner = Manner.SEND


@dataclass(frozen=True, slots=True)
class Call:
    """A logged request on its way to the handler of its route.

    ``outcome`` and ``amount_minor`` override what the handler would decide; with ``remember`` false
    the key is neither looked at nor kept; ``in_progress`` tells whether another request with a key
    is being worked on.
    """

    request: Request
    seq: int
    at: str
    arguments: tuple[str, ...]
    outcome: str
    amount_minor: int | None
    remember: bool
    in_progress: Callable[[str], bool]


Handler = Callable[[sqlite3.Connection, Call], Reply]


def problem_reply(problem: Problem) -> Reply:
    """The reply that tells a problem."""
    return Reply(problem.status, problem.body)


def _no_duplicates(pairs: list[tuple[str, object]]) -> JSON:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("duplicate key")
    return found


def _no_constant(_: str) -> object:
    raise ValueError("not a JSON number")


def read_json(body: bytes) -> JSON:
    """The body as a JSON object; 400 for duplicate keys, NaN, infinities, lone surrogates."""
    try:
        value = json.loads(body.decode(), object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
        # A lone surrogate can be escaped in JSON and can't be stored.
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise Problem(400, "malformed_json", "send one JSON object in UTF-8, without duplicate keys or NaN") from None
    if not isinstance(value, dict):
        raise Problem(400, "malformed_json", "send a JSON object")
    return value


def only_fields(body: Mapping[str, object], required: set[str], optional: set[str] | None = None) -> None:
    """Refuse missing and unknown fields with 400."""
    missing = sorted(required - body.keys())
    if missing:
        raise Problem(400, "missing_field", f"add {', '.join(missing)}")
    unknown = body.keys() - required - (optional or set())
    if unknown:
        raise Problem(400, "unknown_field", f"send only {', '.join(sorted(required | (optional or set())))}")


def text_field(body: Mapping[str, object], name: str) -> str:
    """A text of 1 to 2,000 characters, or 400."""
    value = body[name]
    if not isinstance(value, str) or not 1 <= len(value) <= 2000:
        raise Problem(400, "bad_field", f"{name} is a text of 1 to 2000 characters")
    return value


def amount_field(body: Mapping[str, object], name: str, least: int = 1) -> int:
    """An amount in minor units from ``least`` to 2^53 − 1, or 400."""
    value = body[name]
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 2**53:
        raise Problem(400, "bad_field", f"{name} is a whole number of minor units, at least {least}")
    return value


def currency_field(body: Mapping[str, object]) -> str:
    """A currency code of three capital letters, or 400."""
    value = body["currency"]
    if not isinstance(value, str) or not re.fullmatch(r"[A-Z]{3}", value):
        raise Problem(400, "bad_field", "currency is three capital letters, such as EUR")
    return value


def required_key(request: Request) -> str:
    """The Idempotency-Key header, or 400."""
    key = request.headers.get("idempotency-key", "")
    if not KEY_PATTERN.fullmatch(key):
        raise Problem(
            400,
            "idempotency_key_required",
            "send Idempotency-Key: 1 to 255 visible ASCII characters",
        )
    return key


def fingerprint(body: JSON) -> str:
    """SHA-256 of the body with its members sorted: what decides whether two bodies are the same."""
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def require_same_body(stored: str, sent: str) -> None:
    """Refuse a key that comes back with another body, with 422 and both fingerprints."""
    if stored != sent:
        raise Problem(
            422,
            "idempotency_key_reused",
            "use a new key for another request; this key keeps its first body",
            stored_fingerprint=stored,
            sent_fingerprint=sent,
        )
