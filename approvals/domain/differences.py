"""What changed between two JSON documents, by path. No clock, no I/O."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

MOST_LINES = 60
MOST_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Line:
    """One path: its value before and after as text, None where it is absent."""

    field: str
    before: str | None
    after: str | None
    changed: bool = True


@dataclass(frozen=True, slots=True)
class Difference:
    """The changed paths in the documents' order; `more` says how many are left out beyond the first sixty."""

    lines: tuple[Line, ...]
    more: int = 0


def difference(before: Any, after: Any) -> Difference:
    """Compare leaf by leaf; a branch that is on one side only is one line."""
    lines = list(_compare(before, after, ""))
    return Difference(tuple(lines[:MOST_LINES]), max(0, len(lines) - MOST_LINES))


def _compare(before: Any, after: Any, path: str) -> Iterator[Line]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            inner = f"{path}.{key}" if path else key
            yield from _branch(before.get(key), key in before, after.get(key), key in after, inner)
    elif isinstance(before, list) and isinstance(after, list):
        for index in range(max(len(before), len(after))):
            old, new = before[index : index + 1], after[index : index + 1]
            yield from _branch(*_first(old), *_first(new), f"{path}[{index}]")
    elif not same(before, after):
        yield Line(path or "(all)", _text(before), _text(after))


def _first(values: list[Any]) -> tuple[Any, bool]:
    return (values[0], True) if values else (None, False)


def _branch(before: Any, was: bool, after: Any, there: bool, path: str) -> Iterator[Line]:
    if was and there:
        yield from _compare(before, after, path)
    else:
        yield Line(path, _text(before) if was else None, _text(after) if there else None)


def same(one: Any, other: Any) -> bool:
    """Equal as JSON: `1`, `1.0` and `true` are three values."""
    return type(one) is type(other) and bool(one == other)


def _text(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= MOST_CHARACTERS:
        return text
    return f"{text[:MOST_CHARACTERS]}… ({len(text):,} characters)"
