"""One trial: a run whose worker is killed at a point, and another process with newer code that finishes it."""

import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from tests.crash.judge import Record, Trial
from tests.crash.processes import Gone, Process
from tests.crash.scene import LEASE_SECONDS, Scene, Slot, call, until
from tests.postgres import free_port

TRIAL_SECONDS = 40.0
ENDED = ("completed", "failed", "cancelled", "blocked")


class Unexpected(Exception):
    """A scenario didn't meet what it is about."""


@dataclass(slots=True)
class Run:
    """A trial under way, with what is written down about it."""

    scene: Scene
    slot: Slot
    record: Record
    trial: Trial
    point: str
    seed: int
    chance: random.Random
    amount: int
    processes: list[Process] = field(default_factory=list)
    digests: list[tuple[str, str]] = field(default_factory=list)
    kills: list[int] = field(default_factory=list)
    fault: str = ""
    error: str = ""
    unfinished: bool = False
    notes: dict[str, Any] = field(default_factory=dict)

    # What goes on

    def worker(self, flow: str, point: str = "", server: str = "") -> Process:
        """A new process with its own pid and session that works in this trial's tenant."""
        args = {
            "flow": flow,
            "point": point,
            "server": f"http://{server or self.scene.web_host}",
            "key": self.slot.key,
            "payments": self.scene.payments,
            "lease": LEASE_SECONDS,
        }
        process = self.scene.agents.start("tests.crash.workers:work", args)
        self.processes.append(process)
        said = process.wait_for("started", 20)
        self.digests.append((said["version"], said["digest"]))
        return process

    def kill(self, process: Process) -> None:
        """SIGKILL to the recorded pid."""
        process.end(signal.SIGKILL)
        self.kills.append(process.pid)

    def head(self) -> dict[str, Any]:
        found = self.record.one("ledger_run_head", "run_id = %s", self.trial.run)
        return found or {"status": "absent"}

    def effects(self) -> list[dict[str, Any]]:
        return self.record.rows("ledger_effect", "run_id = %s", self.trial.run, order="proposed_at")

    def effect(self, name: str = "pay") -> dict[str, Any] | None:
        return next((effect for effect in self.effects() if effect["name"] == name), None)

    def wait_status(self, *wanted: str, seconds: float = TRIAL_SECONDS) -> str:
        """Until the run is in one of these; answers where it is then."""
        until(seconds, lambda: self.head()["status"] in wanted)
        return str(self.head()["status"])

    def wait_effect(self, *states: str, name: str = "pay", seconds: float = TRIAL_SECONDS) -> dict[str, Any]:
        """Until the effect is in one of these states. Raises Gone."""
        found: Any = until(seconds, lambda: (e := self.effect(name)) is not None and e["state"] in states and e)
        if not found:
            raise Gone(f"the effect {name} never came to {' or '.join(states)}")
        return dict(found)

    def sample(self, label: str, **expect: list[Any]) -> None:
        """Read effects and the target's log while everything stands still."""
        rows = self.effects()
        log = {row["key"]: self.scene.logged(row["key"]) for row in rows}
        effects = [{name: row[name] for name in ("id", "name", "key", "state", "cause", "attempt")} for row in rows]
        self.trial.samples.append({"label": label, "effects": effects, "log": log, "expect": expect})

    def arm_look(self, fault: str) -> None:
        """The look-up by this effect's key first answers something else than the truth."""
        if fault and (effect := self.effect()) is not None:
            self.scene.control("POST", "faults", {"fault": fault, "key": effect["key"]})
            self.fault = fault

    def approve(self) -> None:
        """Alice reads the request and approves exactly that."""
        asked: Any = until(
            TRIAL_SECONDS,
            lambda: self.record.one("approvals_request", "run_id = %s AND state = 'pending'", self.trial.run),
        )
        if not asked:
            raise Gone("nobody was asked to approve")
        seen = self.scene.api(self.slot, "GET", f"/approvals/{asked['id']}")
        self.slot.person.decide(asked["id"], "approve", seen["revision"], seen["digest"])
        self.trial.acks.append({"kind": "vote", "request": asked["id"], "choice": "approve"})

    def collect(self) -> None:
        """Take in what the processes reported, and end them."""
        for process in self.processes:
            self.trial.acks += [line["ack"] for line in process.of_kind("ack")]
            self.notes.setdefault("met", []).extend(
                code for line in process.of_kind("refused") for code in [line["code"]]
            )
            process.close()


def begin(scene: Scene, slot: Slot, point: str, seed: int, flow: str) -> Run:
    """An order at the sandbox and a run about it."""
    chance = random.Random(seed)
    order = f"{point}-{seed}-{uuid4().hex[:8]}"
    amount = chance.randrange(100, 90_000)
    call(scene.sandbox.host, "PUT", f"/orders/{order}", {"customer": "Ann", "amount_minor": 100_000, "currency": "EUR"})
    body = {
        "workflow": flow.partition("/")[0],
        "version": "1",
        "task": f"refund order {order}",
        "state": {"order": order, "amount_minor": amount, "currency": "EUR", "receipt": None},
    }
    run_id = scene.api(slot, "POST", "/runs", body)["run"]["id"]
    trial = Trial(f"{scene.kind}/{point}/{seed}", run_id, order, LEASE_SECONDS, ["completed"], 0.0)
    trial.acks.append({"kind": "run", "run": run_id})
    return Run(scene, slot, scene.record(), trial, point, seed, chance, amount)


