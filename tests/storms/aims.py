"""Rows that are there to be aimed at: runs in several states, effects, and payments that somebody is to approve."""

import uuid
from collections.abc import Callable
from typing import Any

ASKED = 6
KNOWN: dict[str, list[Any]] = {
    "expect_seq": [1, 2, 3],
    "attempt": [1],
    "version": ["1"],
    "workflow": ["goodwill", "refunds"],
    "outcome": ["committed", "failed", "unknown"],
    "target": ["payments"],
    "tool": ["payments.goodwill"],
    "name": ["pay", "again"],
}
Ask = Callable[[str, str, Any], Any]
"""A call of the API that must succeed: method, path and body; answers the parsed body."""


def lay(ask: Ask, tenant: Any) -> dict[str, list[Any]]:
    """Make them by the API; answers values that are there, by the names that bodies, addresses and forms use."""
    known: dict[str, list[Any]] = {"run_id": [], "effect_id": [], "fence": [], "request_id": [], **KNOWN}
    state = {"order": "hostile", "amount_minor": 5, "currency": "EUR", "receipt": None}
    for _ in range(4):
        body = {"workflow": "goodwill", "version": "1", "task": "t", "state": state}
        known["run_id"].append(ask("POST", "/runs", body)["run"]["id"])
    for packet in ask("POST", "/runs/claim", _offer("goodwill", 2))["packets"]:
        run_id, fence = packet["run"]["id"], packet["fence"]
        known["fence"].append(fence)
        request = {"order": "hostile", "amount_minor": 5, "currency": "EUR", "reason": "goodwill"}
        body = {
            "fence": fence,
            "expect_seq": 1,
            "name": "pay",
            "target": "payments",
            "tool": "payments.goodwill",
            "request": request,
        }
        made = ask("POST", f"/runs/{run_id}/effects", body)
        known["effect_id"].append(made["id"])
    _wait_for_people(ask, tenant, known)
    return known


def _offer(workflow: str, limit: int) -> dict[str, Any]:
    return {
        "worker": {"id": str(uuid.uuid4()), "name": "w", "code_digest": "d"},
        "offers": [{"workflow": workflow, "versions": ["1"]}],
        "limit": limit,
        "lease_seconds": 600,
    }


def _wait_for_people(ask: Ask, tenant: Any, known: dict[str, list[Any]]) -> None:
    """Payments that somebody is to approve."""
    from approvals.models import ApprovalRequest

    state: dict[str, Any] = {}
    for number in range(ASKED):
        state = {"order": "hostile", "amount_minor": 5 + number, "currency": "EUR", "receipt": None}
        ask("POST", "/runs", {"workflow": "refunds", "version": "1", "task": "t", "state": state})
    for packet in ask("POST", "/runs/claim", _offer("refunds", ASKED))["packets"]:
        members = [{"kind": "approval", "effect": "pay"}]
        wait = {"mode": "any", "members": members, "deadline_seconds": 86_400, "on_deadline": "wake"}
        request = {"order": "hostile", "amount_minor": 5, "currency": "EUR", "reason": "asked"}
        body = {
            "fence": packet["fence"],
            "expect_seq": 1,
            "state": state,
            "code_version": "w",
            "version": "1",
            "propose": [{"name": "pay", "target": "payments", "tool": "payments.refund", "request": request}],
            "next": {"kind": "wait", "transition": "issue", "wait": wait},
        }
        ask("POST", f"/runs/{packet['run']['id']}/checkpoints", body)
    rows = list(ApprovalRequest.objects.of(tenant))
    assert len(rows) == ASKED
    known["request_id"] = [str(row.pk) for row in rows]
    known["digest"] = [bytes(row.digest).hex() for row in rows]
