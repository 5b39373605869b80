"""Money as requests name it: whole minor units and a currency. No clock, no I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_BY_DECIMALS = {
    0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
    2: """
    AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW CNY COP COU CRC CUP CVE CZK
    DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL
    MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK
    SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XCD XCG YER ZAR ZMW ZWG
    """,
    3: "BHD IQD JOD KWD LYD OMR TND",
    4: "CLF UYW",
}
DECIMALS: Mapping[str, int] = {code: digits for digits, codes in _BY_DECIMALS.items() for code in codes.split()}
"""Digits after the point by ISO 4217, for every currency that has minor units."""


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
        """`1,200.00 EUR`; where nobody knows the currency's digits, the number as it stands: a guess would be off by a hundred."""
        decimals = DECIMALS.get(self.currency)
        if decimals is None:
            return f"{self.minor:,} minor units of {self.currency}".replace("-", "−")
        whole, part = divmod(abs(self.minor), 10**decimals)
        text = f"{whole:,}.{part:0{decimals}d}" if decimals else f"{whole:,}"
        return f"{'−' if self.minor < 0 else ''}{text} {self.currency}"


def total(amounts: Iterable[Money]) -> list[Money]:
    """The sum of each currency, by currency."""
    sums: dict[str, int] = {}
    for amount in amounts:
        sums[amount.currency] = sums.get(amount.currency, 0) + amount.minor
    return [Money(minor, currency) for currency, minor in sorted(sums.items())]
