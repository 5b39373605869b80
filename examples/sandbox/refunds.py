"""Refunds (keyed, with look-up) and wires (the same money, neither keyed nor to be looked up)."""

import sqlite3
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from examples.sandbox import log, orders
from examples.sandbox.messages import (
    JSON,
    Call,
    Problem,
    Reply,
    amount_field,
    currency_field,
    fingerprint,
    only_fields,
    read_json,
    require_same_body,
    required_key,
    text_field,
)

REFUNDS, WIRES = "refunds", "wires"
STATUSES = ("settled", "pending", "refused")
_PREFIX = {REFUNDS: "rf", WIRES: "wi"}
_COLUMNS = (
    "n, service, key, fingerprint, remembered, order_id, amount_minor, currency, reason, status, error, created_at"
)


@dataclass(frozen=True, slots=True)
class Payment:
    """A refund or a wire; ``amount_minor`` is what was paid, which a fault may change."""

    n: int
    service: str
    key: str
    fingerprint: str
    remembered: bool
    order_id: str
    amount_minor: int
    currency: str
    reason: str
    status: str
    error: str
    created_at: str

    @property
    def reference(self) -> str:
        """The service's own reference, such as ``rf_000017``."""
        return f"{_PREFIX[self.service]}_{self.n:06d}"

    def as_json(self) -> JSON:
        """What callers see."""
        return {
            "id": self.reference,
            "key": self.key,
            "order": self.order_id,
            "amount_minor": self.amount_minor,
            "currency": self.currency,
            "reason": self.reason,
            "status": self.status,
            "created_at": self.created_at,
        }


def post_refund(tx: sqlite3.Connection, call: Call) -> Reply:
    """Refund once per key: a repeat replays the first result, another body is refused with 422."""
    key = required_key(call.request)
    body = read_json(call.request.body)
    if call.remember:
        row = tx.execute(f"SELECT {_COLUMNS} FROM payment WHERE key = ? AND remembered", (key,)).fetchone()
        if row:
            stored = Payment(*row)
            require_same_body(stored.fingerprint, fingerprint(body))
            return _reply(stored, replayed=True)
    return _pay(tx, call, REFUNDS, key, body, remembered=call.remember)


def post_wire(tx: sqlite3.Connection, call: Call) -> Reply:
    """Pay again with every request: the key is logged and otherwise ignored."""
    return _pay(tx, call, WIRES, call.request.key, read_json(call.request.body), remembered=False)


def _pay(tx: sqlite3.Connection, call: Call, service: str, key: str, body: JSON, *, remembered: bool) -> Reply:
    only_fields(body, {"order", "amount_minor", "currency", "reason"})
    asked, currency = amount_field(body, "amount_minor"), currency_field(body)
    order = orders.find(tx, text_field(body, "order"))
    orders.require_match(call.request, order)
    if order is None:
        raise Problem(422, "unknown_order", "create the order first")
    if order.currency != currency:
        raise Problem(422, "currency_mismatch", f"the order is in {order.currency}")
    status, error, amount = _decide(call, order, asked)
    payment = Payment(
        n=0,
        service=service,
        key=key,
        fingerprint=fingerprint(body),
        remembered=remembered,
        order_id=order.id,
        amount_minor=amount,
        currency=currency,
        reason=text_field(body, "reason"),
        status=status,
        error=error,
        created_at=call.at,
    )
    payment = _insert(tx, payment)
    if status != "refused":
        moved = replace(order, refunded_minor=order.refunded_minor + amount, version=order.version + 1)
        orders.save(tx, moved)
        record = log.Applied(
            call.seq,
            call.at,
            service,
            key,
            payment.reference,
            order.id,
            amount,
            currency,
            payment.status,
        )
        log.write_applied(tx, record)
    return _reply(payment, replayed=False)


def _decide(call: Call, order: orders.Order, asked: int) -> tuple[str, str, int]:
    """Status, error and amount: by the order's balance, unless a fault overrides it."""
    if call.outcome == "outcome_refused":
        return "refused", "refused", asked
    amount = asked
    if call.outcome == "outcome_other_amount":
        amount = call.amount_minor or (asked - 1 if asked > 1 else asked + 1)
    if order.refunded_minor + amount > order.amount_minor:
        return "refused", "insufficient", asked
    return ("pending" if call.outcome == "outcome_pending" else "settled"), "", amount


def _insert(tx: sqlite3.Connection, payment: Payment) -> Payment:
    values = [getattr(payment, name) for name in _COLUMNS.split(", ")[1:]]
    marks = ", ".join("?" * len(values))
    cursor = tx.execute(f"INSERT INTO payment ({_COLUMNS[3:]}) VALUES ({marks})", values)
    return replace(payment, n=int(cursor.lastrowid or 0))


