"""The fields of a resource that matter to an approval, as its target declares them: whether they moved. No clock, no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ledger.domain.canonical import Body, canonical, parse
from ledger.domain.errors import LedgerError
from ledger.domain.targets import LARGEST_REPLY, MISSING, point


def fields(pointers: Sequence[str], content: bytes | None) -> dict[str, bytes] | None:
    """The canonical value of each declared field that a resource has; None where it isn't JSON, was erased, or has none of them."""
    if content is None:
        return None
    try:
        document = parse(content, limit=LARGEST_REPLY)
    except LedgerError:
        return None
    found: dict[str, Any] = {pointer: point(document, pointer) for pointer in pointers}
    return {pointer: canonical(value) for pointer, value in found.items() if value is not MISSING} or None


def moved(pointers: Sequence[str], before: Body | None, now: Body | None) -> tuple[str, ...]:
    """The declared fields that aren't as they were, as `differ` has it."""
    return differ(
        pointers,
        fields(pointers, before.content if before else None),
        fields(pointers, now.content if now else None),
    )


def differ(
    pointers: Sequence[str], was: Mapping[str, bytes] | None, now: Mapping[str, bytes] | None
) -> tuple[str, ...]:
    """The declared fields that aren't as they were; one that appeared or went has moved. All of them, where either side can't be read."""
    if was is None or now is None:
        return tuple(pointers)
    return tuple(pointer for pointer in pointers if was.get(pointer) != now.get(pointer))
