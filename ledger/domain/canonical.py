"""The one strict parser, the one canonical form, and salted commitments.

JSON is parsed by RFC 8259 with what `json` lets through refused: duplicate keys, NaN and infinities, integers beyond
±(2^53 − 1), NUL and lone surrogates. The canonical form is RFC 8785. Everything that is hashed refers to a commitment,
SHA-256(salt ‖ canonical bytes), so that erasing a body with its salt leaves nothing to guess from.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import orjson
import rfc8785

from ledger.domain.errors import LedgerError

SAFE_INTEGER = 2**53 - 1
SALT_BYTES = 16
DEEPEST = 100
"""Levels of nesting: what comes later walks a document by recursion and must not run out of stack halfway."""
_EXPONENT_FROM = 1e21  # RFC 8785 writes an exponent from here on
_BAD_TEXT = re.compile("[\x00\ud800-\udfff]")


def parse(raw: bytes, *, limit: int | None = None) -> Any:
    """Parse untrusted JSON bytes strictly.

    Raises LedgerError `too-large`, `malformed-json`, `duplicate-key`, `number-out-of-range` or `bad-text`, naming the path where
    there is one. `limit` is in bytes.
    """
    if limit is not None and len(raw) > limit:
        raise LedgerError(
            "too-large",
            f"the document has {len(raw)} bytes; at most {limit} are taken",
            "Keep large content in a store of your own, and send its address and digest.",
            size=len(raw),
            limit=limit,
        )
    try:
        value = _DECODER.decode(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise LedgerError(
            "malformed-json",
            f"the document is not UTF-8 (byte {error.start})",
            "Send JSON encoded as UTF-8.",
        ) from None
    except json.JSONDecodeError as error:
        raise LedgerError(
            "malformed-json",
            f"the document is not JSON: {error.msg} at line {error.lineno}, column {error.colno}",
            "Send one JSON value as RFC 8259 defines it.",
        ) from None
    except RecursionError:
        raise LedgerError("malformed-json", "the document is nested too deeply", "Flatten it.") from None
    check_text(value)
    return value


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise LedgerError(
                    "duplicate-key",
                    f"the key {key[:80]!r} appears twice in one object",
                    "Send each key once.",
                )
            seen.add(key)
    return out


class _OutOfRange:
    """Stands where a number that readers would read differently was, until the walk that knows its path meets it."""


def _integer(text: str) -> int | _OutOfRange:
    value = int(text) if len(text) <= 17 else SAFE_INTEGER + 1
    return value if abs(value) <= SAFE_INTEGER else _OutOfRange()


def _float(text: str) -> float | _OutOfRange:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        return _OutOfRange()
    if SAFE_INTEGER < abs(value) < _EXPONENT_FROM and value.is_integer():
        return _OutOfRange()  # its canonical form would be an integer that is refused
    return value


def _constant(text: str) -> _OutOfRange:
    return _OutOfRange()


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_int=_integer, parse_float=_float, parse_constant=_constant
)


def check_text(value: Any, path: str = "$") -> None:
    """Refuse numbers out of range, NUL and lone surrogates anywhere in a parsed value, naming the path, and nesting beyond `DEEPEST`."""
    if not _sound(value):
        _name_fault(value, path, 0)


PLAIN: Final[frozenset[type]] = frozenset({str, int, bool, type(None)})
"""Types of which a value stands in the journal as it is."""
_TEXT: Final = frozenset({str})
_LEAVES: Final = frozenset({int, float, bool, type(None)})


def _sound(value: Any) -> bool:
    """Level by level, without paths: True only where `_name_fault` would find nothing."""
    texts: list[str] = []
    level = [value]
    for _ in range(DEEPEST + 1):
        deeper: list[Any] = []
        for item in level:
            kind = type(item)
            if kind is str:
                texts.append(item)
            elif kind is dict:
                texts.extend(item)
                deeper.extend(item.values())
            elif kind is list:
                deeper.extend(item)
            elif kind not in _LEAVES:
                return False
        if not deeper:
            return not _BAD_TEXT.search("".join(texts))
        level = deeper
    return False


def _name_fault(value: Any, path: str, depth: int) -> None:
    if depth > DEEPEST:
        raise LedgerError("malformed-json", f"the document is nested more than {DEEPEST} levels deep", "Flatten it.")
    if isinstance(value, str):
        if _BAD_TEXT.search(value):
            raise LedgerError(
                "bad-text",
                f"the text at {path} holds NUL or half a surrogate pair",
                "Send such bytes as base64.",
            )
    elif isinstance(value, _OutOfRange):
        raise LedgerError(
            "number-out-of-range",
            f"the number at {path} can't be kept exactly by every reader (NaN, infinite, or an integer beyond 2^53 - 1)",
            "Send it as a string.",
        )
    elif isinstance(value, dict):
        for key, item in value.items():
            _name_fault(key, f"{path}.{key[:40]!a}", 0)
            _name_fault(item, f"{path}.{key[:40]}", depth + 1)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _name_fault(item, f"{path}[{index}]", depth + 1)


def canonical(value: Any) -> bytes:
    """The RFC 8785 form of a parsed value."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS) if _agreed(value, PLAIN) else rfc8785.dumps(value)