def _reply(payment: Payment, *, replayed: bool) -> Reply:
    headers = {"ETag": f'"{payment.reference}-{payment.status}"'}
    if replayed:
        headers["Idempotency-Replayed"] = "true"
    if payment.error:
        remedy = "ask for less, or leave it"
        return Reply(422, {"error": payment.error, "remedy": remedy, "refund": payment.as_json()}, headers)
    return Reply(200 if replayed else 201, payment.as_json(), headers)


def get_refund(tx: sqlite3.Connection, call: Call) -> Reply:
    """One refund by the service's own reference, also when its key was forgotten; or 404."""
    digits = call.arguments[0].removeprefix("rf_")
    number = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 19 else -1
    row = tx.execute(f"SELECT {_COLUMNS} FROM payment WHERE n = ? AND service = ?", (number, REFUNDS)).fetchone()
    if row is None or Payment(*row).reference != call.arguments[0]:
        raise Problem(404, "no_such_refund", "list refunds by key or by time")
    payment = Payment(*row)
    return Reply(200, payment.as_json(), {"ETag": f'"{payment.reference}-{payment.status}"'})


def look_up(tx: sqlite3.Connection, call: Call) -> Reply:
    """By key (an empty list means absent), or in pages since a time, also by the key's prefix."""
    parameters = call.request.parameters
    unknown = set(parameters) - {"key", "since", "prefix", "after", "limit"}
    if unknown or ("key" in parameters) == ("since" in parameters):
        raise Problem(
            400,
            "bad_query",
            "ask with key=…, or with since=… and optionally prefix, after and limit",
        )
    if "since" in parameters:
        return _list_since(tx, parameters)
    key = parameters["key"]
    rows = tx.execute(f"SELECT {_COLUMNS} FROM payment WHERE key = ? AND remembered", (key,)).fetchall()
    found: list[JSON] = [Payment(*row).as_json() for row in rows]
    if not found and call.in_progress(key):
        found = [in_progress(key)]
    return Reply(200, {"refunds": found})


def in_progress(key: str) -> JSON:
    """What a look-up answers while a request with the key is being worked on."""
    return {"id": None, "key": key, "status": "in_progress"}


def _list_since(tx: sqlite3.Connection, parameters: dict[str, str]) -> Reply:
    since = _read_time(parameters["since"])
    prefix = parameters.get("prefix", "")
    limit = min(_read_number(parameters.get("limit", "500")), 1000)
    rows = tx.execute(
        f"SELECT {_COLUMNS} FROM payment WHERE service = ? AND n > ? AND created_at >= ?"
        " AND substr(key, 1, length(?)) = ? ORDER BY n LIMIT ?",
        (REFUNDS, _read_number(parameters.get("after", "0")), since, prefix, prefix, limit + 1),
    ).fetchall()
    found = [Payment(*row) for row in rows[:limit]]
    following = found[-1].n if len(rows) > limit and found else None
    return Reply(200, {"refunds": [one.as_json() for one in found], "next_after": following})


def _read_time(text: str) -> str:
    try:
        # A plus sign that the caller didn't escape arrives as a blank.
        time = datetime.fromisoformat(text.replace(" ", "+"))
        if time.tzinfo is None:
            raise ValueError
        return time.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError):
        raise Problem(400, "bad_time", "since is an RFC 3339 time with offset, such as 2030-01-01T00:00:00Z") from None


def _read_number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise Problem(400, "bad_query", "after and limit are whole numbers")
    return int(text)


def newest(tx: sqlite3.Connection, limit: int = 200) -> list[Payment]:
    """The latest refunds and wires, newest first."""
    return [Payment(*row) for row in tx.execute(f"SELECT {_COLUMNS} FROM payment ORDER BY n DESC LIMIT ?", (limit,))]


def forget(tx: sqlite3.Connection, key: str) -> int:
    """Forget a key as if its retention were over; the money stays paid. Returns how many had it."""
    return tx.execute("UPDATE payment SET remembered = 0 WHERE key = ? AND remembered", (key,)).rowcount


def settle(tx: sqlite3.Connection, key: str, status: str) -> int:
    """Give the refund of a key another status, as a bank would later; refusing pays it back."""
    row = tx.execute(f"SELECT {_COLUMNS} FROM payment WHERE key = ? AND remembered", (key,)).fetchone()
    if row is None:
        return 0
    payment = Payment(*row)
    error = "refused" if status == "refused" else ""
    tx.execute("UPDATE payment SET status = ?, error = ? WHERE n = ?", (status, error, payment.n))
    order = orders.find(tx, payment.order_id)
    paid = (status != "refused") - (payment.status != "refused")
    if order and paid:
        refunded = order.refunded_minor + paid * payment.amount_minor
        if not 0 <= refunded <= order.amount_minor:
            raise Problem(422, "insufficient", "the order has not enough left")
        orders.save(tx, replace(order, refunded_minor=refunded, version=order.version + 1))
    return 1
