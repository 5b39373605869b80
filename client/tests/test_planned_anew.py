"""A loop of the client that is planned anew, against the real server and the real payment service: each item is paid once."""

from __future__ import annotations

import threading
from typing import Any

import httpx2 as httpx
import pytest
from pydantic import BaseModel
from resumeapp_client import Context, EffectCarried, EffectDiffers, ResumeappError, Run, Step, Worker, Workflow, event
from resumeapp_client.clocks import monotonic
from resumeapp_client.testing import Server

pytestmark = pytest.mark.server


class Items(BaseModel):
    order: str
    left: list[int]
    paid: list[str] = []
    waited: bool = False


def charge(http: Any, _permit: Any) -> Any:
    return http.post("/refunds").json()


def looping(caught: list[ResumeappError], name: str) -> Workflow[Items]:
    """Pays what is left of its list, an item a round and each under the name "pay"; the second waits until something has shipped."""
    flow = Workflow(name, "1", "plan", Items, own_events=True)

    @flow.transition
    def plan(ctx: Context[Items], s: Items) -> Step:
        return ctx.go_on("pay_item")

    @flow.transition(targets=["payments"], on_conflict=("replan", "plan"))
    def pay_item(ctx: Context[Items], s: Items) -> Step:
        if not s.left:
            return ctx.complete()
        wanted = {"order": s.order, "amount_minor": s.left[0], "currency": "EUR", "reason": "an instalment"}
        said = {"target": "payments", "tool": "payments.refund", "request": wanted, "observes": f"orders/{s.order}"}
        try:
            pay = ctx.propose("pay", **said)
        except (EffectCarried, EffectDiffers) as refused:
            caught.append(refused)
            ctx.accept("pay")
            pay = ctx.propose(f"pay-{len(s.paid)}", **said)
        if s.paid and not s.waited:
            shipped = event("shipped", subject=s.order)
            return ctx.wait(shipped, deadline="1h", then="pay_item", state=s.model_copy(update={"waited": True}))
        receipt = ctx.perform(pay, call=charge)
        return ctx.go_on("pay_item", s.model_copy(update={"left": s.left[1:], "paid": [*s.paid, receipt["id"]]}))

    return flow


def until(server: Server, run: Run, *statuses: str) -> Run:
    late = monotonic() + 60
    with server.client() as client:
        while (now := client.run(run.id)).status not in statuses:
            assert monotonic() < late, f"still {now.status}: {now.explanation}"
        return now


@pytest.mark.parametrize(
    ("order", "second", "error"), [("31", 500, EffectCarried), ("32", 700, EffectDiffers)], ids=["equal", "other"]
)
def test_a_loop_that_is_planned_anew_pays_each_item_once_and_takes_no_receipt_for_another(
    server: Server, payments: str, order: str, second: int, error: type[ResumeappError]
) -> None:
    placed = {"customer": "c-1", "amount_minor": 5000, "currency": "EUR"}
    httpx.put(f"{payments}/orders/{order}", json=placed).raise_for_status()
    caught: list[ResumeappError] = []
    flow = looping(caught, f"items-{order}")
    with server.client() as client:
        worker = Worker(client, [flow], wait_seconds=1, targets={"payments": payments})
        client.register(flow.type, flow.version, flow.spec())
        run = client.start_run(flow.type, "refund it in parts", Items(order=order, left=[500, second, 300]))
        thread = threading.Thread(target=worker.run)
        thread.start()
        try:
            until(server, run, "waiting")
            httpx.patch(f"{payments}/orders/{order}", json={"amount_minor": 4500}).raise_for_status()
            client.emit("shipped", "/shop", subject=order)
            assert until(server, run, "completed", "failed", "blocked").status == "completed"
        finally:
            worker.stop()
            thread.join()
    page = httpx.get(f"{payments}/refunds", params={"since": "2000-01-01T00:00:00Z"}).raise_for_status().json()
    applied = sorted(each["amount_minor"] for each in page["refunds"] if each["order"] == order)
    assert applied == sorted([500, second, 300])
    assert [type(each) for each in caught] == [error]
