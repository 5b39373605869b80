"""A call whose connection is lost at any statement, before it reached the database or after: sent again it is carried out, once."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import OperationalError, connection

from approvals.models import Vote
from ledger.engine import wakes
from ledger.models import Checkpoint, Decision, Effect, EffectReport, Event, Grant, Permit, Run
from ledger.services import verify
from tests.api.conftest import Http, commit_body, proposal, start_body
from tests.api.server import serving
from tests.api.test_approvals import Asked, Signed
from tests.api.test_checkpoints import waiting
from tests.api.test_events import MEDIA, event
from tests.clock import moved_clock
from tests.world import World

MOST_STATEMENTS = 40


class Cut:
    """An execute wrapper that loses the connection at statement `at`: before it is sent, or after the database carried it out."""

    def __init__(self, at: int, when: str) -> None:
        self.at, self.when, self.seen = at, when, 0

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        self.seen += 1
        if self.seen != self.at:
            return execute(sql, params, many, context)
        if self.when == "after":
            execute(sql, params, many, context)
        context["connection"].connection.close()
        raise OperationalError("server closed the connection unexpectedly")


@dataclass
class Call:
    """A call that may be sent again, and what there must be afterwards."""

    send: Callable[[], Any]
    done: Callable[[], Any]
    expected: Any


def held(world: World) -> tuple[Http, str, dict[str, Any]]:
    http = Http(world.secret)
    run_id = str(http.start())
    return http, run_id, http.claim()


def start(world: World) -> Call:
    http = Http(world.secret)
    rows = Run.objects.of(world.tenant)
    return Call(lambda: http.post("/runs", start_body(), key="k"), rows.count, 1)


def commit(world: World) -> Call:
    http, run_id, packet = held(world)
    body = commit_body(packet, next=waiting(), propose=[proposal()])
    rows = Checkpoint.objects.of(world.tenant).filter(run_id=run_id)
    return Call(lambda: http.post(f"/runs/{run_id}/checkpoints", body, key="k"), rows.count, 2)


def propose(world: World) -> Call:
    http, run_id, packet = held(world)
    body = {"fence": packet["fence"], "expect_seq": 1, **proposal()}
    rows = Effect.objects.of(world.tenant).filter(run_id=run_id)
    return Call(lambda: http.post(f"/runs/{run_id}/effects", body, key="k"), rows.count, 1)


def issuing(world: World) -> tuple[Http, str, str]:
    http, run_id, packet = held(world)
    step = {"kind": "give_back", "transition": "issue"}
    made = http.post(f"/runs/{run_id}/checkpoints", commit_body(packet, next=step, propose=[proposal()]), key="a")
    assert made.status_code == 201 and wakes.run(packet_run(packet)) == "resume"
    return http, http.claim()["fence"], made.json()["effects"]["pay"]["id"]


def packet_run(packet: dict[str, Any]) -> UUID:
    return UUID(packet["run"]["id"])


def permit(world: World) -> Call:
    http, fence, effect_id = issuing(world)
    rows = Permit.objects.of(world.tenant).filter(effect_id=effect_id)
    return Call(lambda: http.post(f"/effects/{effect_id}/permit", {"fence": fence}), rows.count, 1)


def settle(world: World) -> Call:
    http, fence, effect_id = issuing(world)
    assert http.post(f"/effects/{effect_id}/permit", {"fence": fence}).status_code == 200
    body = {"fence": fence, "attempt": 1, "outcome": "committed", "reference": "n-1", "result": {"id": "n-1"}}
    rows = EffectReport.objects.of(world.tenant).filter(effect_id=effect_id, counted=True)
    return Call(lambda: http.post(f"/effects/{effect_id}/settle", body), rows.count, 1)


def emit(world: World) -> Call:
    http, run_id, packet = held(world)
    http.post(f"/runs/{run_id}/checkpoints", commit_body(packet, next=waiting()), key="w")
    send = lambda: http.send("POST", "/events", event(), media=MEDIA)  # noqa: E731
    rows = Event.objects.of(world.tenant)
    return Call(send, lambda: (rows.count(), world.head(packet_run(packet)).status), (1, "waking"))


def decide(world: World) -> Call:
    asked, alice = Asked(world, Http(world.secret)), Signed(world.alice)
    votes = Vote.objects.of(world.tenant).filter(request=asked.request)
    grants = Grant.objects.of(world.tenant).filter(request_id=asked.request.pk)
    status = lambda: world.head(asked.run_id).status  # noqa: E731
    return Call(
        lambda: alice.post(asked.path, asked.body), lambda: (votes.count(), grants.count(), status()), (1, 1, "waking")
    )


CALLS = {each.__name__: each for each in (start, commit, propose, permit, settle, emit, decide)}


@pytest.mark.slow
@pytest.mark.postgres_only
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_lost_its_connection_is_carried_out_once_when_it_is_sent_again(
    name: str, when: str, world: World
) -> None:
    tried = 0
    for at in range(1, MOST_STATEMENTS):
        here = World()
        call = CALLS[name](here)
        cut = Cut(at, when)
        with connection.execute_wrapper(cut):
            first = call.send()
        connection.close()
        if cut.seen < at:
            break
        tried += 1
        assert first.status_code in (200, 201, 202, 503), (at, first.content)
        if first.status_code == 503:
            assert first.json()["code"] == "unavailable" and "again" in first.json()["remedy"]
        again = call.send()
        assert again.status_code in (200, 201, 202), (at, again.content)
        assert call.done() == call.expected, at
        for run_id in Run.objects.of(here.tenant).values_list("pk", flat=True):
            assert verify.run(run_id).faults == [], at
    assert 1 < tried < MOST_STATEMENTS - 1


@pytest.mark.slow
@pytest.mark.postgres_only
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_wake_that_lost_its_connection_is_decided_once(when: str, world: World) -> None:
    tried = 0
    for at in range(1, MOST_STATEMENTS):
        http, run_id, packet = held(world)
        http.post(f"/runs/{run_id}/release", {"fence": packet["fence"]})
        cut = Cut(at, when)
        try:
            with connection.execute_wrapper(cut):
                wakes.run(packet_run(packet))
        except OperationalError:
            connection.close()
        if cut.seen < at:
            break
        tried += 1
        finish(world, packet)
        assert Decision.objects.of(world.tenant).filter(run_id=run_id).count() == 1, at
        assert http.claim()["run"]["id"] == run_id and verify.run(packet_run(packet)).faults == []
    assert 1 < tried < MOST_STATEMENTS - 1


def finish(world: World, packet: dict[str, Any]) -> None:
    """The checker is gone: the sweep takes the wake again when its time is over."""
    with moved_clock() as clock:
        if world.head(packet_run(packet)).status == "waking":
            clock.shift(61)
            assert wakes.run(packet_run(packet)) == "resume"


def test_a_caller_that_hung_up_before_the_reply_gets_it_with_the_same_key(world: World, tmp_path: Path) -> None:
    """Over real sockets to the real server: the request is sent whole, nobody waits for the answer."""
    http_, run_id, packet = held(world)
    path, key = f"/api/v1/runs/{run_id}/checkpoints", str(uuid4())
    body = json.dumps(commit_body(packet, next={"kind": "go_on", "transition": "think"}))
    headers = {"Authorization": f"Bearer {world.secret}", "Content-Type": "application/json", "Idempotency-Key": key}
    with serving(tmp_path) as port:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as gone:
            gone.request("POST", path, body, headers)
            until = time.monotonic() + 20
            while http_.get(f"/runs/{run_id}").json()["run"]["seq"] == 1 and time.monotonic() < until:
                time.sleep(0.02)
        answers = []
        for _ in range(2):
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as asked:
                asked.request("POST", path, body, headers)
                response = asked.getresponse()
                answers.append((response.status, json.loads(response.read())))
    assert [status for status, _ in answers] == [200, 200] and answers[0] == answers[1]
    assert (answers[0][1]["seq"], answers[0][1]["fence"]) == (2, packet["fence"])
    assert Checkpoint.objects.of(world.tenant).filter(run_id=run_id).count() == 2
