"""Filters of the console's templates."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime
from typing import Any

from django import template

register = template.Library()
KEPT = frozenset("\n\t\u200d")
HIDDEN = frozenset({"Cc", "Cf", "Zl", "Zp", "Co", "Cn", "Cs"})
STEPS = ((86_400, "d"), (3_600, "h"), (60, "min"))


@register.filter
def visible_text(value: Any) -> str:
    """Foreign text with its control, direction and other invisible characters shown as ‹U+202E›; line ends, tabs and joined emoji stay."""
    if value is None:
        return ""
    return "".join(
        f"‹U+{ord(sign):04X}›" if sign not in KEPT and unicodedata.category(sign) in HIDDEN else sign
        for sign in str(value)
    )


@register.filter
def unstopped(text: str) -> str:
    """A sentence as one of several facts on a line: without its full stop."""
    return text.removesuffix(".")


@register.filter
def absolute(value: datetime | None) -> str:
    """A moment for a sentence: day, time and zone."""
    return f"{value.astimezone(UTC):%-d %b %Y, %H:%M} UTC" if value else "not known"


@register.filter
def exact(value: datetime | None) -> str:
    """A moment for a sentence that is told apart from others of its minute: day, time to the second and zone."""
    return f"{value.astimezone(UTC):%-d %b %Y, %H:%M:%S} UTC" if value else "not known"


@register.filter
def span(seconds: float | None) -> str:
    """A length of time in at most two units: "2 d 3 h", "45 min", "8 s"."""
    if seconds is None:
        return "not known"
    left = int(abs(seconds))
    if left < 60:
        return f"{left} s"
    for place, (size, unit) in enumerate(STEPS):
        if left >= size:
            text = f"{left // size} {unit}"
            if place + 1 < len(STEPS) and (rest := left % size // STEPS[place + 1][0]):
                text += f" {rest} {STEPS[place + 1][1]}"
            return text
    return ""


@register.filter
def words(code: Any) -> str:
    """A code in words: "not_dispatched" is "not dispatched"."""
    return str(code).replace("_", " ").replace("-", " ")


@register.filter
def short(value: Any) -> str:
    """The first twelve hexadecimal digits of a digest or an id."""
    return (bytes(value).hex() if isinstance(value, bytes | memoryview) else str(value).replace("-", ""))[:12]
