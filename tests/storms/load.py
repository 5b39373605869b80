"""Writers for storms of the database: each starts runs, commits them to their end and emits events, in process and over the API, always by key.

What was answered is written to a file before anything else happens: from then on it counts as acknowledged. A call without a usable answer is sent
again in the same words until it is answered; whether it had been carried out is then said by the answer.
"""

import json
import os
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any
from uuid import uuid4

from django.db import close_old_connections

from tests.crash.points import Line

COMMITS = 3
PATIENCE_SECONDS = 30.0
FLOW = {
    "state_schema": {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}},
    "initial": "think",
    "transitions": {"think": {"targets": [], "tools": []}},
}


class Unexpected(Exception):
    """An answer that no lost connection explains."""


class Writer:
    """One process's calls. `stop` is a file whose being there ends it after the story at hand."""

    def __init__(self, args: dict[str, Any], line: Line) -> None:
        from django.test import Client

        self._http = Client(raise_request_exception=False)
        self._key = args["key"]
        self._line = line
        self._chance = random.Random(args["seed"])
        self._name = f"{args['seed']}-{uuid4().hex[:6]}"
        self._flow = f"load-{self._name}"
        self._stop = Path(args["stop"])
        self._acks = os.open(args["acks"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.counted: Counter[str] = Counter()

    def ack(self, kind: str, **fields: Any) -> None:
        """One line; what was written before a SIGKILL of anybody stays."""
        os.write(self._acks, (json.dumps({"kind": kind, **fields}) + "\n").encode())
        self.counted[kind] += 1

    def once(self, method: str, path: str, body: Any, key: str = "", media: str = "application/json") -> Any:
        # As a server does at the beginning of each request, and the test client doesn't: a broken connection is given up.
        close_old_connections()
        headers = {"Authorization": f"Bearer {self._key}"} | ({"Idempotency-Key": key} if key else {})
        return self._http.generic(method, f"/api/v1{path}", json.dumps(body).encode(), media, headers=headers)

    def call(self, method: str, path: str, body: Any, key: str = "", media: str = "application/json") -> Any:
        """The body of the answer that came at last. Raises Unexpected for a refusal."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        turn = 0
        while True:
            reply = self.once(method, path, body, key, media)
            if reply.status_code < 300:
                if turn:
                    again = reply.status_code == 200 or reply.json().get("status") == "duplicate"
                    self.counted["found by key" if again else "carried out when sent again"] += 1
                return reply.json()
            if reply.status_code != 503 or time.monotonic() > deadline:
                raise Unexpected(f"{method} {path} turn {turn}: {reply.status_code} {reply.content[:300]!r}")
            turn += 1
            self.counted["answers lost"] += 1
            time.sleep(0.02 + self._chance.random() * 0.05)

    def claim(self, run_id: str) -> str | None:
        """A fence of the run, which this writer alone is offered; None when the answer was lost, and the claim maybe with it."""
        body = {
            "worker": {"id": str(uuid4()), "name": self._name, "code_digest": "load"},
            "offers": [{"workflow": self._flow, "versions": ["1"]}],
            "lease_seconds": 600,
        }
        reply = self.once("POST", "/runs/claim", body)
        if reply.status_code == 200:
            packet = reply.json()["packets"][0]
            if packet["run"]["id"] != run_id:
                raise Unexpected(f"claimed {packet['run']['id']} and not {run_id}")
            return str(packet["fence"])
        if reply.status_code == 503:
            self.counted["claims lost"] += 1
            return None
        if reply.status_code == 204:
            return None
        raise Unexpected(f"claim: {reply.status_code} {reply.content[:300]!r}")

    def story(self, number: int) -> None:
        """A run from start to end."""
        key = f"{self._name}-{number}"
        asked = {"workflow": self._flow, "version": "1", "task": key, "state": {"n": 0}}
        run_id = self.call("POST", "/runs", asked, key)["run"]["id"]
        self.ack("run", run=run_id, key=key)
        fence = self.claim(run_id)
        if fence is None:
            # A claim that was carried out and not answered holds the run; another flow leaves it in peace.
            self._flow = f"load-{self._name}-{number}"
            self.register()
            return
        seq = 1
        proposal = {"name": "pay", "target": "payments", "tool": "payments.goodwill", "request": {"n": number}}
        made = self.call("POST", f"/runs/{run_id}/effects", {"fence": fence, "expect_seq": seq, **proposal}, f"{key}-p")
        self.ack("effect", effect=made["id"], run=run_id)
        seq += 1
        for n in range(COMMITS):
            last = n == COMMITS - 1
            following = {"kind": "complete"} if last else {"kind": "go_on", "transition": "think"}
            body = {
                "fence": fence,
                "expect_seq": seq,
                "state": {"n": n + 1},
                "code_version": "load",
                "version": "1",
                "next": following,
            }
            if n == 0:
                body["withdraw"] = [made["id"]]
            done = self.call("POST", f"/runs/{run_id}/checkpoints", body, f"{key}-{n}")
            self.ack("checkpoint", run=run_id, seq=done["seq"], digest=done["digest"], key=f"{key}-{n}")
            fence, seq = done["fence"], done["seq"]
            if done["status"] != "running":
                break
        event = {"specversion": "1.0", "id": key, "source": "/load", "type": "load.done", "data": {"n": number}}
        self.call("POST", "/events", event, media="application/cloudevents+json")
        self.ack("event", id=key)

    def register(self) -> None:
        """A workflow of this writer's own, so that it is offered its own runs alone."""
        self.call("PUT", f"/workflows/{self._flow}/versions/1", FLOW)

    def run(self) -> None:
        """Story after story until it is told to stop."""
        self.register()
        self._line.say("started")
        number = 0
        while not self._stop.exists():
            number += 1
            self.story(number)


def write(args: dict[str, Any], report: int, control: int) -> None:
    """The role of a writer."""
    line = Line(report, control)
    writer = Writer(args, line)
    error = ""
    try:
        writer.run()
    except Exception as fault:
        error = f"{type(fault).__name__}: {fault}"
    line.say("done", counted=writer.counted, error=error[:1_000])
