"""The fourteen ways in which a target fails, each many times, with the real client's workers at the real sandbox."""

import json
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import uuid4

from tests.crash import agents
from tests.crash.harness import JUDGE, LOG_READER
from tests.crash.judge import STATE, Finding, Record, Trial
from tests.crash.processes import Process
from tests.crash.scene import CALL_LIMIT_SECONDS, SEND_BY_SECONDS, call
from tests.storms.ground import LEASE_SECONDS, Corner, Ground
from tests.storms.report import Failure, Outcome

WORKERS = 10
PAID, NOT_PAID, BELIEVED = ("committed", "", 1), ("failed", "rejected", 0), ("committed", "", 0)
OPEN = ("unknown", "", 1)
SECONDS_A_RUN = 1.5
"""So long a run may take on the average before the rest is taken for stuck."""


@dataclass(frozen=True, slots=True)
class Expected:
    """How a fault ends: the effect's state and cause with the number of changes, the run, how many requests there may be, and through which states
    the effect has to go."""

    effect: tuple[str, str, int]
    run: str = "completed"
    requests: tuple[int, ...] = (1,)
    passes: tuple[str, ...] = ()


FAULTS: Mapping[str, Expected] = {
    "timeout_before_apply": Expected(PAID, requests=(2,)),
    "timeout_after_apply": Expected(PAID),
    "reset_mid_body": Expected(PAID),
    "error_500_applied": Expected(PAID),
    "error_500_not_applied": Expected(PAID, requests=(2,)),
    "conflict_409": Expected(PAID, requests=(2,)),
    "unprocessable_422": Expected(NOT_PAID, "failed"),
    "throttled_429": Expected(PAID, requests=(2,)),
    "unauthorised_401": Expected(NOT_PAID, "failed"),
    "truncated_body": Expected(PAID),
    "wrong_reference": Expected(PAID),
    "slow": Expected(PAID, passes=("in_flight", "unknown", "committed")),
    "key_forgotten": Expected(OPEN, "blocked", passes=("in_flight", "unknown")),
    "doubled_reply": Expected(PAID),
    "lying_200": Expected(BELIEVED),
}
"""Time-out before and after applying, and reset, 500 applied and not: with the two kinds of time-out fifteen rows for fourteen faults. What a
target says plainly is believed. Of a lying success the ledger keeps what was told, and a later look disputes it and hands it to somebody.
Of a reference that names nothing it keeps that too: the payment was made, so nothing is in dispute, and the later look's report has the
right one. A slow one acts after its caller has given up. One that forgets keys has lost its reply too: it knows of nothing when it is
asked, past the time for which it keeps keys, and a person has to find out."""
TOLD_WRONG = ("wrong_reference", "lying_200")
MORE: Mapping[str, dict[str, Any]] = {
    "slow": {"seconds": SEND_BY_SECONDS + CALL_LIMIT_SECONDS + 0.5},
    "throttled_429": {"retry_after": 1},
}
LOST_TOO = ("key_forgotten",)
VISIBLE_SECONDS = 4
"""So long after a call's answer is overdue the target may show what it did: a slow one does it late."""
RETENTION_SECONDS = 4
"""So long the target `brief` keeps keys: less than until an absence could be believed."""


def storm(ground: Ground, each: int, seed: int = 1, only: str = "") -> Outcome:
    """Each fault so many times; `only` is one fault's name."""
    began = time.monotonic()
    faults = [only] if only else list(FAULTS)
    with Corner(ground, threads=WORKERS + 8) as corner:
        corner.open_timer()
        _furnish(corner)
        trials = [_start(corner, fault, seed + number) for number in range(each) for fault in faults]
        workers = [corner.agents.start("tests.storms.roles:faulty", _args(corner)) for _ in range(WORKERS)]
        _wait(corner, len(trials), workers)
        for trial in trials:
            trial.ended_at = time.time()
        _collect(trials, workers)
        looked = corner.product.run("tests.storms.roles:look_again", {"orders": list(TOLD_WRONG)}, 300)["seen"]
        failures = _judge(corner, trials, looked)
        failures += [Failure(seed, f"CHAIN: {fault}") for fault in ground.verify(corner.name)]
    ground.kept = ground.kept or bool(failures)
    return Outcome("faults", len(trials), time.monotonic() - began, {"faults": len(faults)}, failures)


def _furnish(corner: Corner) -> None:
    """What the target guarantees, and the one that keeps no keys with its workflow."""
    slot = corner.slots[0]
    corner.visible_within(VISIBLE_SECONDS)
    told = {"call_limit": CALL_LIMIT_SECONDS, "key_retention": RETENTION_SECONDS}
    corner.product.run("tests.storms.roles:furnish", {**told, "tenant": slot.id, "payments": corner.payments})
    corner.api(slot, "PUT", "/workflows/oblivious/versions/1", agents.FLOWS["oblivious/1"].spec())


def _args(corner: Corner) -> dict[str, Any]:
    return {
        "server": f"http://{corner.web_host}",
        "key": corner.slots[0].key,
        "payments": corner.payments,
        "lease": LEASE_SECONDS,
        "more": dict(MORE),
        "lost": list(LOST_TOO),
    }