def recorded(value: Any) -> bytes:
    """`canonical(plain(value))` of a record value, in one pass over it wherever it holds no floats, and only ASCII keys."""
    return orjson.dumps(value, _text, _RECORDED) if _agreed(value, _RECORD) else canonical(plain(value))


def _agreed(value: Any, leaves: frozenset[type]) -> bool:
    """True where a sorted compact dump and RFC 8785 agree byte for byte: leaves of these types or texts of other kinds, and only ASCII keys.

    Most of what a container holds are leaves, which a comprehension passes over in half the time of a loop.
    """
    found: list[Iterable[Any]] = [[value]]
    for container in found:  # grows while it is walked
        for item in [each for each in container if type(each) not in leaves]:
            kind = type(item)
            if kind is dict:
                if not (_TEXT.issuperset(map(type, item)) and "".join(item).isascii()):
                    return False
                found.append(item.values())
            elif kind is list or kind is tuple:
                found.append(item)
            elif not isinstance(item, str):
                return False
    return True


_MEDIA = re.compile(r"[a-z0-9][a-z0-9.+-]{0,38}/[a-z0-9][a-z0-9.+-]{0,38}")


def media_type(text: str) -> str:
    """The kind of some bytes without its parameters, which are anybody's text; `application/octet-stream` for what is no kind."""
    kind = text.partition(";")[0].strip().lower()
    return kind if _MEDIA.fullmatch(kind) else "application/octet-stream"


def commit(salt: bytes, content: bytes) -> bytes:
    """SHA-256(salt ‖ content): 32 bytes."""
    return hashlib.sha256(salt + content).digest()


@dataclass(frozen=True, slots=True)
class Body:
    """Bytes of a state, request, result, evidence or event, with the salt that commits them. `size` is in bytes."""

    id: UUID
    salt: bytes
    content: bytes
    media: str = "application/json"

    @property
    def commitment(self) -> bytes:
        return commit(self.salt, self.content)

    def commitment_of(self, content: bytes) -> bytes:
        """What other content would be committed to under this salt."""
        return commit(self.salt, content)

    def same(self, content: bytes) -> bool:
        """Does other content have this commitment?"""
        return self.commitment_of(content) == self.commitment


def rfc3339(at: datetime) -> str:
    """UTC with microseconds and Z, as every entry, digest and answer writes it."""
    if at.tzinfo is not UTC:
        at = at.astimezone(UTC)
    return at.isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def parse_time(text: Any, field: str) -> datetime:
    """An RFC 3339 time with offset. Raises LedgerError `naive-time` or `invalid`."""
    try:
        at = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        raise LedgerError("invalid", f"{field} is not a time", "Send RFC 3339, such as 2026-01-31T09:30:00Z.") from None
    if at.tzinfo is None:
        raise LedgerError("naive-time", f"{field} has no offset", "Add Z or an offset, such as +01:00.")
    try:
        return at.astimezone(UTC)
    except OverflowError:
        raise LedgerError("invalid", f"{field} lies outside of every calendar", "Send a time from now on.") from None


def digest(kind: str, fields: Mapping[str, Any]) -> bytes:
    """SHA-256 over the canonical form of named fields, with the kind in front so that digests of two kinds never meet."""
    return hashlib.sha256(kind.encode() + b"\x00" + recorded(dict(fields))).digest()


_TEXTS: Final[Mapping[type, Callable[[Any], str]]] = {
    UUID: str,
    datetime: rfc3339,
    bytes: bytes.hex,
    memoryview: memoryview.hex,
}


_RECORD: Final[frozenset[type]] = PLAIN | _TEXTS.keys()
_RECORDED: Final = orjson.OPT_SORT_KEYS | orjson.OPT_PASSTHROUGH_DATETIME


def _text(value: Any) -> str:
    """A value that the dump doesn't know by itself, as `plain` writes it."""
    return _TEXTS[type(value)](value)


def plain(value: Any) -> Any:
    """A record value as the journal writes it: ids and times as text, bytes as hex."""
    kind = type(value)
    if kind in PLAIN:
        return value
    if kind in _TEXTS:
        return _TEXTS[kind](value)
    if isinstance(value, int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    raise TypeError(f"{kind.__name__} has no place in the record")
