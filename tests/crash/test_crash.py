"""The short form of the crash trials, on both databases: other worker, newer code, and four zeros for each point."""

import os
import time
from collections.abc import Callable, Iterator

import pytest

from tests.crash.harness import MAIN_POINTS, SLOTS, every_point, run_points
from tests.crash.judge import BLIND_RESEND, DUPLICATE, GRACE_SECONDS, STUCK, ZEROS
from tests.crash.scene import LEASE_SECONDS, Scene
from tests.crash.trials import POINTS, Run, block_after_apply, take_over

pytestmark = [pytest.mark.crash, pytest.mark.slow]

TRIALS = int(os.environ.get("RESUMEAPP_CRASH_TRIALS", "100"))
"""Of each of the four points on PostgreSQL; SQLite has a quarter, every other point a tenth."""
COUNTS = {"postgres": TRIALS, "sqlite": max(1, TRIALS // 4)}
OTHER_POINTS = [point for point in every_point() if point not in MAIN_POINTS]


@pytest.fixture(scope="module", params=["postgres", "sqlite"])
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    """One server, timer and sandbox for all points of a database."""
    with Scene(request.param, slots=min(SLOTS, max(COUNTS[request.param], 6))) as scene:
        yield scene


def _hold(scene: Scene, point: str, trials: int) -> None:
    (row,) = run_points(scene, [point], trials, seed=1)
    print(row.text())
    assert len(row.runs) == trials and len(row.kills) >= trials, "each trial kills"
    assert not row.findings, row.text()
    assert all(f"{kind} 0" in row.text() for kind in ZEROS)


@pytest.mark.parametrize("point", MAIN_POINTS)
def test_a_killed_worker_loses_and_repeats_nothing(scene: Scene, point: str) -> None:
    _hold(scene, point, COUNTS[scene.kind])


@pytest.mark.parametrize("point", OTHER_POINTS)
def test_other_ways_to_die_and_to_come_back_lose_and_repeat_nothing(scene: Scene, point: str) -> None:
    _hold(scene, point, max(6, COUNTS[scene.kind] // 10))


def _careless(flow: str) -> Callable[[Run], None]:
    def play(run: Run) -> None:
        block_after_apply(run)
        take_over(run, flow)

    return play


def _nobody(run: Run) -> None:
    block_after_apply(run)
    run.wait_status("ready")
    time.sleep(LEASE_SECONDS + GRACE_SECONDS + 1)


@pytest.mark.parametrize("scene", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("name", "play", "kind"),
    [
        ("blind", _careless("refunds/2-blind"), BLIND_RESEND),
        ("own-key", _careless("refunds/2-own-key"), DUPLICATE),
        ("nobody", _nobody, STUCK),
    ],
)
def test_a_careless_worker_and_an_absent_one_are_caught(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, name: str, play: Callable[[Run], None], kind: str
) -> None:
    monkeypatch.setitem(POINTS, name, (play, "refunds/1"))
    kept = scene.kept
    (row,) = run_points(scene, [name], 1, seed=1)
    scene.kept = kept
    assert kind in {finding.kind for finding in row.findings}, row.text()
    assert f"--db {scene.kind} --points {name} --seed 1" in row.text()
