"""Orders: what refunds are taken from, and what someone else may edit while a refund waits."""

import sqlite3
from dataclasses import asdict, dataclass, replace
from decimal import Decimal, InvalidOperation
from urllib.parse import parse_qs

from examples.sandbox import log
from examples.sandbox.messages import (
    Call,
    Problem,
    Reply,
    Request,
    amount_field,
    currency_field,
    only_fields,
    read_json,
    text_field,
)

_WITHOUT_MINOR_UNIT = {"JPY", "KRW", "ISK", "CLP", "VND"}
_COLUMNS = "id, customer, amount_minor, currency, refunded_minor, status, version"


@dataclass(frozen=True, slots=True)
class Order:
    """An order; amounts in minor units; ``version`` grows with every change, refunds included."""

    id: str
    customer: str
    amount_minor: int
    currency: str
    refunded_minor: int
    status: str
    version: int

    @property
    def etag(self) -> str:
        """The strong validator of this version."""
        return f'"v{self.version}"'


def find(tx: sqlite3.Connection, order_id: str) -> Order | None:
    """The order, or None."""
    row = tx.execute(f"SELECT {_COLUMNS} FROM orders WHERE id = ?", (order_id,)).fetchone()
    return Order(*row) if row else None


def save(tx: sqlite3.Connection, order: Order) -> None:
    """Write the order as it is given."""
    tx.execute(
        f"INSERT OR REPLACE INTO orders ({_COLUMNS}) VALUES"
        " (:id, :customer, :amount_minor, :currency, :refunded_minor, :status, :version)",
        asdict(order),
    )


def every(tx: sqlite3.Connection, limit: int = 500) -> list[Order]:
    """The first orders by id."""
    return [Order(*row) for row in tx.execute(f"SELECT {_COLUMNS} FROM orders ORDER BY id LIMIT ?", (limit,))]


def require_match(request: Request, order: Order | None) -> None:
    """Refuse with 412 when If-Match doesn't name the order's version (RFC 9110, 13.1.1)."""
    wanted = request.headers.get("if-match")
    if wanted is None:
        return
    if order is None or (wanted.strip() != "*" and order.etag not in [tag.strip() for tag in wanted.split(",")]):
        current = order.etag if order else None
        raise Problem(412, "order_changed", "read the order again and decide anew", current_etag=current)


def get(tx: sqlite3.Connection, call: Call) -> Reply:
    """One order, or 404."""
    order = find(tx, call.arguments[0])
    if order is None:
        raise Problem(404, "no_such_order", "create it with PUT")
    return _reply(200, order)


def list_all(tx: sqlite3.Connection, call: Call) -> Reply:
    """The first 500 orders."""
    return Reply(200, {"orders": [asdict(order) for order in every(tx)]})


def put(tx: sqlite3.Connection, call: Call) -> Reply:
    """Create or replace an order; what was refunded stays unless the body says otherwise."""
    body = read_json(call.request.body)
    only_fields(body, {"customer", "amount_minor", "currency"}, {"refunded_minor", "status"})
    before = find(tx, call.arguments[0])
    require_match(call.request, before)
    refunded = before.refunded_minor if before else 0
    order = Order(
        id=call.arguments[0],
        customer=text_field(body, "customer"),
        amount_minor=amount_field(body, "amount_minor"),
        currency=currency_field(body),
        refunded_minor=amount_field(body, "refunded_minor", 0) if "refunded_minor" in body else refunded,
        status=text_field(body, "status") if "status" in body else "paid",
        version=before.version + 1 if before else 1,
    )
    return _change(tx, call, order, 200 if before else 201)


def patch(tx: sqlite3.Connection, call: Call) -> Reply:
    """Edit an order, as someone else would while a refund waits."""
    return _edit(tx, call, read_json(call.request.body))


def edit_form(tx: sqlite3.Connection, call: Call) -> Reply:
    """The page's form: a new amount in major units; leads back to the page."""
    order = find(tx, call.arguments[0])
    if order is None:
        raise Problem(404, "no_such_order", "reload the page")
    sent = parse_qs(call.request.body.decode("ascii", "replace")).get("amount", [""])[0]
    _edit(tx, call, {"amount_minor": parse_major(sent, order.currency)})
    return Reply(303, b"", {"Location": "/"})


def _edit(tx: sqlite3.Connection, call: Call, body: dict[str, object]) -> Reply:
    only_fields(body, set(), {"customer", "amount_minor", "currency", "status"})
    before = find(tx, call.arguments[0])
    if before is None:
        raise Problem(404, "no_such_order", "create it with PUT")
    require_match(call.request, before)
    order = replace(
        before,
        customer=text_field(body, "customer") if "customer" in body else before.customer,
        amount_minor=amount_field(body, "amount_minor") if "amount_minor" in body else before.amount_minor,
        currency=currency_field(body) if "currency" in body else before.currency,
        status=text_field(body, "status") if "status" in body else before.status,
        version=before.version + 1,
    )
    return _change(tx, call, order, 200)


def _change(tx: sqlite3.Connection, call: Call, order: Order, status: int) -> Reply:
    if order.refunded_minor > order.amount_minor:
        raise Problem(422, "below_refunded", "the amount can't be less than what was refunded already")
    save(tx, order)
    record = log.Applied(
        call.seq,
        call.at,
        "orders",
        "",
        order.id,
        order.id,
        order.amount_minor,
        order.currency,
        order.status,
    )
    log.write_applied(tx, record)
    return _reply(status, order)


def _reply(status: int, order: Order) -> Reply:
    return Reply(status, asdict(order), {"ETag": order.etag})


def format_minor(amount_minor: int, currency: str) -> str:
    """An amount for people: ``EUR 120.50``."""
    if currency in _WITHOUT_MINOR_UNIT:
        return f"{currency} {amount_minor:,}"
    return f"{currency} {amount_minor // 100:,}.{amount_minor % 100:02d}"


def parse_major(text: str, currency: str) -> int:
    """Minor units of an amount that a person typed in major units, or 400."""
    scale = 1 if currency in _WITHOUT_MINOR_UNIT else 100
    try:
        minor = Decimal(text.strip()) * scale
    except InvalidOperation:
        minor = Decimal("NaN")
    if not minor.is_finite() or minor != minor.to_integral_value() or not 1 <= minor < 2**53:
        raise Problem(400, "bad_amount", "give an amount such as 120.50")
    return int(minor)
