"""A reference run from proposal to completion through web, worker and timer, and somebody who sees to it that others finish what broke."""

import contextlib
import http.client
import random
import signal
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

from tests.crash.judge import Trial
from tests.crash.processes import Gone, Process
from tests.crash.scene import Refused, call, until
from tests.crash.trials import ENDED, Run
from tests.storms.ground import Corner

TRIP_SECONDS = 90.0
PROCESSES = ("web", "timer", "first", "second")
"""Who has boundaries: both servers, the worker that proposes and the one that pays."""
Strike = Mapping[str, Any]


class Trip:
    """One run. `strikes` says by process what its boundaries do; nothing, to all four, is the reference."""

    def __init__(self, corner: Corner, seed: int, strikes: Mapping[str, Strike]) -> None:
        self.corner = corner
        self.strikes = strikes
        self.watched: dict[str, Process] = {}
        self.felled = False
        self._workers: list[Process] = []
        self._struck = threading.Event()
        chance = random.Random(seed)
        order = f"trip-{seed}-{uuid4().hex[:8]}"
        amount = chance.randrange(100, 90_000)
        trial = Trial(f"postgres/boundaries/{seed}", "", order, corner.ground.lease, ["completed"], 0.0)
        self.run = Run(corner, corner.slots[0], corner.record(), trial, "boundaries", seed, chance, amount)

    def go(self) -> None:
        """From the start of the run to its end; what went wrong on the way is kept, the judge says what it means."""
        watch = threading.Thread(target=self._watch)
        try:
            self._open()
            watch.start()
            self._start()
            self._see_to_it()
        except Exception as error:
            self.run.error = f"{type(error).__name__}: {error}"
        finally:
            self._struck.set()
            if watch.ident:
                watch.join()
            self._fell()
            self.run.collect()
            self.run.trial.ended_at = time.time()
            self.run.record.close()

    def reported(self, kind: str) -> list[dict[str, Any]]:
        """What the watched processes said, of one kind."""
        return [{**line, "process": name} for name, each in self.watched.items() for line in each.of_kind(kind)]

    def _open(self) -> None:
        for name, opening in (("web", self.corner.open_web), ("timer", self.corner.open_timer)):
            process = opening(self.strikes.get(name))
            if name in self.strikes:
                self.watched[name] = process

    def _watch(self) -> None:
        while not self._struck.is_set() and not self._fell():
            self._struck.wait(0.03)

    def _fell(self) -> bool:
        """Whoever blocks at a boundary is killed there, once, and a server is started again as its supervisor would."""
        for name, process in list(self.watched.items()):
            at = [line for line in process.of_kind("point") if line["point"] == "boundary"]
            if self.felled or not at or self.strikes[name]["how"] != "kill":
                continue
            self.felled = True
            self.run.kill(process)
            if name == "web":
                self.corner.open_web()
            elif name == "timer":
                self.corner.open_timer()
        return self.felled

    def _persist(self, act: Callable[[], Any]) -> Any:
        """A person or a caller who tries again, in the same words, when there was no usable answer."""
        deadline = time.monotonic() + TRIP_SECONDS / 2
        while True:
            try:
                return act()
            except (OSError, http.client.HTTPException, Refused) as error:
                if (isinstance(error, Refused) and error.status < 500) or time.monotonic() > deadline:
                    raise
            time.sleep(0.1)

    def _start(self) -> None:
        run, order = self.run, self.run.trial.order
        made = {"customer": "Ann", "amount_minor": 100_000, "currency": "EUR"}
        call(self.corner.sandbox.host, "PUT", f"/orders/{order}", made)
        state = {"order": order, "amount_minor": run.amount, "currency": "EUR", "receipt": None}
        body = {"workflow": "refunds", "version": "1", "task": f"refund order {order}", "state": state}
        headers = {"Authorization": f"Bearer {run.slot.key}", "Idempotency-Key": str(uuid4())}
        sent = lambda: call(self.corner.web_host, "POST", "/api/v1/runs", body, headers)  # noqa: E731
        run.trial.run = self._persist(sent)["run"]["id"]
        run.trial.acks.append({"kind": "run", "run": run.trial.run})

    def _see_to_it(self) -> None:
        deadline = time.monotonic() + TRIP_SECONDS
        while time.monotonic() < deadline:
            status = self.run.head()["status"]
            if status in ENDED:
                self._hear_out()
                return
            if status == "ready" and not any(worker.alive() for worker in self._workers):
                self._next_worker()
            if status == "waiting":
                self._end_first()
                self._approve()
            time.sleep(0.04)
        raise Gone(f"the run was {self.run.head()['status']} after {TRIP_SECONDS} s")

    def _hear_out(self) -> None:
        """The record knows of the last commit before the web has answered it and the worker has read that."""
        last = max(row["seq"] for row in self.run.record.rows("ledger_checkpoint", "run_id = %s", self.run.trial.run))

        def heard() -> bool:
            acks = [line["ack"] for worker in self._workers for line in worker.of_kind("ack")]
            return self.felled or any(ack["kind"] == "checkpoint" and ack["seq"] == last for ack in acks)

        until(5, heard, 0.03)

    def _next_worker(self) -> None:
        number = len(self._workers)
        name = {0: "first", 1: "second"}.get(number, "later")
        process = self.corner.agents.start(
            "tests.storms.roles:worker",
            {
                "flow": "refunds/2" if number else "refunds/1",
                "point": "" if number else "waiting",
                "server": f"http://{self.corner.web_host}",
                "key": self.run.slot.key,
                "payments": self.corner.payments,
                "lease": self.corner.ground.lease,
                "strike": self.strikes.get(name),
            },
        )
        self._workers.append(process)
        self.run.processes.append(process)
        if name in self.strikes:
            self.watched[name] = process
        said = process.wait_for("started", 60)
        self.run.digests.append((said["version"], said["digest"]))

    def _end_first(self) -> None:
        """The worker that proposed has committed and is gone; whether it is asked or killed."""
        if len(self._workers) == 1:
            with contextlib.suppress(Gone):
                self._workers[0].wait_for("point", 5, lambda line: line["point"] in ("waiting", "boundary"))
            self._workers[0].end(signal.SIGKILL)

    def _approve(self) -> None:
        asked = self.run.record.one("approvals_request", "run_id = %s AND state = 'pending'", self.run.trial.run)
        if asked is None:
            return
        seen = self._persist(lambda: self.corner.api(self.run.slot, "GET", f"/approvals/{asked['id']}"))
        person = self.run.slot.person
        self._persist(lambda: person.decide(asked["id"], "approve", seen["revision"], seen["digest"]))
        self.run.trial.acks.append({"kind": "vote", "request": asked["id"], "choice": "approve"})