def _start(corner: Corner, fault: str, seed: int) -> Trial:
    """A run about an order that is named after the fault: who sends for it arms the fault first."""
    order = f"{fault}.{seed}.{uuid4().hex[:6]}"
    call(
        corner.sandbox.host, "PUT", f"/orders/{order}", {"customer": "Ann", "amount_minor": 100_000, "currency": "EUR"}
    )
    state = {"order": order, "amount_minor": 100 + seed % 90_000, "currency": "EUR", "receipt": None}
    flow = "oblivious" if fault == "key_forgotten" else "goodwill"
    body = {"workflow": flow, "version": "1", "task": f"refund order {order}", "state": state}
    run_id = corner.api(corner.slots[0], "POST", "/runs", body)["run"]["id"]
    acks: list[dict[str, Any]] = [{"kind": "run", "run": run_id}]
    expected = FAULTS[fault]
    passes = {"pay": list(expected.passes)}
    return Trial(f"{fault}/{seed}", run_id, order, 3_600, [expected.run], 0.0, acks, passes=passes)


def _wait(corner: Corner, count: int, workers: Sequence[Process]) -> None:
    """Until all runs have ended, or too long; the judge says what that means. Who isn't listened to stops at a full pipe."""
    deadline = time.monotonic() + 60 + count * SECONDS_A_RUN
    record = corner.record()
    try:
        while time.monotonic() < deadline:
            for worker in workers:
                worker.of_kind("ack")
            ended = record.rows("ledger_run_head", "status IN ('completed', 'failed', 'cancelled', 'blocked')")
            if len(ended) == count:
                return
            time.sleep(0.3)
    finally:
        record.close()


def _collect(trials: Iterable[Trial], workers: Iterable[Process]) -> None:
    """What the workers were answered, by the run it is about."""
    by_run = {trial.run: trial for trial in trials}
    for worker in workers:
        for line in worker.of_kind("ack"):
            if line["run"] in by_run:
                by_run[line["run"]].acks.append(line["ack"])
        worker.close()


def _judge(corner: Corner, trials: list[Trial], looked: Mapping[str, list[Any]]) -> list[Failure]:
    place = corner.home / "case-faults.json"
    case = {
        "database": "postgres",
        "address": corner.record_address,
        "log_reader": str(LOG_READER),
        "log_place": str(corner.sandbox.data),
        "trials": [asdict(trial) for trial in trials],
    }
    place.write_text(json.dumps(case))
    ran = subprocess.run([sys.executable, "-I", str(JUDGE), str(place)], capture_output=True, text=True, check=False)
    found = [Finding(**json.loads(line)) for line in ran.stdout.splitlines()]
    if ran.returncode != bool(found):
        found.append(Finding("ERROR", "-", f"the judge ended with {ran.returncode}: {ran.stderr[-500:]}"))
    record = corner.record()
    try:
        wrong = [finding for trial in trials for finding in _against(corner, record, trial, looked)]
    finally:
        record.close()
    # Of a lie the judge must say that record and log contradict each other; whatever else it says of one counts as of any other.
    lies = Counter(finding.trial for finding in found if finding.kind == STATE and _told_wrong(finding.trial))
    wrong += [finding for finding in found if finding.kind != STATE or not _told_wrong(finding.trial)]
    wrong += [
        Finding("UNSEEN", t.id, "the judge saw nothing of the lie")
        for t in trials
        if _told_wrong(t.id) and not lies[t.id]
    ]
    return [
        Failure(
            _seed(finding), f"{finding.kind} {finding.trial}: {finding.text}", f"--only {finding.trial.split('/')[0]}"
        )
        for finding in wrong
    ]


def _seed(finding: Finding) -> int:
    number = finding.trial.rpartition("/")[2]
    return int(number) if number.isdigit() else 0


def _told_wrong(trial: str) -> bool:
    return trial.split("/")[0] in TOLD_WRONG


def _against(corner: Corner, record: Record, trial: Trial, looked: Mapping[str, list[Any]]) -> Iterable[Finding]:
    """The record and the log of one run against what its fault has to come to."""
    fault = trial.id.split("/")[0]
    expected = FAULTS[fault]
    effects = record.rows("ledger_effect", "run_id = %s", trial.run)
    if len(effects) != 1:
        yield Finding("STATE", trial.id, f"{len(effects)} effects")
        return
    effect = effects[0]
    mutating, applied = _logged(corner, effect["key"])
    if applied > 1:
        yield Finding("DUPLICATE", trial.id, f"{applied} changes under {effect['key']}")
    seen = (effect["state"], effect["cause"], applied)
    if seen != expected.effect or mutating not in expected.requests:
        yield Finding(
            "STATE", trial.id, f"{seen} after {mutating} requests, not {expected.effect} after {expected.requests}"
        )
    head = record.one("ledger_run_head", "run_id = %s", trial.run) or {"status": "absent"}
    if head["status"] != expected.run:
        yield Finding("END", trial.id, f"the run is {head['status']}, not {expected.run}")
    if fault in TOLD_WRONG:
        yield from _looked_again(corner, record, trial, effect, looked.get(trial.run, []))


def _looked_again(
    corner: Corner, record: Record, trial: Trial, effect: Mapping[str, Any], looked: list[Any]
) -> Iterable[Finding]:
    """What a look after the lie has brought to light: whether it is disputed and in somebody's hands, and what the payment is called."""
    lied = trial.id.startswith("lying_200")
    if looked != [lied, lied]:
        yield Finding("STATE", trial.id, f"looked at again, (disputed, handed over) is {looked}")
    reports = record.rows("ledger_effect_report", "effect_id = %s AND kind = 'lookup'", effect["id"])
    said = [(report["answer"], report["reference"]) for report in reports]
    told = ("absent", "") if lied else ("applied", corner.reference(effect["key"]))
    if told not in said:
        yield Finding("STATE", trial.id, f"looked at again, the target is recorded as having said {said}, not {told}")


def _logged(corner: Corner, key: str) -> tuple[int, int]:
    try:
        found = corner.logged(key)
    except sqlite3.Error:
        return -1, -1
    return found["mutating"], found["applied"]
