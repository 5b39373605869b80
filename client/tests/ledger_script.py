"""What a ledger would answer to one worker with one run; scripted, no rules inside."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta
from typing import Any

from loopback import Handler, Loopback, Seen, answer

RUN, EFFECT, SALT = "run-1", "effect-1", "00" * 16
CLAIM, COMMIT, RELEASE = "/api/v1/runs/claim", f"/api/v1/runs/{RUN}/checkpoints", f"/api/v1/runs/{RUN}/release"
PROPOSE = f"/api/v1/runs/{RUN}/effects"
PERMIT, SETTLE = f"/api/v1/effects/{EFFECT}/permit", f"/api/v1/effects/{EFFECT}/settle"
WITHDRAW = f"/api/v1/effects/{EFFECT}/withdraw"
HEARTBEAT = "/api/v1/heartbeat"
REQUEST = {"order": "17", "amount_minor": 500}
STATE = {"order": "17", "amount_minor": 500}


def effect(state: str = "proposed", **fields: Any) -> dict[str, Any]:
    return {
        "id": EFFECT,
        "name": "pay",
        "key": "ra_key",
        "state": state,
        "cause": None,
        "attempt": 0,
        "tool": "payments.refund",
        "target": "payments",
        "resource": "",
        "request": REQUEST,
        "result": None,
        **fields,
    }


def packet(
    transition: str = "issue",
    state: Any = None,
    version: str = "1",
    effects: dict[str, Any] | None = None,
    fence: str = "0.1",
    **fields: Any,
) -> dict[str, Any]:
    text = json.dumps(STATE if state is None else state, sort_keys=True, separators=(",", ":"))
    commitment = hashlib.sha256(bytes.fromhex(SALT) + text.encode()).hexdigest()
    run = {"id": RUN, "workflow": "refunds", "version": version, "task": "t", "status": "running", "seq": 3}
    return {
        "run": {**run, "transition": transition, "instance": "i-1"},
        "fence": fence,
        "transition": transition,
        "instance": "i-1",
        "version": version,
        "checkpoint": {
            "seq": 3,
            "digest": "d",
            "version": version,
            "state": {"json": text, "salt": SALT, "commitment": commitment},
        },
        "effects": effects or {},
        **fields,
    }


def permit(attempt: int = 1, send_in: float = 30, answer_in: float = 60, **fields: Any) -> dict[str, Any]:
    """A permit of a server whose clock is three hours ahead of ours."""
    now = datetime.now(UTC) + timedelta(hours=3)
    return {
        "permit": {
            "attempt": attempt,
            "key": "ra_key",
            "now": now.isoformat(),
            "send_by": (now + timedelta(seconds=send_in)).isoformat(),
            "answer_by": (now + timedelta(seconds=answer_in)).isoformat(),
            "precondition": '"v1"',
            "request": REQUEST,
            **fields,
        },
        "effect": effect("in_flight", attempt=attempt),
    }


def committed(status: str = "completed", **fields: Any) -> dict[str, Any]:
    return {"seq": 4, "digest": "d", "status": status, "fence": "0.2", "transition": None, "effects": {}, **fields}


def settles(handler: Handler, seen: Seen) -> None:
    report = seen.json()
    settled = effect(report["outcome"], cause=report.get("cause"), result=report.get("result"))
    answer(200, {"effect": settled, "counted": True})(handler, seen)


def prepare(server: Loopback) -> None:
    server.on("PUT", "/api/v1/workflows/.*", answer(201, {"workflow": "refunds", "version": "1", "digest": "d"}))
    server.on("POST", CLAIM, answer(204))
    server.on("POST", COMMIT, answer(201, committed()))
    server.on("POST", RELEASE, answer(200, {}))
    server.on("POST", PERMIT, answer(200, permit()))
    server.on("POST", SETTLE, settles)
    server.on("POST", PROPOSE, answer(201, effect(seq=4)))
    server.on("POST", HEARTBEAT, answer(200, {"runs": [{"run": RUN, "directive": "go_on", "reason": ""}]}))
