"""Wires: the target has neither keys nor a look-up, so what isn't known goes to a person."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from resumeapp_client import Context, Step, Workflow, approval

from examples.agents.payments import wire


class Wire(BaseModel):
    """What the agent knows; amounts are minor units."""

    order: str
    amount_minor: int
    currency: str
    receipt: dict[str, Any] | None = None

    def with_receipt(self, receipt: dict[str, Any]) -> Wire:
        return self.model_copy(update={"receipt": receipt})


wires = Workflow("wires", version="1", initial="assess", state=Wire)


@wires.transition
def assess(ctx: Context[Wire], s: Wire) -> Step:
    """Ask for the wire, and sleep until somebody decides."""
    request = {"order": s.order, "amount_minor": s.amount_minor, "currency": s.currency, "reason": "supplier's invoice"}
    send = ctx.propose("send", target="wires", tool="wires.send", request=request)
    return ctx.wait(approval(send), deadline="24h", on_deadline="cancel", then="issue")


@wires.transition(targets=["wires"], tools=["wires.send"], on_conflict=("hand_off",))
def issue(ctx: Context[Wire], s: Wire) -> Step:
    """Send what was approved."""
    receipt = ctx.perform(ctx.effects["send"], call=wire)
    return ctx.complete(s.with_receipt(receipt))
