"""Our own renderers: refunds and wires of payment services, and notes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from approvals.renderers.registry import renders
from approvals.renderers.words import Asked, Difference, Words, amount, name


def _payment(asked: Asked) -> tuple[str, str] | None:
    """Money and the order that it is about, where the arguments plainly say both."""
    if not isinstance(asked.arguments, Mapping):
        return None
    money = amount(asked.arguments.get("amount_minor"), asked.arguments.get("currency"))
    order = name(asked.arguments.get("order"))
    return (money, order) if money and not money.startswith("−") and order else None


@renders("payments.refund", version="4")
def refund(asked: Asked) -> Words | None:
    """Money back to a customer."""
    payment = _payment(asked)
    if payment is None:
        return None
    money, order = payment
    return Words(
        amount=money,
        headline=f"Refund {money} to the customer of order {order} at {asked.target}",
        verb="this refund",
        risk="high",
        risk_label="High risk: money leaves",
        undo="can’t be undone once it is paid",
        warning=_beyond(asked.arguments, asked.seen),
        differences=_after(asked.arguments, asked.seen),
        reach=(f"The customer of order {order} is paid {money}.",),
    )


def _after(arguments: Mapping[str, Any], order: Any) -> tuple[Difference, ...]:
    """What is refunded of the order before and after, as far as the order was seen; nothing when it was seen in another currency."""
    if not isinstance(order, Mapping) or order.get("currency") != arguments["currency"]:
        return ()
    total, refunded, currency = _total(order), order.get("refunded_minor", 0), order["currency"]
    if not amount(total, currency) or not amount(refunded, currency):
        return ()
    gone = refunded + arguments["amount_minor"]
    return (
        Difference("Refunded so far", amount(refunded, currency), amount(gone, currency)),
        Difference("Left to refund", amount(total - refunded, currency), amount(total - gone, currency)),
    )


def _total(order: Mapping[str, Any]) -> Any:
    """What the order came to, by the name that its target gives it."""
    return order.get("total_minor", order.get("amount_minor"))


def _beyond(arguments: Mapping[str, Any], order: Any) -> str:
    """What is wrong with the amount, going by the order as it was seen: another currency, or more than is left of it."""
    if not isinstance(order, Mapping):
        return ""
    wanted, currency = arguments["amount_minor"], order.get("currency")
    total, refunded = _total(order), order.get("refunded_minor", 0)
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


@renders("notes.*", version="1")
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


@renders("wires.*", version="2")
def wire(asked: Asked) -> Words | None:
    """Money by wire, to whom the order belongs."""
    payment = _payment(asked)
    if payment is None:
        return None
    money, order = payment
    return Words(
        amount=money,
        headline=f"Send {money} by wire for order {order} at {asked.target}",
        verb="this wire",
        risk="high",
        risk_label="High risk: money leaves",
        undo="can’t be undone",
        reach=(f"Whoever the wire names is paid {money}.",),
    )
