"""How a process under test says where it is and waits there to be killed: lines on one pipe, a byte on another. Standard library only."""

import json
import os
import threading
import time
from typing import Any


class Line:
    """A process's end of the two pipes. What was written before a SIGKILL arrives all the same."""

    def __init__(self, report: int, control: int) -> None:
        self._report = report
        self._control = control
        self._lock = threading.Lock()

    def say(self, kind: str, **fields: Any) -> None:
        """One JSON line; shorter than a pipe's atomic write."""
        line = json.dumps({"kind": kind, "pid": os.getpid(), "said_at": time.time(), **fields}) + "\n"
        with self._lock:
            os.write(self._report, line.encode())

    def block(self, point: str, **fields: Any) -> None:
        """Report the point and stay there until released; who is killed here never returns."""
        self.say("point", point=point, **fields)
        os.read(self._control, 1)
