"""Money as requests name it: whole minor units and a currency. No clock, no I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

DECIMALS: Mapping[str, int] = dict.fromkeys(
    ("CLP", "ISK", "JPY", "KRW", "PYG", "UGX", "VND", "XAF", "XOF", "XPF"), 0
) | (dict.fromkeys(("BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"), 3))
"""Digits after the point by ISO 4217, where they aren't two."""


@dataclass(frozen=True, slots=True)
class Money:
    """An amount in minor units of a currency (ISO 4217)."""

    minor: int
    currency: str

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Money | None:
        """The amount of a request that names `amount_minor` and `currency`; nothing for any other shape."""
        minor, currency = document.get("amount_minor"), document.get("currency")
        if type(minor) is not int or not isinstance(currency, str) or not re.fullmatch("[A-Z]{3}", currency):
            return None
        return cls(minor, currency)

    def __str__(self) -> str:
        decimals = DECIMALS.get(self.currency, 2)
        whole, part = divmod(abs(self.minor), 10**decimals)
        text = f"{whole:,}.{part:0{decimals}d}" if decimals else f"{whole:,}"
        return f"{'−' if self.minor < 0 else ''}{text} {self.currency}"


def total(amounts: Iterable[Money]) -> list[Money]:
    """The sum of each currency, by currency."""
    sums: dict[str, int] = {}
    for amount in amounts:
        sums[amount.currency] = sums.get(amount.currency, 0) + amount.minor
    return [Money(minor, currency) for currency, minor in sorted(sums.items())]
