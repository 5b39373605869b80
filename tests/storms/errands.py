"""A load that goes the whole way: agents ask, wait, sleep and pay through web, timer and workers, and a person decides, all on the storm's database.

What a lost answer leaves behind, the real client's workers, the timer and the clerk go on from; what came of it is said by the crash trials' judge.
"""

import contextlib
import http.client
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import psycopg

from tests.crash.harness import judged
from tests.crash.judge import Trial
from tests.crash.processes import Process
from tests.crash.scene import Refused, call, until
from tests.crash.trials import Run
from tests.storms.ground import Corner, Ground
from tests.storms.report import Failure

WORKERS = (("refunds/1", "goodwill/1", "naps/1"), ("refunds/2", "goodwill/1", "naps/1")) * 2
KINDS = ("refunds", "naps", "refunds", "goodwill")
AT_ONCE = 8
"""Errands under way at the same time."""
LEASE_SECONDS = 6
STUCK_SECONDS = 60.0
"""So long a run may stay where something has to happen next, under blows that come several times a second."""
PATIENCE_SECONDS = 120.0
"""How long what was begun may take once nothing is struck any more."""
WORN_OUT = frozenset({"attempts:never_finished", "no-progress"})
"""Why a person has a run that a database killed again and again took three checkers from, or ten workers."""
ENDED = ("completed", "failed", "cancelled", "blocked")
STEPS = ("permit", "settle", "vote", "timer", "decision")
"""What must have happened many times under the storm, or it wasn't one of the whole ledger."""
LOST = (OSError, http.client.HTTPException)


