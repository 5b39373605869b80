"""A worker with one run between a scripted ledger and a real target, and what most of its transitions do."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from ledger_script import (
    CLAIM,
    COMMIT,
    RELEASE,
)
from loopback import Loopback, answer
from pydantic import BaseModel
from resumeapp_client import (
    Client,
    Context,
    Step,
    Worker,
    Workflow,
)

RECEIPT = {"id": "rf_1"}


class Refund(BaseModel):
    order: str
    amount_minor: int
    receipt: dict[str, Any] | None = None


Function = Callable[[Context[Refund], Refund], Step]


def charge(http: Any, _permit: Any) -> Any:
    return http.post("/refunds").json()


def issue(ctx: Context[Refund], s: Refund) -> Step:
    receipt = ctx.perform(ctx.effects["pay"], call=charge)
    return ctx.complete(s.model_copy(update={"receipt": receipt}))


class Bench:
    """Runs a worker over given packets until the ledger was asked for something."""

    def __init__(self, ledger: Loopback, target: Loopback, client: Client) -> None:
        self.ledger, self.target, self.client = ledger, target, client
        self.worker: Worker | None = None
        self.thread: threading.Thread | None = None

    def start(self, function: Function, *packets: Any, limit: int = 1, lease_seconds: int = 30) -> Worker:
        flow = Workflow("refunds", "1", "issue", Refund)
        flow.transition(function)
        if function.__name__ != "issue":
            flow.transition(issue)
        claims = [answer(200, {"packets": [given]}) for given in packets]
        self.ledger.on("POST", CLAIM, *claims, answer(204))
        self.worker = Worker(
            self.client,
            [flow],
            limit=limit,
            lease_seconds=lease_seconds,
            wait_seconds=0,
            targets={"payments": self.target.url},
            call_tries=2,
        )
        self.thread = threading.Thread(target=self.worker.run)
        self.thread.start()
        return self.worker

    def until(self, path: str, count: int = 1) -> Any:
        return self.ledger.wait_for("POST", path, count).json()

    def stop(self) -> None:
        if self.worker is not None and self.thread is not None:
            self.worker.stop()
            self.thread.join(timeout=10)
            assert not self.thread.is_alive(), "the worker drains"

    def run(self, function: Function, given: Any, until: str) -> Any:
        """The body of the first call of that path, after everything came to rest."""
        self.start(function, given)
        body = self.until(until)
        self.stop()
        return body

    def leave(self, function: Function, given: Any) -> None:
        """The run is left as it is: neither committed nor given back."""
        self.start(function, given)
        self.until(CLAIM, 3)
        self.stop()
        assert not self.asked(COMMIT) and not self.asked(RELEASE)

    def asked(self, path: str) -> list[Any]:
        return [seen.json() for seen in self.ledger.asked("POST", path)]


def propose(ctx: Context[Refund], amount: int = 500, **options: Any) -> Any:
    request = {"order": "17", "amount_minor": amount}
    return ctx.propose("pay", target="payments", tool="payments.refund", request=request, **options)
