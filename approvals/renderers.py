"""What an agent asks for, in our words: a renderer per tool turns checked arguments into verb, object and place.

A tool without a renderer, or arguments that a renderer doesn't know, get the cautious default. No renderer hides anything: the complete
arguments stand below in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

MINOR_DIGITS = {"BHD": 3, "CLP": 0, "ISK": 0, "JOD": 3, "JPY": 0, "KRW": 0, "KWD": 3, "OMR": 3, "TND": 3, "VND": 0}
LONGEST_NAME = 60


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked: the tool, the target's name, the resource there, the parsed final arguments, and what the target last showed of the
    resource. The last two are None when they aren't known or may not be shown."""

    tool: str
    target: str
    resource: str
    arguments: Any
    seen: Any = None


@dataclass(frozen=True, slots=True)
class Words:
    """`headline` is verb, object and place; `verb` names the button; `undo` says whether it can be taken back; `rated` is False for the default.

    `warning` is what speaks against it as far as the target was seen, '' for nothing.
    """

    headline: str
    verb: str
    risk: str
    risk_label: str
    undo: str
    rated: bool = True
    warning: str = ""


Renderer = Callable[[Asked], Words | None]
_registered: list[tuple[str, Renderer]] = []


def renders(pattern: str) -> Callable[[Renderer], Renderer]:
    """Register a renderer for the tools that a pattern matches; the first that answers wins."""

    def register(renderer: Renderer) -> Renderer:
        _registered.append((pattern, renderer))
        return renderer

    return register


def words_for(asked: Asked) -> Words:
    """Our words for what is asked; the cautious default where nobody knows better."""
    for pattern, renderer in _registered:
        if fnmatchcase(asked.tool, pattern) and (words := renderer(asked)) is not None:
            return words
    place = f"{asked.resource} at {asked.target}" if asked.resource else asked.target
    return Words(
        headline=f"Call {asked.tool} on {place}",
        verb="this call",
        risk="high",
        risk_label="Not rated: treat as high risk",
        undo="not known whether it can be undone",
        rated=False,
    )


def amount(minor: Any, currency: Any) -> str:
    """Money from minor units: 4200 EUR is "42.00 EUR"; '' for anything that isn't plainly money."""
    if not isinstance(minor, int) or isinstance(minor, bool) or not isinstance(currency, str):
        return ""
    if len(currency) != 3 or not (currency.isascii() and currency.isupper()):
        return ""
    digits = MINOR_DIGITS.get(currency, 2)
    sign, whole = ("−" if minor < 0 else ""), abs(minor)
    text = f"{whole // 10**digits:,}"
    return f"{sign}{text}{f'.{whole % 10**digits:0{digits}}' if digits else ''} {currency}"


def name(value: Any) -> str:
    """A short name from the arguments, fit for a headline; '' for anything else."""
    if isinstance(value, str) and 0 < len(value) <= LONGEST_NAME and value.isprintable():
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


@renders("payments.refund")
def refund(asked: Asked) -> Words | None:
    """Money back to a customer."""
    if not isinstance(asked.arguments, Mapping):
        return None
    money = amount(asked.arguments.get("amount_minor"), asked.arguments.get("currency"))
    order = name(asked.arguments.get("order"))
    if not money or money.startswith("−") or not order:
        return None
    return Words(
        headline=f"Refund {money} to the customer of order {order} at {asked.target}",
        verb="this refund",
        risk="high",
        risk_label="High risk: money leaves",
        undo="can’t be undone once it is settled",
        warning=_beyond(asked.arguments, asked.seen),
    )


def _beyond(arguments: Mapping[str, Any], order: Any) -> str:
    """What is wrong with the amount, going by the order as it was seen: another currency, or more than is left of it."""
    if not isinstance(order, Mapping):
        return ""
    wanted, currency = arguments["amount_minor"], order.get("currency")
    total, refunded = order.get("amount_minor"), order.get("refunded_minor", 0)
    whole, gone = amount(total, currency), amount(refunded, currency)
    if not whole or not gone:
        return ""
    if currency != arguments["currency"]:
        return f"The order is in {currency}, this refund in {arguments['currency']}."
    if wanted <= total - refunded:
        return ""
    return (
        f"This refund of {amount(wanted, currency)} is more than the order has left: {amount(total - refunded, currency)}"
        f" ({whole} in all, {gone} refunded already)."
    )


@renders("notes.*")
def note(asked: Asked) -> Words | None:
    """A note beside a thing; nothing moves."""
    if not asked.resource:
        return None
    return Words(
        headline=f"Write a note on {asked.resource} at {asked.target}",
        verb="this note",
        risk="low",
        risk_label="Low risk",
        undo="can be undone by hand",
    )


@renders("wires.*")
def wire(asked: Asked) -> Words | None:
    """Money by wire, to whom the order belongs."""
    if not isinstance(asked.arguments, Mapping):
        return None
    money = amount(asked.arguments.get("amount_minor"), asked.arguments.get("currency"))
    order = name(asked.arguments.get("order"))
    if not money or money.startswith("−") or not order:
        return None
    return Words(
        headline=f"Send {money} by wire for order {order} at {asked.target}",
        verb="this wire",
        risk="high",
        risk_label="High risk: money leaves",
        undo="can’t be undone",
    )