def look_fault(run: Run) -> str:
    """In a third of the trials the first look-up doesn't tell the truth."""
    return ["", "", "", "", "absent_first", "cannot_tell_first"][run.seed % 6]


def take_over(run: Run, flow: str) -> None:
    """Another process with newer code, once the run is ready; until the run has ended."""
    status = run.wait_status("ready", *ENDED)
    if status == "ready":
        run.worker(flow)
    run.wait_status(*ENDED)


# The four points --------------------------------------------------------------------------------


def _to_issue(run: Run, point: str, flow: str = "refunds/1") -> Process:
    """Worker A as far as its point after the approval."""
    first = run.worker(flow, point)
    run.wait_status("waiting")
    run.arm_look(look_fault(run))
    run.approve()
    return first


def before_call(run: Run) -> None:
    """Permit in hand, nothing sent."""
    first = _to_issue(run, "before_call")
    first.wait_for("point", TRIAL_SECONDS)
    run.trial.passes = {"pay": ["proposed", "in_flight", "unknown", "failed", "in_flight", "committed"]}
    run.sample("before the call", pay=["in_flight", 0, 0])
    run.kill(first)
    take_over(run, "refunds/2")


def during_call(run: Run) -> None:
    """Applied by the target, not answered."""
    run.trial.passes = {"pay": ["proposed", "in_flight", "unknown", "committed"]}
    block_after_apply(run)
    take_over(run, "refunds/2")


def block_after_apply(run: Run, outcome: str = "", changes: int = 1) -> None:
    first = run.worker("refunds/1")
    run.wait_status("waiting")
    effect = run.effect()
    assert effect is not None
    run.scene.control("POST", "faults", {"fault": "block_after_apply", "key": effect["key"]})
    if outcome:
        more = {"amount_minor": 1} if outcome == "outcome_other_amount" else {}
        run.scene.control("POST", "faults", {"fault": outcome, "key": effect["key"], **more})
    run.arm_look(look_fault(run))
    run.approve()
    run.scene.control("GET", f"blocked?timeout={TRIAL_SECONDS}&key={effect['key']}")
    run.sample("applied and not answered", pay=["in_flight", 1, changes])
    run.kill(first)


def settled(run: Run) -> None:
    """Settle answered, the commit not sent."""
    first = _to_issue(run, "settled")
    first.wait_for("point", TRIAL_SECONDS)
    run.trial.passes = {"pay": ["proposed", "in_flight", "committed"]}
    run.sample("settled, not committed", pay=["committed", 1, 1])
    run.kill(first)
    take_over(run, "refunds/2")


def waiting(run: Run) -> None:
    """Asleep until somebody decides."""
    first = run.worker("refunds/1", "waiting")
    first.wait_for("point", TRIAL_SECONDS)
    run.trial.passes = {"pay": ["proposed", "in_flight", "committed"]}
    run.sample("while waiting", pay=["proposed", 0, 0])
    run.kill(first)
    run.arm_look(look_fault(run))
    run.approve()
    take_over(run, "refunds/2")


# Inside the server ------------------------------------------------------------------------------


_STATEMENTS = {("postgres", False): 4, ("postgres", True): 1, ("sqlite", False): 24, ("sqlite", True): 16}
"""How many statements a commit has at least, from its beginning or from where it writes."""


def in_commit(run: Run) -> None:
    """The web process is killed at a statement of a commit, and started again; in half of the trials the worker is killed too."""
    after, writing = run.chance.random() < 0.5, run.seed % 3 != 0
    nth = run.chance.randint(1, _STATEMENTS[run.scene.kind, writing])
    port = free_port()
    web = run.scene.start_web(port, nth, after, writing)
    run.processes.append(web)
    first = run.worker("refunds/1", server=f"127.0.0.1:{port}")
    if until(12, lambda: web.of_kind("point") or web.of_kind("passed")) and web.of_kind("point"):
        run.notes["statement"] = place(web)
        run.kill(web)
    if run.seed % 2:
        run.kill(first)
        until(LEASE_SECONDS + 8, lambda: run.head()["status"] in ("waiting", "ready"))
        if run.head()["status"] == "ready":
            run.worker("refunds/2")
    else:
        run.processes.append(run.scene.start_web(port))
    run.wait_status("waiting")
    run.approve()
    if first.alive():
        run.wait_status("ready", "running", *ENDED)
        run.kill(first)
    take_over(run, "refunds/2")


def place(process: Process) -> str:
    said = process.of_kind("point")[0]
    return f"{said['when']} {said['statement']}"


