"""How these agents call the payment service: one request under one permit."""

from __future__ import annotations

from typing import Any

from resumeapp_client import Done, Permit, TargetHttp


def charge(http: TargetHttp, permit: Permit) -> Done:
    """Refund once; the body is the permitted request, the key and If-Match are the client's business."""
    return _done(http.post("/refunds").json())


def wire(http: TargetHttp, permit: Permit) -> Done:
    """Pay by wire: the service knows no keys, so a lost reply is for people to clear up."""
    return _done(http.post("/wires").json())


def _done(receipt: dict[str, Any]) -> Done:
    return Done(receipt, reference=str(receipt["id"]))
