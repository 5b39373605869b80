"""Agents of the trials: those of the examples, and some that propose and perform in one transition so that a crash re-runs the proposal."""

from __future__ import annotations

import http.client
import json
from typing import Any

from pydantic import BaseModel
from resumeapp_client import Context, ResumeappError, Step, Workflow, timer
from resumeapp_client.errors import EffectsUnaccounted

from examples.agents.payments import charge
from examples.agents.refunds_v1 import refunds as refunds_v1
from examples.agents.refunds_v2 import refunds as refunds_v2


class Goodwill(BaseModel):
    """What the first version knows; amounts are minor units."""

    order: str
    amount_minor: int
    currency: str
    receipt: dict[str, Any] | None = None


class GoodwillNow(Goodwill):
    """The second version keeps one thing more."""

    note: str = ""


PAY: dict[str, Any] = {"targets": ["payments"], "tools": ["payments.goodwill"], "on_conflict": ("hand_off",)}
payments = ""
"""Where the target is, for code that goes past the ledger."""
seen: list[str] = []
"""Codes of refusals that the agents of this process met and went on from."""


def _request(state: Goodwill, amount_minor: int | None = None) -> dict[str, Any]:
    return {
        "order": state.order,
        "amount_minor": state.amount_minor if amount_minor is None else amount_minor,
        "currency": state.currency,
        "reason": "goodwill",
    }


def _propose(ctx: Context[Any], name: str, request: dict[str, Any], target: str = "payments") -> Any:
    resource = f"orders/{request['order']}"
    return ctx.propose(name, target=target, tool="payments.goodwill", request=request, observes=resource)


goodwill = Workflow("goodwill", version="1", initial="assess", state=Goodwill)


@goodwill.transition
def assess(ctx: Context[Goodwill], s: Goodwill) -> Step:
    """Nothing to ask anybody."""
    return ctx.go_on("pay")


@goodwill.transition(**PAY)
def pay(ctx: Context[Goodwill], s: Goodwill) -> Step:
    """Propose and perform in one."""
    receipt = ctx.perform(_propose(ctx, "pay", _request(s)), call=charge)
    return ctx.complete(s.model_copy(update={"receipt": receipt}))


naps = Workflow("naps", version="1", initial="doze", state=Goodwill)


@naps.transition
def doze(ctx: Context[Goodwill], s: Goodwill) -> Step:
    """Sleep for a moment before paying."""
    return ctx.wait(timer(1), deadline="1h", on_deadline="hand_off", then="pay")


naps.transition(**PAY)(pay)


oblivious = Workflow("oblivious", version="1", initial="assess", state=Goodwill)
oblivious.transition(assess)


def _pay_soon_forgotten(ctx: Context[Goodwill], s: Goodwill) -> Step:
    """As `pay`, at a target that keeps keys for a moment only."""
    receipt = ctx.perform(_propose(ctx, "pay", _request(s), "brief"), call=charge)
    return ctx.complete(s.model_copy(update={"receipt": receipt}))


_pay_soon_forgotten.__name__ = "pay"
oblivious.transition(**{**PAY, "targets": ["brief"]})(_pay_soon_forgotten)


def _second(body: Any) -> Workflow[Any]:
    flow: Workflow[Any] = Workflow("goodwill", version="2", initial="assess", state=GoodwillNow, takes_over_from=["1"])

    def assess(ctx: Context[Any], s: Any) -> Step:
        return ctx.go_on("pay")

    flow.transition(assess)
    flow.transition(**PAY)(body)
    return flow


def _other_amount() -> Workflow[Any]:
    def pay(ctx: Context[Any], s: Any) -> Step:
        """The model has thought again: another amount under the recorded name. The ledger keeps the recorded one."""
        request = _request(s, s.amount_minor + 1)
        try:
            _raw_propose(ctx, request)
        except ResumeappError as refused:
            seen.append(refused.code)
        receipt = ctx.perform(_propose(ctx, "pay", request), call=charge)
        return ctx.complete(s.model_copy(update={"receipt": receipt}))

    return _second(pay)


def _raw_propose(ctx: Context[Any], request: dict[str, Any]) -> None:
    """Past the client's own comparison, straight to the ledger."""
    proposal = {"name": "pay", "target": "payments", "tool": "payments.goodwill", "request": request}
    proposal["resource"] = f"orders/{request['order']}"
    ctx._holding._propose("pay", proposal)


def _renamed() -> Workflow[Any]:
    def pay(ctx: Context[Any], s: Any) -> Step:
        """The new code calls the effect otherwise; the ledger asks what became of the old one first."""
        effect = _propose(ctx, "refund", _request(s))
        try:
            receipt = ctx.perform(effect, call=charge)
        except EffectsUnaccounted as refused:
            seen.append(refused.code)
            ctx.withdraw("refund")
            receipt = _recover(ctx, s)
        return ctx.complete(s.model_copy(update={"receipt": receipt}))

    return _second(pay)


def _recover(ctx: Context[Any], s: Any) -> Any:
    old = ctx.effects["pay"]
    if old.state == "committed":
        ctx.accept("pay")
        return old.result
    if old.state == "proposed":
        ctx.withdraw("pay")
    else:
        ctx.accept("pay")
    return ctx.perform(_propose(ctx, "refund", _request(s)), call=charge)


def _careless(key: str) -> Workflow[Any]:
    """Code as it must not be written: it pays past the ledger. The judge has to see it."""
    flow: Workflow[Any] = Workflow(
        "refunds", version="2", initial="assess", state=refunds_v2.state, takes_over_from=["1"]
    )

    def issue(ctx: Context[Any], s: Any) -> Step:
        recorded = ctx.effects["pay"]
        headers = {"Idempotency-Key": key or str(recorded.key), "Content-Type": "application/json"}
        connection = http.client.HTTPConnection(payments.removeprefix("http://"), timeout=10)
        connection.request("POST", "/refunds", json.dumps(recorded.request), headers)
        connection.getresponse().read()
        connection.close()
        receipt = ctx.perform(recorded, call=charge)
        return ctx.complete(s.model_copy(update={"receipt": receipt}))

    flow.transition(refunds_v2.transitions["assess"].function)
    declared = refunds_v2.transitions["issue"]
    flow.transition(targets=declared.targets, tools=declared.tools, on_conflict=declared.on_conflict)(issue)
    return flow


FLOWS: dict[str, Workflow[Any]] = {
    "refunds/1": refunds_v1,
    "refunds/2": refunds_v2,
    "refunds/2-blind": _careless(""),
    "refunds/2-own-key": _careless("mine"),
    "goodwill/1": goodwill,
    "goodwill/2-other-amount": _other_amount(),
    "goodwill/2-renamed": _renamed(),
    "naps/1": naps,
    "oblivious/1": oblivious,
}
