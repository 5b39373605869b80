"""Many trials of many points on one scene, and a row for each."""

import json
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.crash.judge import ZEROS, Finding
from tests.crash.processes import ROOT
from tests.crash.scene import Scene, Slot, until
from tests.crash.trials import POINTS, Run, begin, place, run_trial, take_over

SLOTS = 20
"""Trials at the same time: each waits for its lease most of the time."""
WAKE_STATEMENTS = {"postgres": 14, "sqlite": 110}
"""How many statements a wake has, from the one that takes it to the one that decides it."""
WAKES_AT_ONCE = 6
DEATHS = 2
"""Checkers of one wake that may die before the last one: with the third, a person gets the run, and rightly so."""
APPLIED = frozenset({"b", "refused", "pending", "other"})
"""Points at which the target has acted when a first look may say "absent". Elsewhere absence is true, and must soon be believed."""
MAIN_POINTS = ("a", "b", "c", "d")
JUDGE = ROOT / "tests" / "crash" / "judge.py"
LOG_READER = ROOT / "examples" / "sandbox" / "log.py"
_SHOWN = 12


def every_point() -> list[str]:
    """The names of all points."""
    return [*POINTS, "wake"]


def commit_id() -> str:
    """What is being tested, for the line that reproduces a failure."""
    found = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return found.stdout.strip() or "unknown"


@dataclass(slots=True)
class Row:
    """What came of one point on one database."""

    kind: str
    point: str
    runs: list[Run]
    findings: list[Finding]
    seconds: float
    kills: list[int] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        return bool(self.findings)

    def text(self) -> str:
        """The row, and for each failure its seed, the commit and a line that reproduces it."""
        counted = Counter(finding.kind for finding in self.findings)
        zeros = "  ".join(f"{kind} {counted[kind]}" for kind in ZEROS)
        others = sum(counted.values()) - sum(counted[kind] for kind in ZEROS)
        pids = f"{self.kills[0]}…{self.kills[-1]}" if self.kills else "none"
        lying = sum(bool(run.fault) for run in self.runs)
        places = {run.notes["statement"] for run in self.runs if "statement" in run.notes}
        killed_at = f"  at {len(places)} different places" if places else ""
        lines = [
            f"{self.kind:8} {self.point:8} trials {len(self.runs):4}  kills {len(self.kills):4} (pids {pids}){killed_at}  "
            f"first look wrong {lying:3}  code {self._digests()}  {zeros}  other {others}  {self.seconds:.1f} s"
        ]
        seeds = {run.trial.id: run.seed for run in self.runs}
        for finding in self.findings[:_SHOWN]:
            seed = seeds.get(finding.trial, 0)
            again = f"python -m tests.crash --trials 1 --db {self.kind} --points {self.point} --seed {seed}"
            lines.append(
                f"  {finding.kind} in {finding.trial}: {finding.text}\n    seed {seed}, commit {commit_id()}: {again}"
            )
        if len(self.findings) > _SHOWN:
            lines.append(f"  … and {len(self.findings) - _SHOWN} more")
        return "\n".join(lines)

    def _digests(self) -> str:
        """Version and digest of the first worker and of the one that took over."""
        pairs = Counter(
            (f"{v}:{d[:8]}", f"{w}:{e[:8]}")
            for run in self.runs
            if len(run.digests) > 1
            for (v, d), (w, e) in [(run.digests[0], run.digests[-1])]
        )
        return " ".join(f"{first} → {second}" for first, second in pairs) or "(one worker)"

    @staticmethod
    def bound(trials: int) -> str:
        """What no failure in so many trials says."""
        return f"No failure in {trials} trials bounds its rate at about {3 / trials:.2g}, no lower."


def run_points(scene: Scene, points: Sequence[str], trials: int, seed: int) -> Iterator[Row]:
    """One point after the other, each with its trials side by side, judged from the witnesses when all of them are over."""
    for point in points:
        # An earlier point, or an earlier call, may have left a call out: its target can't be changed, and its run is nobody's here.
        scene.slots = scene.fresh_slots(len(scene.slots))
        # To say "absent" of what was applied is lawful only before the horizon, which a busy machine must not miss.
        scene.visible_within(60 if point in APPLIED else 0)
        began = time.monotonic()
        play = _wakes if point == "wake" else _side_by_side
        runs, timer_kills = play(scene, point, range(seed, seed + trials))
        findings = judged(scene, point, runs)
        kills = timer_kills + [pid for run in runs for pid in run.kills]
        yield Row(scene.kind, point, runs, findings, time.monotonic() - began, kills)


