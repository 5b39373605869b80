"""A tree of processes: started in sessions of their own, restarted, stopped in order, and nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from resumeapp.processes import Program, Restart, Tree
from tests.patience import until

SLEEP = "import time; time.sleep(600)"
STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
)
WITH_CHILD = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {SLEEP!r}]); print('up', flush=True); time.sleep(600)"


def program(name: str, code: str, **more: object) -> Program:
    return Program(name, [sys.executable, "-c", code], **more)  # type: ignore[arg-type]


def of_session(session: int) -> list[int]:
    """The living processes of a session."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(int(entry.name))
    return found


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Tree]:
    made = Tree(tmp_path / "logs", say=lambda line: None)
    yield made
    made.stop()


def test_a_name_is_given_once(tree: Tree) -> None:
    tree.start(program("one", SLEEP))
    with pytest.raises(ValueError, match="one"):
        tree.start(program("one", SLEEP))


def test_each_child_leads_a_session_and_writes_a_log_of_its_own(tree: Tree) -> None:
    child = tree.start(program("one", "print('hello', flush=True); " + SLEEP))
    until(lambda: b"hello" in child.log.read_bytes(), "its first line")
    assert os.getsid(child.pid) == child.pid != os.getsid(0)


def test_a_child_that_was_killed_is_started_again(tree: Tree) -> None:
    child = tree.start(program("one", SLEEP))
    first = child.pid
    os.kill(first, signal.SIGKILL)

    def again() -> bool:
        tree.look()
        return child.pid != first and child.alive()

    until(again, "its second start")
    assert child.starts == 2


def test_a_child_that_is_not_to_be_restarted_is_reported_with_its_code(tree: Tree) -> None:
    child = tree.start(program("one", "raise SystemExit(3)", restart=Restart.NEVER))

    def ended() -> bool:
        tree.look()
        return child.ended is not None

    until(ended, "its end")
    assert child.ended == 3 and child.starts == 1


def test_an_unhealthy_child_is_replaced(tree: Tree) -> None:
    sick: set[int] = set()
    child = tree.start(program("one", SLEEP, healthy=lambda pid: pid not in sick))
    tree.look()
    first = child.pid
    sick.add(first)
    tree.look()
    assert child.pid != first and child.alive() and not of_session(first)


def test_what_ignores_the_signal_or_was_left_behind_is_killed_after_the_grace(tree: Tree) -> None:
    children = [
        tree.start(program("stubborn", STUBBORN, grace=0.3)),
        tree.start(program("parent", WITH_CHILD, grace=0.3)),
    ]
    until(lambda: all(b"up" in child.log.read_bytes() for child in children), "all of them to be up")
    sessions = [child.pid for child in children]
    assert len(of_session(sessions[1])) == 2
    tree.stop()
    until(lambda: not any(of_session(session) for session in sessions), "every session to be empty")


def test_children_stop_in_the_opposite_order_of_their_start(tmp_path: Path) -> None:
    order: list[str] = []

    class Watched(Tree):
        def stop_child(self, child: object) -> None:
            order.append(child.program.name)  # type: ignore[attr-defined]
            super().stop_child(child)  # type: ignore[arg-type]

    tree = Watched(tmp_path, say=lambda line: None)
    for name in ("one", "two", "three"):
        tree.start(program(name, SLEEP))
    tree.stop()
    assert order == ["three", "two", "one"]


def test_children_die_with_a_tree_that_was_killed(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from resumeapp.processes import Program, Tree\n"
        f"tree = Tree(Path({str(tmp_path)!r}))\n"
        f"print(tree.start(Program('one', [sys.executable, '-c', {SLEEP!r}])).pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    until(lambda: not of_session(child), "the child's end")


def test_a_sigterm_while_children_are_started_leaves_none_of_them_behind(tmp_path: Path) -> None:
    code = f"""
import sys, time
from pathlib import Path
from resumeapp.processes import Program, Tree
tree = Tree(Path({str(tmp_path)!r}))
with tree.starting():
    child = tree.start(Program("stubborn", [sys.executable, "-c", {STUBBORN!r}], grace=0.5))
    while b"up" not in child.log.read_bytes():
        time.sleep(0.05)
    print(child.pid, flush=True)
    time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        session = int(parent.stdout.readline())
        parent.send_signal(signal.SIGTERM)
        assert parent.wait(30) == 128 + signal.SIGTERM
    assert not of_session(session)
