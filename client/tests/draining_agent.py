"""An agent of its own process: two calls in one transition, and a word on stdout once it drains."""

from __future__ import annotations

import os
from typing import Any

from pydantic import BaseModel
from resumeapp_client import Client, Context, Step, Worker, Workflow


class Refund(BaseModel):
    order: str
    amount_minor: int


flow = Workflow("refunds", "1", "two_calls", Refund)


@flow.transition
def two_calls(ctx: Context[Refund], s: Refund) -> Step:
    def charge(http: Any, _permit: Any) -> Any:
        return http.post("/refunds").json()

    ctx.perform("pay", call=charge)
    ctx.perform("pay2", call=charge)
    return ctx.complete()


class Telling(Worker):
    def stop(self) -> None:
        super().stop()
        print("draining", flush=True)


if __name__ == "__main__":
    with Client(os.environ["LEDGER"], "k") as client:
        Telling(client, [flow], targets={"payments": os.environ["TARGET"]}, wait_seconds=0).run()
