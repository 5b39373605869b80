"""Round trips are numbers: the statements of each call over HTTP beyond the one that finds its key, on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from tests.api.conftest import Http, claim_body, commit_body, proposal, start_body
from tests.api.test_effects import Held, cleared
from tests.trips import short, statements

__all__ = ["cleared"]

pytestmark = pytest.mark.postgres_only

AUTHENTICATION = 1
"""One SELECT finds the key; noting its use is an UPDATE at most once a minute, made by the first call of each test."""
Call = Callable[[], Any]
Scene = Callable[[Http, Held], Call]
"""Everything up to the call, which is counted; `Held` is a run in the transition `issue` in a worker's hands."""


def start(http: Http, held: Held) -> Call:
    return lambda: http.post("/runs", start_body(), key=str(uuid4()))


def claim(count: int) -> Scene:
    def scene(http: Http, held: Held) -> Call:
        http.start()
        body = claim_body(limit=1)
        http.post("/runs/claim", body)  # A worker that is seen for the first time in half a minute is noted: one more.
        for _ in range(count):
            http.start()
        return lambda: http.post("/runs/claim", {**body, "limit": count})

    return scene


def heartbeat(http: Http, held: Held) -> Call:
    body = claim_body(limit=4)
    for _ in range(4):
        http.start()
    packets = http.post("/runs/claim", body).json()["packets"]
    runs = [{"run": packet["run"]["id"], "fence": packet["fence"]} for packet in packets]
    assert len(runs) == 4
    return lambda: http.post("/heartbeat", {"worker": body["worker"]["id"], "runs": runs})


def release(http: Http, held: Held) -> Call:
    return lambda: http.post(f"/runs/{held.run_id}/release", {"fence": held.fence})


def commit(next_: dict[str, Any], **fields: Any) -> Scene:
    def scene(http: Http, held: Held) -> Call:
        body = commit_body(held.packet, next=next_, **fields)
        return lambda: http.post(f"/runs/{held.run_id}/checkpoints", body, key="commit")

    return scene


def commit_of_everything(http: Http, held: Held) -> Call:
    """One commit settles, withdraws and proposes, and waits for a timer counted from now."""
    pay, other = (held.propose(name, seq, name=name).json()["id"] for name, seq in (("pay", 2), ("other", 3)))
    assert held.permit(pay).status_code == 200
    settle = [{"effect": pay, "attempt": 1, "outcome": "committed", "result": {"id": "n-1"}}]
    more = {"settle": settle, "withdraw": [other], "propose": [proposal("third")]}
    packet = {**held.packet, "checkpoint": {"seq": 4}}
    return commit(wait({"kind": "timer", "after_seconds": 60}), **more)(http, _at(held, packet))


def _at(held: Held, packet: dict[str, Any]) -> Held:
    held.packet = packet
    return held


def wait(member: dict[str, Any]) -> dict[str, Any]:
    waits = {"mode": "any", "members": [member], "deadline_seconds": 3_600, "on_deadline": "wake"}
    return {"kind": "wait", "transition": "issue", "wait": waits}


def repeated(http: Http, held: Held) -> Call:
    call = commit({"kind": "give_back", "transition": "issue"}, propose=[proposal()])(http, held)
    assert call().status_code == 201
    return call


def propose(http: Http, held: Held) -> Call:
    return lambda: held.propose(expect_seq=2)


def permit(http: Http, held: Held) -> Call:
    effect_id = held.propose(expect_seq=2).json()["id"]
    return lambda: held.permit(effect_id)


def settle(http: Http, held: Held) -> Call:
    effect_id = held.propose(expect_seq=2).json()["id"]
    held.permit(effect_id)
    return lambda: held.settle(effect_id, "committed", reference="n-1", result={"id": "n-1"})


def withdraw(http: Http, held: Held) -> Call:
    effect_id = held.propose(expect_seq=2).json()["id"]
    return lambda: http.post(f"/effects/{effect_id}/withdraw", {"fence": held.fence})


def event(takers: int) -> Scene:
    def scene(http: Http, held: Held) -> Call:
        for number in range(takers):
            http.start()
            packet = http.claim()
            body = commit_body(packet, next=wait({"kind": "event", "type": "order.paid"}))
            assert http.post(f"/runs/{packet['run']['id']}/checkpoints", body, key=f"w{number}").status_code == 201
        sent = {"specversion": "1.0", "id": str(uuid4()), "source": "https://shop.example", "type": "order.paid"}
        return lambda: http.post("/events", sent, media="application/cloudevents+json")

    return scene


LEAVE = {"kind": "approval", "effect": "pay"}
ASKS = proposal(tool="payments.refund", target="payments")
TRIPS: tuple[tuple[str, int, int, Scene], ...] = (
    ("start", 2, 201, start),
    ("claim of one run", 3, 200, claim(1)),
    ("claim of five runs", 3, 200, claim(5)),
    ("heartbeat of four runs", 1, 200, heartbeat),
    ("release", 2, 204, release),
    ("commit that gives back", 2, 201, commit({"kind": "give_back", "transition": "think"})),
    ("commit that goes on and keeps the lease", 2, 201, commit({"kind": "go_on", "transition": "think"})),
    ("commit that ends the run", 2, 201, commit({"kind": "complete"})),
    ("commit that settles, withdraws, proposes and waits for a timer", 2, 201, commit_of_everything),
    ("commit that asks for approval", 2, 201, commit(wait(LEAVE), propose=[ASKS])),
    ("commit that waits for an event", 3, 201, commit(wait({"kind": "event", "type": "order.paid"}))),
    ("commit that is repeated", 1, 200, repeated),
    ("propose", 2, 201, propose),
    ("permit", 2, 200, permit),
    ("settle", 2, 200, settle),
    ("withdraw", 2, 200, withdraw),
    ("event that is kept", 3, 202, event(0)),
    ("event that two runs take", 5, 202, event(2)),
)


@pytest.mark.parametrize(("call", "expected", "status", "scene"), TRIPS, ids=[call for call, *_ in TRIPS])
def test_each_call_takes_its_number_of_round_trips(
    http: Http, cleared: Held, call: str, expected: int, status: int, scene: Scene
) -> None:
    act = scene(http, cleared)
    answers: list[Any] = []
    sent = statements(lambda: answers.append(act()))[AUTHENTICATION:]
    assert answers[0].status_code == status, answers[0].content
    assert len(sent) == expected, f"{call}\n{short(sent)}"
