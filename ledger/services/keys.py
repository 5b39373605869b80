"""Who is behind a bearer key."""

from __future__ import annotations

import hmac
import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.models import Q

from ledger.domain.errors import LedgerError
from ledger.domain.identity import Caller, Emit
from ledger.models import ApiKey
from ledger.services import facts, permissions
from ledger.services.contracts import writes
from ledger.services.facts import Facts, Part, Row
from ledger.services.identity import key_hash

USE_NOTED_EVERY = timedelta(minutes=1)
_BEARER = re.compile(r"[Bb]earer (ra_([0-9a-f]{10})_[0-9a-f]{64})")


@writes(
    moves="A key's last use, once a minute at most. No entry.",
    twice="Within the minute nothing is written.",
    dies="The last use is noted, and the call never began.",
)
def authenticate(authorization: str | None) -> Caller:
    """The caller behind the value of an Authorization header, as of now.

    Raises LedgerError `unauthenticated` for a missing, malformed or unknown key and for one whose agent or person is no longer active;
    `key-revoked` and `key-expired` (by the database's clock) only to whoever has the whole key.
    """
    match = _BEARER.fullmatch(authorization or "")
    if match is None:
        raise _unknown()
    read = facts.read(
        key=Part("api_key", "t.prefix = %s", (match[2],)),
        agent=Part("agent", "t.id = (SELECT k.agent_id FROM ledger_api_key k WHERE k.prefix = %s)", (match[2],)),
    )
    key = read.row("key")
    # A missing key is compared too, so that the time tells nothing about prefixes.
    if not hmac.compare_digest(key_hash(match[1]), key["hash"] if key else bytes(32)) or key is None:
        raise _unknown()
    caller = _caller(read, key)
    if key["last_used_at"] is None or read.now - key["last_used_at"] >= USE_NOTED_EVERY:
        _note_use(key, read)
    return caller


def check_live(rows: Sequence[Row], now: datetime) -> None:
    """Refuse keys that are over: for whoever must know it of the same moment as all else. Raises LedgerError `key-revoked`, `key-expired`."""
    for key in rows:
        if key["revoked_at"] is not None:
            raise LedgerError("key-revoked", "this key was revoked", "Ask an administrator for a new one.")
        if key["expires_at"] is not None and key["expires_at"] <= now:
            raise LedgerError("key-expired", "this key has expired", "Ask an administrator to rotate it.")


def _caller(read: Facts, key: Row) -> Caller:
    check_live([key], read.now)
    agent = read.row("agent")
    if agent is not None:
        active, actor = agent["active"], f"agent:{agent['id']}"
    else:
        active, actor = permissions.member(key["person_id"], key["tenant_id"]), f"person:{key['person_id']}"
    if not active:
        raise _unknown()
    return Caller(
        tenant_id=key["tenant_id"],
        actor=actor,
        scopes=frozenset(key["scopes"]),
        key_id=key["id"],
        agent_id=key["agent_id"],
        person_id=key["person_id"],
        workflows=frozenset(key["workflows"]),
        emits=tuple(Emit(each["type"], each["source"]) for each in key["emits"]),
    )


def _note_use(key: Row, read: Facts) -> None:
    """Once a minute at most, however many processes take the key."""
    stale = Q(last_used_at=None) | Q(last_used_at__lte=read.now - USE_NOTED_EVERY)
    ApiKey.objects.of(key["tenant_id"]).filter(stale, pk=key["id"]).update(last_used_at=read.now)


def _unknown() -> LedgerError:
    return LedgerError(
        "unauthenticated", "no valid key came with this call", "Send 'Authorization: Bearer ra_…' with a live key."
    )
