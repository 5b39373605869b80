"""Workers that are stopped past their lease, replaced by others, and then go on: nothing they do counts any more."""

import queue
import random
import signal
import threading
import time
from collections import Counter
from typing import Any
from uuid import uuid4

from tests.crash.harness import judged
from tests.crash.judge import Trial
from tests.crash.processes import Process
from tests.crash.scene import CALL_LIMIT_SECONDS, Slot, call, until
from tests.crash.trials import ENDED, TRIAL_SECONDS, Run, Unexpected
from tests.storms.ground import LEASE_SECONDS, Corner, Ground
from tests.storms.report import Failure, Outcome

SAYS = {"claimed": "refused", "before_call": "ack", "called": "ack", "settled": "refused"}
"""What a deaf one is answered when it writes what it has in hand: a commit is refused as stale, and a report of its call is taken as evidence."""
AT_ONCE = 20
AFTERWARDS = 0.3
"""Of so many the zombie wakes up when the other has finished, of the others while that one holds the run."""
SPEAKS_WITHIN = 20
"""Seconds that a deaf one has to try and write what it has in hand."""
POINTS = ("claimed", "before_call", "called", "settled")
"""Where a worker is stopped: with a packet, with a permit, with the target's answer, with its result recorded."""


class Graveyard(Corner):
    """A corner with a tenant for each trial that goes on at the same time."""

    def __init__(self, ground: Ground, tenants: int) -> None:
        super().__init__(ground, threads=AT_ONCE + 8)
        self._tenants = tenants

    def _start(self) -> None:
        super()._start()
        self.open_timer()
        seeding = {"payments": self.payments, "call_limit": CALL_LIMIT_SECONDS, "count": self._tenants}
        made = self.product.run("tests.crash.servers:seed", seeding)["tenants"]
        self.slots = [Slot(each["id"], each["key"], self.slots[0].person) for each in made]


def storm(ground: Ground, trials: int, seed: int = 1) -> Outcome:
    """So many zombies, many at the same time on one server."""
    began = time.monotonic()
    todo: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in range(seed, seed + trials):
        todo.put(number)
    runs: list[Run] = []

    def work(yard: Graveyard, slot: Slot) -> None:
        while True:
            try:
                number = todo.get_nowait()
            except queue.Empty:
                return
            runs.append(_trial(yard, slot, number))

    with Graveyard(ground, min(AT_ONCE, trials)) as yard:
        threads = [threading.Thread(target=work, args=(yard, slot)) for slot in yard.slots]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        by_id = {run.trial.id: run.seed for run in runs}
        failures = [
            Failure(by_id.get(found.trial, seed), f"{found.kind} {found.trial}: {found.text}")
            for found in judged(yard, "zombies", runs)
        ]
        failures += [Failure(seed, f"CHAIN: {fault}") for fault in ground.verify(yard.name)]
    counted = {point: sum(run.notes["point"] == point for run in runs) for point in POINTS}
    counted["deaf"] = sum(run.notes.get("deaf", False) for run in runs)
    counted["spoke"] = sum(run.notes.get("spoke", False) for run in runs)
    counted["awake during the other's work"] = sum(run.notes.get("awake") == "running" for run in runs)
    answers = Counter(answer for run in runs for answer in run.notes.get("answered", ()))
    counted |= {f"answered by {answer}": count for answer, count in answers.items()}
    if trials >= 40:
        said = ("spoke", "awake during the other's work")
        failures += [
            Failure(seed, f"{name}: only {counted[name]} of {trials}") for name in said if counted[name] < trials // 2
        ]
    ground.kept = ground.kept or bool(failures)
    return Outcome("zombies", len(runs), time.monotonic() - began, counted, failures)


def _trial(yard: Graveyard, slot: Slot, seed: int) -> Run:
    chance = random.Random(seed)
    order, amount = f"zombie-{seed}-{uuid4().hex[:8]}", chance.randrange(100, 90_000)
    trial = Trial(f"postgres/zombies/{seed}", "", order, LEASE_SECONDS, ["completed"], 0.0)
    run = Run(yard, slot, yard.record(), trial, "zombies", seed, chance, amount)
    run.notes["point"] = POINTS[seed % len(POINTS)]
    try:
        call(
            yard.sandbox.host,
            "PUT",
            f"/orders/{order}",
            {"customer": "Ann", "amount_minor": 100_000, "currency": "EUR"},
        )
        state = {"order": order, "amount_minor": amount, "currency": "EUR", "receipt": None}
        body = {"workflow": "goodwill", "version": "1", "task": f"refund order {order}", "state": state}
        trial.run = yard.api(slot, "POST", "/runs", body)["run"]["id"]
        trial.acks.append({"kind": "run", "run": trial.run})
        _haunt(run)
    except Exception as error:
        run.error = f"{type(error).__name__}: {error}"
    finally:
        run.collect()
        trial.ended_at = time.time()
        run.record.close()
    return run


def _haunt(run: Run) -> None:
    run.notes["deaf"] = bool(run.seed // len(POINTS) % 2)
    zombie = _worker(run, "goodwill/1", run.notes["point"], run.notes["deaf"])
    zombie.wait_for("point", TRIAL_SECONDS)
    zombie.send(signal.SIGSTOP)
    if run.wait_status("ready", *ENDED) == "running":
        raise Unexpected("its lease never lapsed")
    racing = run.chance.random() >= AFTERWARDS
    second = _worker(run, "goodwill/2-renamed", "claimed" if racing else "")
    if racing:
        # It holds the run and goes no further until the zombie has had its say.
        second.wait_for("point", TRIAL_SECONDS)
    else:
        run.wait_status(*ENDED)
    run.notes["awake"] = run.head()["status"]
    said = len(zombie.lines)
    zombie.send(signal.SIGCONT)
    zombie.release()
    if racing:
        second.release()
    kind = SAYS[run.notes["point"]]
    until(SPEAKS_WITHIN if run.notes["deaf"] else 0.5, lambda: any(one["kind"] == kind for one in _spoke(zombie, said)))
    spoke = _spoke(zombie, said)
    run.notes["spoke"] = bool(spoke)
    run.notes["answered"] = [line["code"] if line["kind"] == "refused" else "evidence" for line in spoke]
    taken = [line["ack"] for line in spoke if line["kind"] == "ack" and line["ack"]["kind"] != "settle"]
    if taken:
        raise Unexpected(f"a replaced worker's write was taken: {taken}")
    wanted = "stale-fence" if kind == "refused" else "evidence"
    if run.notes["deaf"] and wanted not in run.notes["answered"]:
        raise Unexpected(f"what it had in hand was not answered by {wanted}, but by {run.notes['answered']}")
    run.kill(zombie)
    run.wait_status(*ENDED)
    run.kill(second)


def _spoke(zombie: Process, since: int) -> list[dict[str, Any]]:
    """What came of its next calls: refused, or taken; of a report about an outcome that means as evidence."""
    zombie.of_kind("ack")
    return [line for line in zombie.lines[since:] if line["kind"] in ("refused", "ack")]


def _worker(run: Run, flow: str, point: str = "", deaf: bool = False) -> Process:
    """As `Run.worker`, with this ground's lease."""
    yard = run.scene
    args = {
        "flow": flow,
        "point": point,
        "server": f"http://{yard.web_host}",
        "key": run.slot.key,
        "payments": yard.payments,
        "lease": LEASE_SECONDS,
        "strike": None,
        "deaf": deaf,
    }
    process = yard.agents.start("tests.storms.roles:worker", args)
    run.processes.append(process)
    said = process.wait_for("started", 60)
    run.digests.append((said["version"], said["digest"]))
    return process
