"""A trial that went right, and what its ledger and its target's log say of it; a test changes one thing, and the judge must see it."""

import hashlib
import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from tests.crash.judge import Facts, Finding, Log, Trial

RUN, EFFECT, ORDER, KEY = "01900000-0000-7000-8000-000000000001", "01900000-0000-7000-8000-000000000002", "17", "ra_1"
LEASE = 3.0
T = 1_700_000_000.0


@dataclass(frozen=True)
class Sent:
    """A request or change as the sandbox's reader answers it."""

    seq: int
    at: str
    key: str = KEY
    reference: str = "rf_000001"
    order_id: str = ORDER
    amount_minor: int = 100
    status: int | None = 201


def clock(seconds: float) -> str:
    return datetime.fromtimestamp(T + seconds, UTC).isoformat()


def chained(*steps: tuple[float, str, str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Entries as a ledger writes them: (second, verb, actor, the fields that change by object)."""
    previous, entries = bytes(32), []
    for seq, (second, verb, actor, changes) in enumerate(steps, start=1):
        lines = [{"object": name, "fields": fields} for name, fields in changes.items()]
        content = json.dumps({"stream": f"run:{RUN}", "seq": seq, "changes": lines}).encode()
        previous = hashlib.sha256(previous + content).digest()
        entries.append(
            {"seq": seq, "at": T + second, "verb": verb, "actor": actor, "content": content, "digest": previous}
        )
    return entries


HEAD_ROW, EFFECT_ROW = f"run_head:{RUN}", f"effect:{EFFECT}"
STEPS: tuple[tuple[float, str, str, dict[str, Any]], ...] = (
    (0, "run.claim", "agent:x", {HEAD_ROW: {"status": "running"}}),
    (1, "effect.propose", "agent:x", {EFFECT_ROW: {"state": "proposed"}}),
    (2, "effect.permit", "agent:x", {EFFECT_ROW: {"state": "in_flight"}}),
    (5, "lease.lapse", "system:sweep", {EFFECT_ROW: {"state": "unknown"}, HEAD_ROW: {"status": "waking"}}),
    (6, "effect.look", "system:reconciler", {EFFECT_ROW: {"state": "committed"}}),
    (7, "wake.decide", "system:wake", {HEAD_ROW: {"status": "ready"}}),
    (8, "run.claim", "agent:x", {HEAD_ROW: {"status": "running"}}),
    (9, "checkpoint.commit", "agent:x", {HEAD_ROW: {"status": "completed"}}),
)


def effect(**fields: Any) -> dict[str, Any]:
    row = {"id": EFFECT, "name": "pay", "key": KEY, "state": "committed", "cause": "", "attempt": 1}
    return row | {"disputed": False, "reference": "rf_000001", "amount_minor": 100} | fields


def report(second: float, **fields: Any) -> dict[str, Any]:
    row = {"effect_id": EFFECT, "attempt": 1, "kind": "lookup", "answer": "applied", "cause": "", "counted": True}
    return row | {"reported_at": T + second} | fields


def facts(steps: Any = STEPS, **parts: Any) -> Facts:
    """A run whose worker died in its call, and that another one finished."""
    entries = chained(*steps)
    head = {"status": "completed", "head_seq": len(entries), "head_digest": entries[-1]["digest"]}
    whole = Facts(
        head=head,
        entries=entries,
        checkpoints=[{"seq": 0, "digest": b"\x01", "previous_digest": bytes(32)}],
        effects=[effect()],
        permits=[{"effect_id": EFFECT, "attempt": 1, "permitted_at": T + 2, "answer_by": T + 4}],
        reports=[report(5, kind="lapse", answer="unknown"), report(6)],
        handoffs=[],
        waits=[],
        votes=[{"request_id": "r", "choice": "approve"}],
        state={"receipt": {"id": "rf_000001", "status": "settled"}},
    )
    return replace(whole, **parts)


def log(requests: tuple[float, ...] = (2.5,), changes: int = 1, turned_away: int = 0) -> Log:
    """What came in at which second; so many changes, and so many of the first requests answered 429."""
    mutating = [
        Sent(number, clock(second), status=429 if number <= turned_away else 201)
        for number, second in enumerate(requests, start=1)
    ]
    applied = mutating[:changes] if changes <= len(mutating) else mutating * changes
    return Log({KEY: mutating}, {KEY: applied}, {ORDER: applied})


TWO_PERMITS = [{"effect_id": EFFECT, "attempt": n, "permitted_at": T + n, "answer_by": T + n + 2} for n in (1, 2)]


ACKS: list[dict[str, Any]] = [
    {"kind": "run", "run": RUN},
    {"kind": "checkpoint", "seq": 0, "digest": "01"},
    {"kind": "effect", "effect": EFFECT},
    {"kind": "permit", "effect": EFFECT, "attempt": 1},
    {"kind": "vote", "request": "r", "choice": "approve"},
]


def trial(**fields: Any) -> Trial:
    whole = Trial("t", RUN, ORDER, LEASE, ["completed"], T + 10, list(ACKS), [])
    for name, value in fields.items():
        setattr(whole, name, value)
    return whole


def kinds(found: list[Finding]) -> set[str]:
    return {finding.kind for finding in found}
