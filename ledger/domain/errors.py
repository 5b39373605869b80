"""One error tree. Every refusal has a stable code, a reason, and a remedy that somebody can act on.

The code decides the HTTP status in one place (`STATUS`); services and rules never speak of HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

STATUS: Mapping[str, int] = {
    # the request itself
    "malformed-json": 400,
    "duplicate-key": 400,
    "number-out-of-range": 400,
    "bad-text": 400,
    "naive-time": 422,
    "unknown-field": 422,
    "invalid": 422,
    "schema-mismatch": 422,
    "too-large": 413,
    "unsupported-media": 415,
    "key-required": 400,
    "key-reused": 422,
    # who asks
    "unauthenticated": 401,
    "key-expired": 401,
    "key-revoked": 401,
    "scope-missing": 403,
    "forbidden": 403,
    "agents-never-decide": 403,
    "workflow-not-allowed": 403,
    "event-not-allowed": 403,
    "not-found": 404,
    "method-not-allowed": 405,
    # the state of the record
    "wrong-state": 409,
    "reference-taken": 409,
    "stale-fence": 409,
    "wrong-sequence": 409,
    "effects-open": 409,
    "effects-unaccounted": 409,
    "effect-differs": 409,
    "effect-carried": 409,
    "version-exists": 409,
    "target-in-use": 409,
    "event-differs": 409,
    "already-decided": 409,
    "permit-out": 409,
    "not-cleared": 409,
    "observation-due": 409,
    "busy": 409,
    "self-approval": 403,
    "not-eligible": 403,
    # time and change
    "lease-expired": 410,
    "expired": 410,
    "send-by-passed": 410,
    "changed": 412,
    # authority
    "policy-denies": 403,
    "grant-missing": 403,
    "grant-void": 412,
    "tool-not-allowed": 403,
    "target-unknown": 422,
    "target-unreachable": 409,
    # the server's own state
    "rate-limited": 429,
    "integrity": 500,
    "internal": 500,
    "unavailable": 503,
}


class LedgerError(Exception):
    """A refusal: nothing was written. `code` is stable, `remedy` says what would help.

    `facts` holds machine-readable values for the reader (ids, codes, versions, times); never payloads or secrets.
    """

    def __init__(self, code: str, reason: str, remedy: str, **facts: Any) -> None:
        if code not in STATUS:
            raise ValueError(f"unknown refusal code {code!r}: add it to ledger.domain.errors.STATUS")
        super().__init__(f"{code}: {reason}")
        self.code = code
        self.reason = reason
        self.remedy = remedy
        self.facts = facts

    @property
    def status(self) -> int:
        return STATUS[self.code]


class Moved(Exception):
    """The record moved between read and write: read the facts again and start over. Never leaves the services."""


class Late(Exception):
    """The database's clock, read after the lock, had passed the change's `not_after`. Never leaves the services."""
