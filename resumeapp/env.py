"""A typed reader of environment variables that fails loudly, and lists every fault at once.

`Env` remembers each setting it was asked for with its help text; `docs/operations.md` is checked
against that registry. Messages name the variable and what was expected, never the value: it may be
a secret.
"""

import os
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import urlsplit

_DURATION: Final = re.compile(r"^(\d+)(ms|s|m|h|d)?$")
_UNITS: Final = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_TRUE: Final = frozenset({"1", "true", "yes", "on"})
_FALSE: Final = frozenset({"0", "false", "no", "off"})

T = TypeVar("T")


class EnvError(Exception):
    """One or more variables are missing or bad; the message lists all of them."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A variable that the program reads: its kind, the default as text, and what it does."""

    name: str
    kind: str
    default: str
    help: str


class Env:
    """Reads variables from `source`, collects faults, and raises them together in `check()`."""

    def __init__(self, source: Mapping[str, str] | None = None) -> None:
        self._source = os.environ if source is None else source
        self.settings: dict[str, Setting] = {}
        self.faults: list[str] = []

    def text(self, name: str, default: str | None, help: str) -> str:
        """A string; `None` as the default makes the variable required."""
        return self._read(name, "text", default, help, lambda raw: raw, "")

    def boolean(self, name: str, default: bool, help: str) -> bool:
        """`1 true yes on` or `0 false no off`, in any case."""
        shown = "true" if default else "false"
        return self._read(name, "boolean", shown, help, _parse_boolean, default)

    def integer(self, name: str, default: int, help: str, *, low: int = 0, high: int = 2**53 - 1) -> int:
        """A whole number from `low` to `high`, both included."""

        def parse(raw: str) -> int:
            if not re.fullmatch(r"-?\d+", raw) or not low <= int(raw) <= high:
                raise ValueError(f"expected a whole number from {low} to {high}")
            return int(raw)

        return self._read(name, "integer", str(default), help, parse, default)

    def duration(self, name: str, default: str, help: str) -> timedelta:
        """A length of time: `500ms`, `30s`, `5m`, `2h`, `1d`; a bare number is seconds."""
        return self._read(name, "duration", default, help, parse_duration, timedelta())

    def names(self, name: str, default: str, help: str) -> list[str]:
        """A list separated by commas; blanks around items and empty items are dropped."""
        return self._read(name, "list", default, help, _split, [])

    def urls(self, name: str, default: str, help: str) -> list[str]:
        """A list of http or https origins, separated by commas."""
        return self._read(name, "list of URLs", default, help, _parse_urls, [])

    def secret(self, name: str, file: Path | None, help: str, *, least: int = 32) -> str:
        """A secret of at least `least` characters.

        With `file`, a missing variable is read from there, and made there (mode 0600) when the
        file doesn't exist; without, the variable is required.
        """
        shown = None if file is None else "kept in the data directory"
        self.settings[name] = Setting(name, "secret", shown or "required", help)
        value = self._source.get(name, "")
        if value:
            if len(value) < least:
                self.faults.append(f"{name}: expected at least {least} characters")
            return value
        if file is None:
            self.faults.append(f"{name}: missing. {help}")
            return ""
        return read_or_make_secret(file)

    def check(self) -> None:
        """Raise `EnvError` with every fault found so far, or do nothing."""
        if self.faults:
            lines = "\n".join(f"  {fault}" for fault in self.faults)
            raise EnvError(f"The environment is not usable:\n{lines}")

    def _read(
        self,
        name: str,
        kind: str,
        default: str | None,
        help: str,
        parse: Callable[[str], T],
        fallback: T,
    ) -> T:
        self.settings[name] = Setting(name, kind, "required" if default is None else default, help)
        raw = self._source.get(name, "").strip()
        if not raw:
            if default is None:
                self.faults.append(f"{name}: missing. {help}")
                return fallback
            raw = default
        try:
            return parse(raw)
        except ValueError as fault:
            self.faults.append(f"{name}: {fault}")
            return fallback


def parse_duration(raw: str) -> timedelta:
    """`500ms`, `30s`, `5m`, `2h`, `1d` or a bare number of seconds; ValueError otherwise."""
    match = _DURATION.match(raw)
    if match is None:
        raise ValueError("expected a duration such as 500ms, 30s, 5m, 2h or 1d")
    return timedelta(**{_UNITS[match[2] or "s"]: int(match[1])})


def read_or_make_secret(file: Path) -> str:
    """The secret kept in `file`, which is made with mode 0600 if it isn't there.

    Two processes that start together agree: the file is linked into place whole, once.
    """
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_name(f".{file.name}.{os.getpid()}.{secrets.token_hex(4)}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as handle:
            handle.write(secrets.token_urlsafe(48))
        try:
            os.link(draft, file)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return file.read_text().strip()


def _parse_boolean(raw: str) -> bool:
    if raw.lower() in _TRUE:
        return True
    if raw.lower() in _FALSE:
        return False
    raise ValueError("expected true or false")


def _split(raw: str) -> list[str]:
    return [item.strip() for item in raw.split(",") if item.strip()]


def _parse_urls(raw: str) -> list[str]:
    items = _split(raw)
    for item in items:
        parts = urlsplit(item)
        if parts.scheme not in {"http", "https"} or not parts.netloc:
            raise ValueError("expected http or https URLs separated by commas")
    return items
