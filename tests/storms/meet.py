"""A process in which events meet waits: each event is sent five times, before, while and after the run comes to wait for it."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.db import connection

from tests.crash.points import Line

BATCH = 20
HANDS = 4
"""So many sides and repeats go on at once."""
TIMES = 5
"""How often each event is delivered."""
WHEN = (
    "early",
    "same time",
    "same time",
    "same time",
    "same time",
    "late",
    "same time",
    "same time",
    "same time",
    "same time",
)
LOOK = "FROM ledger_event_delivery d WHERE d.event_id = e.id"
"""What every look for events that fit a wait, or for waits that fit an event, has in its statement."""
PATIENCE_SECONDS = 30
TOGETHER = 0.3
"""Of so many batches the repeats come while the meeting goes on, of the others after it."""
VERIFIED = 20
"""Of so many runs one is verified to the last byte; all are counted."""
FLOW = {
    "state_schema": {"type": "object"},
    "initial": "think",
    "transitions": {"think": {"targets": [], "tools": []}},
}

ONCE = (1, 1, 1, "waking")
"""One event, one delivery, one wake."""


@dataclass(slots=True)
class Meeting:
    """One run and the one event it waits for."""

    packet: Any
    when: str
    answers: list[str] = field(default_factory=list)
    waited: tuple[float, float] = (0.0, 0.0)
    sent: tuple[float, float] = (0.0, 0.0)
    stored: threading.Barrier | None = None
    """Where both sides wait until both have stored and neither has looked."""
    looks: int = 0
    """How many sides came to their look through it."""

    @property
    def overlapped(self) -> bool:
        return self.waited[0] < self.sent[1] and self.sent[0] < self.waited[1]


class Table:
    """One process's meetings, in batches. `flow` is a workflow of its own, so that it claims its own runs."""

    def __init__(self, key: str, seed: int) -> None:
        from ledger.domain.workflows import VersionSpec
        from ledger.services import facts, keys, workflows

        self.deadline = facts.read().now + timedelta(days=1)
        self.chance = random.Random(seed)
        self.caller = keys.authenticate(f"Bearer {key}")
        self.flow = f"meet-{seed}-{uuid4().hex[:6]}"
        self.counted: Counter[str] = Counter()
        self.failures: list[str] = []
        self.hands = ThreadPoolExecutor(HANDS)
        spec = VersionSpec(FLOW["state_schema"], FLOW["initial"], FLOW["transitions"], (), own_events=True)
        workflows.register(self.caller, self.flow, "1", spec)

    def batch(self, size: int) -> None:
        """So many meetings, and what came of each."""
        meetings = self._opened(size)
        of = {when: [m for m in meetings if m.when == when] for when in WHEN}
        for meeting in of["early"]:
            self._send(meeting)
        for meeting in of["late"]:
            self._wait(meeting)
        early, same, late = of["early"], of["same time"], of["late"]
        together = threading.Barrier(2)
        again = [meeting for meeting in meetings for _ in range(TIMES - 1)]
        self.chance.shuffle(again)
        waits = partial(self._side, self._wait, together, same, early)
        sends = partial(self._side, self._send, together, same, late)
        repeats = [partial(self._repeat, again[half::2]) for half in (0, 1)]
        if self.chance.random() < TOGETHER:
            self._at_once(waits, sends, *repeats)
        else:
            self._at_once(waits, sends)
            # Before anything is sent again, which would join what the first meeting left apart.
            self._judge_meeting(meetings)
            self._at_once(*repeats)
        self._judge(meetings)

    def _opened(self, size: int) -> list[Meeting]:
        from ledger.domain.leases import Offer
        from ledger.domain.starts import StartSpec
        from ledger.services import leases, runs

        for _ in range(size):
            runs.start(self.caller, StartSpec(self.flow, "1", "meet", {}, {}, "", str(uuid4())))
        packets = leases.claim(self.caller, Offer(uuid4(), "meet", "meet", {self.flow: ("1",)}, size, 600))
        if len(packets) != size:
            raise RuntimeError(f"claimed {len(packets)} of {size}")
        meetings = [Meeting(packet, WHEN[number % len(WHEN)]) for number, packet in enumerate(packets)]
        for meeting in [each for each in meetings if each.when == "same time"][::2]:
            meeting.stored = threading.Barrier(2)
        return meetings

    def _at_once(self, *acts: Callable[[], Any]) -> None:
        """Each act in a thread that has kept its connection: a new one has to plan every statement anew."""

        def guarded(act: Callable[[], Any]) -> None:
            try:
                act()
            except Exception as error:
                self.failures.append(f"{type(error).__name__}: {error}")
                connection.close()

        for done in [self.hands.submit(guarded, act) for act in acts]:
            done.result()

    def _side(
        self,
        act: Callable[[Meeting], None],
        together: threading.Barrier,
        same: Sequence[Meeting],
        others: Sequence[Meeting],
    ) -> None:
        """One side of the meetings at the same time, then of those where the other side has come already."""
        for meeting in same:
            together.wait(60)
            with connection.execute_wrapper(partial(_at_its_look, meeting, [])):
                act(meeting)
        for meeting in others:
            act(meeting)

    def _repeat(self, meetings: Sequence[Meeting]) -> None:
        for meeting in meetings:
            self._send(meeting, again=True)

    def _send(self, meeting: Meeting, again: bool = False) -> None:
        from ledger.services import events
        from ledger.services.events import EventSpec

        run_id = str(meeting.packet.run.id)
        began = time.monotonic()
        received = events.receive(self.caller, EventSpec("/meet", run_id, "met", run_id))
        if not again:
            meeting.sent = began, time.monotonic()
        meeting.answers.append(str(received.status))

    def _wait(self, meeting: Meeting) -> None:
        from ledger.domain.commits import Next, NextKind
        from ledger.domain.waits import MemberKind, MemberSpec, OnDeadline, SetMode, WaitSpec
        from ledger.engine import proposals
        from ledger.services.checkpoints import CommitSpec

        packet = meeting.packet
        member = MemberSpec(MemberKind.EVENT, type="met", subject=str(packet.run.id))
        wait = WaitSpec(SetMode.ANY, (member,), self.deadline, OnDeadline.CANCEL)
        spec = CommitSpec(
            fence=packet.fence,
            expect_seq=packet.checkpoint["seq"],
            code_version="meet",
            state={},
            next=Next(NextKind.WAIT, "think", wait),
            idempotency_key=str(uuid4()),
            document={"wait": str(packet.run.id)},
            propose=(),
        )
        began = time.monotonic()
        proposals.commit(self.caller, packet.run.id, spec)
        meeting.waited = began, time.monotonic()

    def _judge_meeting(self, meetings: Sequence[Meeting]) -> None:
        """One event and one wait have brought each run to wake."""
        found = _counts([meeting.packet.run.id for meeting in meetings])
        self.counted["judged before repeats"] += len(meetings)
        for meeting in meetings:
            if found.get(meeting.packet.run.id) != ONCE:
                self.failures.append(
                    f"{meeting.when}, sent once: run {meeting.packet.run.id} has {found.get(meeting.packet.run.id)}"
                )

    def _judge(self, meetings: Sequence[Meeting]) -> None:
        """Exactly one event, one delivery and one wake for each, and one answer that isn't `duplicate`."""
        ids = [meeting.packet.run.id for meeting in meetings]
        found = _counts(ids)
        for meeting in meetings:
            run_id: UUID = meeting.packet.run.id
            first = [answer for answer in meeting.answers if answer != "duplicate"]
            seen = found.get(run_id, ())
            if seen != ONCE or len(first) != 1 or len(meeting.answers) != TIMES:
                self.failures.append(
                    f"{meeting.when}: run {run_id} has (events, deliveries, wakes, status) {seen}; answers {meeting.answers}"
                )
            self.counted[meeting.when] += 1
            self.counted["both stored before either looked"] += meeting.looks == 2
            self.counted["overlapped"] += meeting.when == "same time" and meeting.overlapped
            self.counted["met by the event"] += "matched" in first
        for run_id in ids[:: max(1, VERIFIED)]:
            from ledger.services import verify

            self.counted["verified"] += 1
            self.failures += [f"CHAIN: run {run_id}: {fault}" for fault in verify.run(run_id).faults]