# Others -----------------------------------------------------------------------------------------


def zombie(run: Run) -> None:
    """Stopped past the lease with a permit in hand, and awake again before anyone claims: nothing may be sent any more."""
    first = _to_issue(run, "zombie")
    first.wait_for("point", TRIAL_SECONDS)
    first.send(signal.SIGSTOP)
    run.wait_status("ready", "blocked")
    run.sample("stopped past the lease", pay=["failed", 0, 0])
    first.send(signal.SIGCONT)
    first.release()
    first.wait_for("point", TRIAL_SECONDS, lambda line: line["point"] == "told")
    run.sample("awake again", pay=["failed", 0, 0])
    run.kill(first)
    take_over(run, "refunds/2")


def lost_reply(run: Run) -> None:
    """A commit's reply is lost, the run is taken over, and the first worker asks for its reply again."""
    first = run.worker("refunds/1", "commit_reply")
    first.wait_for("point", TRIAL_SECONDS)
    first.send(signal.SIGSTOP)
    run.sample("a reply was lost", pay=["proposed", 0, 0])
    run.approve()
    second_claims = run.wait_status("ready", *ENDED)
    if second_claims == "ready":
        run.worker("refunds/2")
        run.wait_status("running", *ENDED)
    first.send(signal.SIGCONT)
    first.release()
    until(10, lambda: len([a for a in first.of_kind("ack") if a["ack"]["kind"] == "checkpoint"]) > 1)
    run.kill(first)
    run.wait_status(*ENDED)


def _goodwill(run: Run, flow: str, points: tuple[str, ...]) -> None:
    point = points[run.seed % len(points)]
    first = run.worker("goodwill/1", point)
    first.wait_for("point", TRIAL_SECONDS)
    run.sample(f"goodwill, {point}")
    run.kill(first)
    run.arm_look(look_fault(run))
    take_over(run, flow)


def other_amount(run: Run) -> None:
    """The model proposes another amount when it runs again: the recorded one stays."""
    _goodwill(run, "goodwill/2-other-amount", ("before_call", "settled"))
    _must_have_met(run, "effect-differs")
    key = (run.effect() or {"key": ""})["key"]
    paid = run.scene.control("GET", f"applied?prefix={key}")["keys"].get(key, {})
    if paid.get("amounts") != [run.amount]:
        raise Unexpected(f"paid {paid.get('amounts')}, recorded was {run.amount}")


def _must_have_met(run: Run, code: str) -> None:
    if code not in [line["code"] for process in run.processes for line in process.of_kind("refused")]:
        raise Unexpected(f"no worker was refused with {code}")


def renamed(run: Run) -> None:
    """The new code names the effect otherwise: refused until the old one is accounted for, and still one refund."""
    _goodwill(run, "goodwill/2-renamed", ("before_call", "settled"))
    _must_have_met(run, "effects-unaccounted")


def found_refused(run: Run) -> None:
    """The look-up finds the refund, and it was refused."""
    run.trial.ends = ["failed"]
    block_after_apply(run, "outcome_refused", 0)
    take_over(run, "refunds/2")


def found_pending(run: Run) -> None:
    """The look-up finds the refund still pending; later it settles."""
    block_after_apply(run, "outcome_pending")
    unknown = run.wait_effect("unknown")
    until(
        15, lambda: run.record.rows("ledger_effect_report", "effect_id = %s AND answer = 'in_progress'", unknown["id"])
    )
    run.sample("pending at the target", pay=["unknown", 1, 1])
    run.scene.control("POST", "settle", {"key": unknown["key"], "status": "settled"})
    take_over(run, "refunds/2")


def found_other(run: Run) -> None:
    """The look-up finds a refund of another amount: a person's business."""
    run.trial.ends = ["blocked"]
    block_after_apply(run, "outcome_other_amount")
    take_over(run, "refunds/2")


POINTS: dict[str, tuple[Callable[[Run], None], str]] = {
    "a": (before_call, "refunds/1"),
    "b": (during_call, "refunds/1"),
    "c": (settled, "refunds/1"),
    "d": (waiting, "refunds/1"),
    "commit": (in_commit, "refunds/1"),
    "zombie": (zombie, "refunds/1"),
    "reply": (lost_reply, "refunds/1"),
    "amount": (other_amount, "goodwill/1"),
    "renamed": (renamed, "goodwill/1"),
    "refused": (found_refused, "refunds/1"),
    "pending": (found_pending, "refunds/1"),
    "other": (found_other, "refunds/1"),
}


def run_trial(scene: Scene, slot: Slot, point: str, seed: int) -> Run:
    """One trial from beginning to end; what went wrong on the way is kept for the row, the judge says what it means."""
    play, flow = POINTS[point]
    run = begin(scene, slot, point, seed, flow)
    try:
        play(run)
    except Exception as error:
        run.error = f"{type(error).__name__}: {error}"
    finally:
        run.collect()
        run.trial.ended_at = time.time()
        run.unfinished = run.head()["status"] not in run.trial.ends
        run.record.close()
    return run
