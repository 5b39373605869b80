"""The page for people: the other side of a demonstration, and a way to make it move."""

import sqlite3
from html import escape

from examples.sandbox import orders, refunds
from examples.sandbox.messages import Call, Reply

_STYLE = """
:root { color-scheme: light dark; --line: light-dark(#d8dce3, #3a404b); }
:root { --soft: light-dark(#5a6372, #a3adbd); }
body { font: 14px/1.45 system-ui, sans-serif; margin: 0 auto; max-width: 68rem; padding: 1.5rem; }
h1 { font-size: 1.35rem; margin: 0; }
h2 { font-size: 1.05rem; margin: 2rem 0 .5rem; }
p { margin: .25rem 0; }
.soft, th { color: var(--soft); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--line); padding: .4rem .6rem; }
th, td { text-align: left; white-space: nowrap; }
th { font-weight: 500; }
.number { text-align: right; }
form { align-items: center; display: flex; gap: .4rem; }
input { width: 7rem; text-align: right; }
input, button { font: inherit; padding: .15rem .5rem; }
code { font-size: 12px; }
.long { max-width: 18rem; overflow: hidden; text-overflow: ellipsis; }
"""


def index(tx: sqlite3.Connection, call: Call) -> Reply:
    """Orders, each with a form for its amount, and the latest payments."""
    html = _PAGE.format(
        style=_STYLE,
        orders="".join(_order_row(order) for order in orders.every(tx)) or _empty(6, "No orders yet."),
        payments="".join(_payment_row(one) for one in refunds.newest(tx)) or _empty(7, "Nothing was refunded yet."),
    )
    policy = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'"
    headers = {
        "Content-Type": "text/html; charset=utf-8",
        "Content-Security-Policy": policy,
        "Cache-Control": "no-store",
    }
    return Reply(200, html.encode(), headers)


def _empty(columns: int, text: str) -> str:
    return f'<tr><td class="soft" colspan="{columns}">{text}</td></tr>'


def _order_row(order: orders.Order) -> str:
    name, currency = escape(order.id), escape(order.currency)
    amount = orders.format_minor(order.amount_minor, order.currency).split(" ")[1]
    refunded = orders.format_minor(order.refunded_minor, order.currency)
    return _ORDER_ROW.format(
        name=name,
        currency=currency,
        customer=escape(order.customer),
        status=escape(order.status),
        refunded=refunded,
        version=order.version,
        amount=amount.replace(",", ""),
    )


def _payment_row(payment: refunds.Payment) -> str:
    amount = orders.format_minor(payment.amount_minor, payment.currency)
    cells = [
        payment.created_at[:19].replace("T", " ") + " UTC",
        payment.reference,
        payment.service,
        payment.order_id,
    ]
    start = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
    status = f"{payment.status} ({payment.error})" if payment.error == "insufficient" else payment.status
    return (
        f"<tr>{start}<td class='number'>{amount}</td><td>{escape(status)}</td>"
        f"<td class='long'><code>{escape(payment.key)}</code></td></tr>"
    )


_ORDER_ROW = """<tr><td>{name}</td><td class="long">{customer}</td><td>{status}</td>
<td class="number">{refunded}</td><td class="number">{version}</td>
<td><form method="post" action="/orders/{name}">{currency}
<input name="amount" inputmode="decimal" value="{amount}" aria-label="Amount of order {name}">
<button>Change</button></form></td></tr>
"""

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sandbox payment service</title><style>{style}</style></head><body>
<h1>Sandbox payment service</h1>
<p class="soft">The other side: what agents refund here is play money.
Reload to see what has happened since.</p>
<h2>Orders</h2>
<p class="soft">Change an amount to make the world move while an agent waits:
the order gets a new version.</p>
<div class="wide"><table><thead><tr><th>Order</th><th>Customer</th><th>Status</th>
<th class="number">Refunded</th><th class="number">Version</th><th>Amount</th></tr></thead>
<tbody>{orders}</tbody></table></div>
<h2>Refunds and wires</h2>
<div class="wide"><table><thead><tr><th>Time</th><th>Reference</th><th>Service</th><th>Order</th>
<th class="number">Amount</th><th>Status</th><th>Idempotency key</th></tr></thead>
<tbody>{payments}</tbody></table></div>
</body></html>
"""
