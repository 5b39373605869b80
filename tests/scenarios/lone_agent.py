"""An agent in a process of its own: `register`, or `work` on so many runs, with its own clock so many seconds ahead.

A run whose name begins with `deadly` kills the process that runs it.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from uuid import UUID, uuid4

import time_machine
from resumeapp_client import Client, Context, Step, Worker, Workflow
from resumeapp_client.leases import Leases

from tests.scenarios.tasks import Task, note

flow = Workflow("lone", "1", "send", Task)


@flow.transition(targets=["notes"], tools=["notes.add"])
def send(ctx: Context[Task], s: Task) -> Step:
    if s.name.startswith("deadly"):
        os.kill(os.getpid(), signal.SIGKILL)
    agent.beat()
    ctx.propose("note", target="notes", tool="notes.add", request=note(s))
    ctx.perform("note", call=lambda http, permit: http.post("/notes").json())
    agent.done()
    return ctx.complete()


class Agent(Worker):
    """Works on so many runs and leaves; of those that are ready it takes the newest first."""

    left = 0

    def __init__(self, client: Client) -> None:
        super().__init__(client, [flow], targets={"notes": os.environ["NOTES"]}, wait_seconds=0, lease_seconds=60)
        # A claim begins at the worker's id modulo the number of ready runs, up to five.
        self.id = str(UUID(int=uuid4().int // 60 * 60 + 59))
        self._leases = Leases(client, self.id, 60)

    def beat(self) -> None:
        """Renew the lease now, as its thread does from time to time."""
        self._leases.beat()

    def done(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.stop()


if __name__ == "__main__":
    act, count, ahead = (sys.argv[1:] + ["1", "0"][len(sys.argv) - 2 :])[:3]
    with Client(os.environ["SERVER"], os.environ["KEY"]) as client:
        agent = Agent(client)
        agent.left = int(count)
        with time_machine.travel(time.time() + int(ahead), tick=True):
            if act == "register":
                client.register(flow.type, flow.version, flow.spec())
            else:
                agent.run()
