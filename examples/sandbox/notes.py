"""Notes: a keyed target like an e-mail provider, with a look-up by key."""

import sqlite3

from examples.sandbox import log
from examples.sandbox.messages import (
    JSON,
    Call,
    Problem,
    Reply,
    fingerprint,
    only_fields,
    read_json,
    require_same_body,
    required_key,
    text_field,
)

_COLUMNS = "n, key, fingerprint, recipient, subject, created_at"


def _as_json(row: tuple[int, str, str, str, str, str]) -> JSON:
    number, key, _, recipient, subject, created_at = row
    return {
        "id": f"nt_{number:06d}",
        "key": key,
        "to": recipient,
        "subject": subject,
        "created_at": created_at,
    }


def post(tx: sqlite3.Connection, call: Call) -> Reply:
    """Send a note once per key: a repeat replays the first result, another body gets 422."""
    key = required_key(call.request)
    body = read_json(call.request.body)
    if call.remember:
        row = tx.execute(f"SELECT {_COLUMNS} FROM note WHERE key = ? AND remembered", (key,)).fetchone()
        if row:
            require_same_body(row[2], fingerprint(body))
            return Reply(200, _as_json(row), {"Idempotency-Replayed": "true"})
    only_fields(body, {"to", "subject", "text"})
    recipient, subject = text_field(body, "to"), text_field(body, "subject")
    values = (
        key,
        fingerprint(body),
        call.remember,
        recipient,
        subject,
        text_field(body, "text"),
        call.at,
    )
    cursor = tx.execute(
        "INSERT INTO note (key, fingerprint, remembered, recipient, subject, text, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        values,
    )
    made = _as_json((int(cursor.lastrowid or 0), key, "", recipient, subject, call.at))
    log.write_applied(tx, log.Applied(call.seq, call.at, "notes", key, str(made["id"]), "", 0, "", "sent"))
    return Reply(201, made)


def look_up(tx: sqlite3.Connection, call: Call) -> Reply:
    """By key; an empty list means absent."""
    parameters = call.request.parameters
    if set(parameters) != {"key"}:
        raise Problem(400, "bad_query", "ask with key=…")
    rows = tx.execute(f"SELECT {_COLUMNS} FROM note WHERE key = ? AND remembered", (parameters["key"],)).fetchall()
    return Reply(200, {"notes": [_as_json(row) for row in rows]})
