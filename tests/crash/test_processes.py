"""The harness's own processes: what one reported is never read as another's."""

import os
import select
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.crash.processes import Gone, Process

Begin = Callable[[int], tuple[Process, int]]


@pytest.fixture
def begin() -> Iterator[Begin]:
    """Begins a process that says nothing by itself; answers it, and the end of its pipe into which a test speaks for it."""
    begun = []

    def process_of(seconds: int) -> tuple[Process, int]:
        report, speaking = os.pipe()
        _, control = os.pipe()
        begun.append(subprocess.Popen(["sleep", str(seconds)]))
        return Process(begun[-1].pid, report, control, Path("a.log")), speaking

    yield process_of
    for each in begun:
        each.wait(10)


def test_one_that_was_closed_takes_nothing_from_whoever_has_its_numbers_since(begin: Begin) -> None:
    first, _ = begin(60)
    numbers = {first._report, first._control, first._pidfd}
    first.close()
    second, speaking = begin(60)
    assert numbers & {second._report, second._control, second._pidfd}, "the system gives free numbers away again"
    os.write(speaking, b'{"kind": "started"}\n')
    assert first.of_kind("started") == [] and not first.hear(0)
    first.close()
    assert select.select([second._report], [], [], 0)[0]
    assert second.wait_for("started", 0.1) == {"kind": "started"}
    second.close()


@pytest.mark.parametrize(("seconds", "standing"), [(60, "which lives"), (0, "which has ended")])
def test_what_was_waited_for_in_vain_says_whether_the_process_lives(begin: Begin, seconds: int, standing: str) -> None:
    process, speaking = begin(seconds)
    os.close(speaking)
    if not seconds:
        assert process._pidfd is not None and select.select([process._pidfd], [], [], 10)[0]
    with pytest.raises(Gone, match=standing):
        process.wait_for("started", 10)
    process.close()