def _at_its_look(
    meeting: Meeting, come: list[bool], execute: Any, sql: str, params: Any, many: bool, context: Any
) -> Any:
    """One side's statements: before its first look it waits for the other side to have come as far."""
    if meeting.stored is not None and not come and LOOK in sql:
        come.append(True)
        meeting.stored.wait(PATIENCE_SECONDS)
        meeting.looks += 1
    return execute(sql, params, many, context)


def _counts(ids: Sequence[UUID]) -> dict[UUID, tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT h.run_id, (SELECT count(*) FROM ledger_event e WHERE e.event_id = h.run_id::text),"
            " (SELECT count(*) FROM ledger_event_delivery d WHERE d.run_id = h.run_id),"
            " (SELECT count(*) FROM ledger_wake w WHERE w.run_id = h.run_id), h.status"
            " FROM ledger_run_head h WHERE h.run_id = ANY(%s)",
            [list(ids)],
        )
        return {row[0]: tuple(row[1:]) for row in cursor.fetchall()}


def work(args: dict[str, Any], report: int, control: int) -> None:
    """The role: so many meetings."""
    line = Line(report, control)
    # Nobody wakes a run here while what brought it to wake is being judged.
    settings.RESUMEAPP_HINTS = False
    table = Table(args["key"], args["seed"])
    left = args["count"]
    while left and len(table.failures) < 10:
        size = min(BATCH, left)
        table.batch(size)
        left -= size
    line.say("done", counted=table.counted, failures=[text[:400] for text in table.failures[:6]])
