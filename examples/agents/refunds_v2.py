"""Refunds, version 2: keeps how it was paid, and takes over what version 1 left."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from resumeapp_client import Context, Step, Workflow, approval

from examples.agents.payments import charge


class Refund(BaseModel):
    """Version 1's state with one field more."""

    order: str
    amount_minor: int
    currency: str
    receipt: dict[str, Any] | None = None
    channel: str = "card"

    def with_receipt(self, receipt: dict[str, Any]) -> Refund:
        return self.model_copy(update={"receipt": receipt})


refunds = Workflow("refunds", version="2", initial="assess", state=Refund, takes_over_from=["1"])


@refunds.transition
def assess(ctx: Context[Refund], s: Refund) -> Step:
    """Ask for the refund, and sleep until somebody decides."""
    request = {
        "order": s.order,
        "amount_minor": s.amount_minor,
        "currency": s.currency,
        "reason": f"agreed, by {s.channel}",
    }
    pay = ctx.propose("pay", target="payments", tool="payments.refund", request=request, observes=f"orders/{s.order}")
    return ctx.wait(approval(pay), deadline="24h", on_deadline="cancel", then="issue")


@refunds.transition(targets=["payments"], tools=["payments.refund"], on_conflict=("replan", "assess"))
def issue(ctx: Context[Refund], s: Refund) -> Step:
    """Pay what was approved."""
    receipt = ctx.perform(ctx.effects["pay"], call=charge)
    return ctx.complete(s.with_receipt(receipt))