def _side_by_side(scene: Scene, point: str, seeds: range) -> tuple[list[Run], list[int]]:
    todo: queue.SimpleQueue[int] = queue.SimpleQueue()
    for seed in seeds:
        todo.put(seed)
    done: list[Run] = []

    def work(slot: Slot) -> None:
        while True:
            try:
                seed = todo.get_nowait()
            except queue.Empty:
                return
            run = run_trial(scene, slot, point, seed)
            done.append(run)
            if run.error or run.unfinished:
                # What this trial left unfinished would be taken up by the next one's workers, and judged as theirs.
                (slot,) = scene.fresh_slots(1)

    threads = [threading.Thread(target=work, args=(slot,)) for slot in scene.slots]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(done, key=lambda run: run.seed), []


def _wakes(scene: Scene, point: str, seeds: range) -> tuple[list[Run], list[int]]:
    """Timers are killed at a statement of a wake, one after the other; the next one finds what was left."""
    runs: list[Run] = []
    killed: list[int] = []
    left = list(seeds)
    while left:
        batch, left = left[:WAKES_AT_ONCE], left[WAKES_AT_ONCE:]
        began = [begin(scene, slot, point, seed, "refunds/1") for slot, seed in zip(scene.slots, batch, strict=False)]
        killed += _wake_round(scene, began)
        runs += began
    return runs, killed


def _each(runs: list[Run], act: Any) -> None:
    """Do something for all runs at once; the first error of each is kept."""

    def guarded(run: Run) -> None:
        try:
            act(run)
        except Exception as error:
            run.error = run.error or f"{type(error).__name__}: {error}"

    threads = [threading.Thread(target=guarded, args=(run,)) for run in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _wake_round(scene: Scene, runs: list[Run]) -> list[int]:
    def fall_asleep(run: Run) -> None:
        first = run.worker("refunds/1", "waiting")
        first.wait_for("point", 30)
        run.sample("while waiting", pay=["proposed", 0, 0])
        run.kill(first)

    _each(runs, fall_asleep)
    scene.stop_timer()
    _each(runs, lambda run: run.approve())
    killed = []
    for run in runs:
        if any(_deaths(one) >= DEATHS for one in runs):
            break
        timer = scene.start_timer(run.chance.randint(1, WAKE_STATEMENTS[scene.kind]), run.chance.random() < 0.5)
        # A wake with fewer statements gets past the point: then nothing is left to wait for, and what is ready must not wait for us.
        until(
            8, lambda timer=timer: timer.of_kind("point") or not any(one.head()["status"] == "waking" for one in runs)
        )
        if timer.of_kind("point"):
            run.notes["statement"] = place(timer)
            killed.append(timer.pid)
        timer.end(signal.SIGKILL)
        scene.stop_timer()
    scene.start_timer()
    _each(runs, lambda run: take_over(run, "refunds/2"))
    for run in runs:
        run.collect()
        run.trial.ended_at = time.time()
        run.record.close()
    return killed


def _deaths(run: Run) -> int:
    """How many checkers have begun the run's undecided wake."""
    wakes = run.record.rows("ledger_wake", "run_id = %s AND state IN ('queued', 'checking')", run.trial.run)
    return max((wake["attempt"] for wake in wakes), default=0)


def judged(scene: Scene, point: str, runs: list[Run]) -> list[Finding]:
    """Write the case down, and have it judged by an interpreter of its own."""
    case = {
        "database": scene.kind,
        "address": scene.record_address,
        "log_reader": str(LOG_READER),
        "log_place": str(scene.sandbox.data),
        "trials": [asdict(run.trial) for run in runs],
    }
    place = scene.home / f"case-{point}.json"
    place.write_text(json.dumps(case))
    command = [sys.executable, "-I", str(JUDGE), str(place)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    found = [Finding(**json.loads(line)) for line in ran.stdout.splitlines()]
    if ran.returncode != bool(found):
        found.append(Finding("ERROR", "-", f"the judge ended with {ran.returncode}: {ran.stderr[-500:]}"))
    found += [Finding("ERROR", run.trial.id, run.error) for run in runs if run.error]
    found += [
        Finding("ERROR", run.trial.id, f"worker B ran the code of worker A: {run.digests}")
        for run in runs
        if _same(run)
    ]
    if found:
        scene.kept = True
        print(f"kept for reading: {scene.home}", file=sys.stderr)
    return found


def _same(run: Run) -> bool:
    return len(run.digests) > 1 and run.digests[0][1] == run.digests[-1][1]