class Errands:
    """Errands on one database of a ground; `port` is where web and timer look for it."""

    def __init__(self, ground: Ground, database: str, seed: int, port: int = 0) -> None:
        self._corner = Corner(ground, threads=16, database=database, through=port)
        self._seed = seed
        self._trials: list[Trial] = []
        self._kinds: dict[str, str] = {}
        self._ended: set[str] = set()
        self._workers: list[Process] = []
        self._enough = threading.Event()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep_going)
        self._record: Any = None
        self._errors: list[str] = []
        self.counted: Counter[str] = Counter()

    def start(self) -> None:
        """Web, timer and workers, and somebody who starts errands and decides on them."""
        corner = self._corner.__enter__()
        corner.open_timer()
        args = {
            "server": f"http://{corner.web_host}",
            "key": corner.slots[0].key,
            "payments": corner.payments,
            "lease": LEASE_SECONDS,
        }
        for flows in WORKERS:
            self._workers.append(corner.agents.start("tests.storms.roles:errand", {**args, "flows": list(flows)}))
        for worker in self._workers:
            worker.wait_for("started", 60)
        if not until(60, self._registered):
            raise RuntimeError("the workers' workflows were never registered")
        self._thread.start()

    def _registered(self) -> bool:
        """Each kind of errand has its workflow: the workers bring theirs."""
        with contextlib.suppress(psycopg.Error), contextlib.closing(self._corner.record()) as record:
            return {row["name"] for row in record.rows("ledger_workflow_type", "true")} >= set(KINDS)
        return False

    def finish(self) -> list[Failure]:
        """Begin no more, see those under way to their end, and have all of them judged."""
        self._enough.set()
        self._thread.join(PATIENCE_SECONDS)
        self._over.set()
        self._thread.join()
        try:
            return self._judged()
        finally:
            for worker in self._workers:
                worker.close()
            self._corner.stop()

    # Meanwhile

    def _keep_going(self) -> None:
        try:
            while not self._over.is_set():
                if self._enough.is_set() and not self._under_way():
                    return
                try:
                    self._turn()
                except psycopg.Error:
                    self._close_record()
                self._over.wait(0.1)
        except Exception as error:
            self._errors.append(f"{type(error).__name__}: {error}")
        finally:
            self._close_record()

    def _close_record(self) -> None:
        if self._record is not None:
            self._record.close()
            self._record = None

    def _turn(self) -> None:
        if self._record is None:
            self._record = self._corner.record()
        timer = self._corner.timer
        if timer is not None and not timer.alive():
            self.counted["timers started again"] += 1
            self._corner.open_timer()
        for worker in self._workers:
            # Who isn't listened to stops at a full pipe.
            worker.of_kind("ack")
        if not self._enough.is_set():
            for _ in range(AT_ONCE - len(self._under_way())):
                self._begin()
        for asked in self._record.rows("approvals_request", "state = 'pending'"):
            self._decide(asked)
        ended = ", ".join(f"'{status}'" for status in ENDED)
        self._ended = {row["run_id"] for row in self._record.rows("ledger_run_head", f"status IN ({ended})")}

    def _under_way(self) -> list[Trial]:
        return [trial for trial in self._trials if trial.run not in self._ended]

    def _begin(self) -> None:
        number = len(self._trials)
        kind = KINDS[number % len(KINDS)]
        order = f"errand-{self._seed}-{number}-{uuid4().hex[:6]}"
        made = {"customer": "Ann", "amount_minor": 100_000, "currency": "EUR"}
        call(self._corner.sandbox.host, "PUT", f"/orders/{order}", made)
        state = {"order": order, "amount_minor": 100 + number, "currency": "EUR", "receipt": None}
        body = {"workflow": kind, "version": "1", "task": f"refund order {order}", "state": state}
        headers = {"Authorization": f"Bearer {self._corner.slots[0].key}", "Idempotency-Key": order}
        started = self._persist(lambda: call(self._corner.web_host, "POST", "/api/v1/runs", body, headers))
        acks: list[dict[str, Any]] = [{"kind": "run", "run": started["run"]["id"]}]
        self._kinds[started["run"]["id"]] = kind
        self._trials.append(
            Trial(f"errands/{number}", started["run"]["id"], order, STUCK_SECONDS, ["completed"], 0.0, acks)
        )

    def _decide(self, asked: dict[str, Any]) -> None:
        """What a request asks is read and approved; one that moved meanwhile is read again at the next turn."""
        slot = self._corner.slots[0]
        seen = self._persist(lambda: self._corner.api(slot, "GET", f"/approvals/{asked['id']}"))
        try:
            self._persist(lambda: slot.person.decide(asked["id"], "approve", seen["revision"], seen["digest"]))
        except Refused as refused:
            if refused.status not in (409, 410, 412):
                raise
            self.counted["decisions on what had moved"] += 1
            return
        by_run = {trial.run: trial for trial in self._trials}
        by_run[asked["run_id"]].acks.append({"kind": "vote", "request": asked["id"], "choice": "approve"})
        self.counted["vote"] += 1

    def _persist(self, act: Callable[[], Any]) -> Any:
        """In the same words, until there is a usable answer."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return act()
            except (*LOST, Refused) as error:
                if (isinstance(error, Refused) and error.status < 500) or time.monotonic() > deadline:
                    raise
                self.counted["answers lost to the clerk"] += 1
            time.sleep(0.05)

    # Afterwards

    def _judged(self) -> list[Failure]:
        corner = self._corner
        by_run = {trial.run: trial for trial in self._trials}
        for worker in self._workers:
            for line in worker.of_kind("ack"):
                if line["run"] in by_run:
                    by_run[line["run"]].acks.append(line["ack"])
                    self.counted[line["ack"]["kind"]] += 1
            if not worker.alive():
                self._errors.append(f"a worker ended: {worker.log.read_text()[-500:]}")
        now = time.time()
        for trial in self._trials:
            trial.ended_at = now
        record = corner.record()
        try:
            self._count(record.rows("ledger_wait_member", "kind = 'timer' AND state = 'met'"), "timer")
            self._count(record.rows("ledger_decision", "true"), "decision")
            self._count(record.rows("ledger_run_head", "status = 'completed'"), "errands completed")
            handoffs = record.rows("ledger_handoff", "true")
            self.counted.update(f"handed over: {row['reason']}" for row in handoffs if row["run_id"] in by_run)
            handed = {row["run_id"] for row in handoffs if row["reason"] in WORN_OUT}
        finally:
            record.close()
        rest = [trial for trial in self._trials if trial.run not in handed]
        if len(rest) * 2 < len(self._trials):
            self._errors.append(f"{len(self._trials) - len(rest)} of {len(self._trials)} errands came to a person")
        found = judged(corner, "errands", [self._run(trial) for trial in rest])
        failures = [Failure(self._seed, f"{one.kind} {one.trial}: {one.text}") for one in found]
        failures += [Failure(self._seed, text) for text in self._errors]
        missing = [step for step in STEPS if not self.counted[step]]
        if missing:
            failures.append(Failure(self._seed, f"under this storm there never was a {' or a '.join(missing)}"))
        return failures

    def _count(self, rows: list[dict[str, Any]], name: str) -> None:
        self.counted[name] = sum(row["run_id"] in self._kinds for row in rows)

    def _run(self, trial: Trial) -> Run:
        """As the harness of the crash trials hands runs to their judge."""
        corner, number = self._corner, int(trial.id.rpartition("/")[2])
        with contextlib.closing(corner.record()) as record:
            return Run(corner, corner.slots[0], record, trial, "errands", number, None, 0)  # type: ignore[arg-type]
